"""Figure 9, non-convex: DP-Norm with ResNet-10 on rings of 3 to 8, epsilon = 1."""

from __future__ import annotations

from pathlib import Path

from papers.dp_norm.common import resnet
from papers.dp_norm.common.figures import curve_page
from papers.dp_norm.common.pages import RESULTS, script

NODES = (3, 4, 6, 8)


def main(
    out: Path = RESULTS,
    rounds: int | None = None,
    size: str = "small",
    resume: bool = False,
) -> Path:
    """One panel, one curve per ring."""
    chosen = resnet.size_of(size, rounds)
    rings = [resnet.Curve("DP-Norm", 1.0, nodes=nodes) for nodes in NODES]
    lines = [
        {**line, "method": f"{one.nodes} nodes"}
        for one, each in zip(
            rings, resnet.lines_of(rings, chosen, out, resume), strict=True
        )
        for line in each
    ]
    return curve_page(
        out,
        chosen.page("figure_9_resnet"),
        "Figure 9, non-convex: DP-Norm with ResNet-10 on rings of different size",
        {f"alpha = {resnet.ALPHA:g}, epsilon = 1": lines},
        resnet.scale_of(chosen),
        [resnet.readings(chosen, "Three nodes are slower, the others alike.", OURS)],
        resnet.about(chosen),
    )


OURS = {"small": "All four are alike, three nodes as well."}


if __name__ == "__main__":
    script(main)
