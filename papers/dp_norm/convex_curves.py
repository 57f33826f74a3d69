"""Learning curves of all methods on the convex benchmark, the data of Figures 2 and 4.

Split 0 goes with l2 = 1e-3, split 1 with l2 = 1e-4. It takes about an hour per split on
two cores; the figures and the table are drawn from the CSV files that it leaves. It
can be stopped and run again: methods whose file is there are not run twice.
"""

from __future__ import annotations

from pathlib import Path

from papers.dp_norm.common import benchmark, convex
from papers.dp_norm.common.pages import RESULTS, script

EPSILONS = (None, 1.0, 0.5)
EVERY = 50
PARTS = convex.METHODS


def one(split: int, part: str, out: Path, rounds: int = benchmark.ROUNDS) -> Path:
    """One method on one split."""
    path = out / f"convex_split_{split}_{part}.csv"
    if part == "single":
        lines = convex.single_node(split, rounds, EVERY)
        return convex.write(path, lines)
    problem = benchmark.problem(split=split)
    entries = PARTS[part](rounds, EPSILONS)
    return convex.write(path, convex.play(problem, entries, rounds, EVERY))


def main(out: Path = RESULTS) -> Path:
    """All methods on both splits; what is there already is kept."""
    for split in benchmark.L2:
        for part in ("single", *PARTS):
            if not (out / f"convex_split_{split}_{part}.csv").exists():
                one(split, part, out)
    return out / "convex_split_0_dp_norm.csv"


if __name__ == "__main__":
    script(main)
