"""Figure 7, non-convex: ResNet-10 with iid data."""

from __future__ import annotations

from pathlib import Path

from papers.dp_norm.common import resnet
from papers.dp_norm.common.figures import curve_page
from papers.dp_norm.common.pages import RESULTS, script


def main(
    out: Path = RESULTS,
    rounds: int | None = None,
    size: str = "small",
    resume: bool = False,
) -> Path:
    """All methods, every node with all ten classes."""
    chosen = resnet.size_of(size, rounds)
    curves = [one for e in resnet.EPSILONS for one in resnet.methods(e, iid=True)]
    lines = resnet.lines_of(curves, chosen, out, resume)
    single = resnet.single_node(chosen, out, resume, iid=True)
    panels = resnet.by_epsilon(lines, single)
    return curve_page(
        out,
        chosen.page("figure_7_resnet"),
        "Figure 7, non-convex: ResNet-10, iid data",
        panels,
        resnet.scale_of(chosen),
        [resnet.readings(chosen, PAPERS, OURS)],
        resnet.about(chosen),
    )


PAPERS = (
    "DP-Norm is closest to the reference, and DP-SGD does better than with non-iid "
    "data."
)
OURS = {
    "small": "Without noise all five are nearly the same. With the paper's noise "
    "DP-SGD is closest, and better than with non-iid data, as printed; DP-Norm is "
    "furthest.",
}


if __name__ == "__main__":
    script(main)
