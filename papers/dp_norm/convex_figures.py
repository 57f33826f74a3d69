"""Figures 3 and 5 to 9, convex, one after another: a curve of several is run once.

The paper's rounds with both splits and three seeds take a night and more on two cores.
It can be stopped at any moment; what is there is kept and gone on from.
"""

from __future__ import annotations

from pathlib import Path

from papers.dp_norm.common import benchmark as b
from papers.dp_norm.common.pages import RESULTS, script
from papers.dp_norm.hours import CONVEX


def main(
    out: Path = RESULTS,
    rounds: int = b.ROUNDS,
    splits: int = len(b.L2),
    seeds: int = 3,
) -> Path:
    """All of them, in the order that repeats least."""
    return [figure.main(out, rounds, splits, seeds, True) for figure in CONVEX][-1]


if __name__ == "__main__":
    script(main)
