"""Learning curves of all methods on the convex benchmark, the data of Figures 2 and 4.

Split 0 goes with l2 = 1e-3, split 1 with l2 = 1e-4. It takes about an hour per split on
two cores; the figures and the table are drawn from the raw lines that it leaves. It
can be stopped and run again: methods whose lines are there are not run twice.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from papers.dp_norm.common import benchmark, convex
from papers.dp_norm.common.pages import RESULTS, script
from papers.dp_norm.common.parts import Part, Scale, kept, lines_of

EPSILONS = (None, 1.0, 0.5)
EVERY = 50


def methods(rounds: int = benchmark.ROUNDS) -> list[Part]:
    """Every method with noise, at all epsilons."""
    return [
        Part(f"convex_{name}", tuple(made(rounds, EPSILONS)), rounds, every=EVERY)
        for name, made in convex.METHODS.items()
    ]


def are_in(out: Path) -> bool:
    """Whether any of them were left there."""
    return any(out.glob(f"raw/{methods()[0].name}-*.csv"))


def of_split(split: int, out: Path) -> list[dict[str, Any]]:
    """All curves of a split, those of a single node last; run where they are not."""
    rounds, raw = benchmark.ROUNDS, out / "raw"
    scale = Scale(rounds, (split,))
    copies = [copy for part in methods() for copy in part.copies(scale)]
    single = kept(
        f"convex_single-{rounds}-split-{split}",
        raw,
        True,
        functools.partial(convex.single_node, split, rounds, EVERY),
    )
    return [*lines_of(copies, raw, resume=True), *single]


def main(out: Path = RESULTS) -> Path:
    """All methods on both splits; what is there already is kept."""
    for split in benchmark.L2:
        of_split(split, out)
    (first, *_) = methods()[0].copies(Scale(benchmark.ROUNDS))
    return out / "raw" / f"{first.name}.csv"


if __name__ == "__main__":
    script(main)
