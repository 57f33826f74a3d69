"""Figure 9, convex: DP-Norm on rings of 3, 4, 6 and 8 nodes, epsilon = 1."""

from __future__ import annotations

from pathlib import Path

from papers.dp_norm.common import benchmark as b
from papers.dp_norm.common import convex
from papers.dp_norm.common.convex import Entry
from papers.dp_norm.common.pages import RESULTS, script
from papers.dp_norm.common.short import ROUNDS, curve_page

EVERY = 20
NODES = (3, 4, 6, 8)


def main(out: Path = RESULTS) -> Path:
    """One panel, one curve per ring."""
    lines = []
    for nodes in NODES:
        noise = b.paper_noise(1.0, b.ALPHA, ROUNDS)
        one = Entry(f"{nodes} nodes", "paper", 1.0, convex.dp_norm(b.ALPHA, noise))
        lines += convex.play(b.problem(nodes=nodes), [one], ROUNDS, EVERY)
    return curve_page(
        out,
        "figure_9",
        "Figure 9, convex: DP-Norm on rings of different size, epsilon = 1",
        {"alpha = 0.2": lines},
        [
            "**The paper's reading.** Three nodes are slower, the others alike. "
            "**Ours.** Eight and six nodes do best, four worst, as with the other "
            "methods ([figure_8.md](figure_8.md)): each ring has other images and "
            "other class sets, which matter more than its size."
        ],
    )


if __name__ == "__main__":
    script(main)
