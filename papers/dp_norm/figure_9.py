"""Figure 9, convex: DP-Norm on rings of 3, 4, 6 and 8 nodes, epsilon = 1."""

from __future__ import annotations

from pathlib import Path

from papers.dp_norm.common import benchmark as b
from papers.dp_norm.common import convex
from papers.dp_norm.common.convex import Entry
from papers.dp_norm.common.figures import chosen, curve_page, played
from papers.dp_norm.common.pages import RESULTS, script
from papers.dp_norm.common.parts import Part

NODES = (3, 4, 6, 8)


def on_ring(nodes: int, rounds: int) -> Part:
    """DP-Norm on one ring."""
    noise = b.paper_noise(1.0, b.ALPHA, rounds)
    one = Entry(f"{nodes} nodes", "paper", 1.0, convex.dp_norm(b.ALPHA, noise))
    return Part(f"figure_9_{nodes}_nodes", (one,), rounds, {"nodes": nodes})


def parts(rounds: int) -> dict[str, list[Part]]:
    """What the page is drawn from."""
    return {"figure_9": [on_ring(nodes, rounds) for nodes in NODES]}


def main(
    out: Path = RESULTS,
    rounds: int = 100,
    splits: int = 1,
    seeds: int = 1,
    resume: bool = False,
) -> Path:
    """One panel, one curve per ring."""
    scale = chosen(rounds, splits, seeds)
    lines = played(parts(rounds)["figure_9"], scale, out, resume)
    return curve_page(
        out,
        "figure_9",
        "Figure 9, convex: DP-Norm on rings of different size, epsilon = 1",
        {"alpha = 0.2": lines},
        scale,
        [
            "**The paper's reading.** Three nodes are slower, the others alike. "
            "**Ours.** With the paper's rounds three nodes do worst, as printed, but "
            "the others are not alike: the larger the ring, the better. Each ring has "
            "other images and other class sets, so that its size is not all that "
            "differs."
        ],
    )


if __name__ == "__main__":
    script(main)
