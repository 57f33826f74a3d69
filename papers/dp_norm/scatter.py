"""How far single runs of the convex benchmark scatter: DP-Norm with the paper's noise.

Split 1 with l2 = 1e-4 as in Figure 2, the same data with three seeds of batches and
noise. It tells how much of a difference between two single runs means nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from papers.dp_norm import convex_curves
from papers.dp_norm.common import benchmark as b
from papers.dp_norm.common import convex
from papers.dp_norm.common.pages import RESULTS, grid, script, write_page
from papers.dp_norm.common.parts import Part, Scale, lines_of
from papers.dp_norm.figure_2 import INDEPENDENT

SPLIT, SEEDS, EPSILONS = 1, range(3), (1.0, 0.5)
METHOD = f"DP-Norm alpha={b.ALPHA:g}"


def main(out: Path = RESULTS) -> Path:
    """Every seed on its own; those whose lines are there are not run again."""
    noise = {one: b.paper_noise(one, b.ALPHA) for one in EPSILONS}
    entries = tuple(
        convex.Entry(METHOD, "paper", one, convex.dp_norm(b.ALPHA, std))
        for one, std in noise.items()
    )
    part = Part("scatter", entries, b.ROUNDS, every=convex_curves.EVERY)
    scale = Scale(b.ROUNDS, (SPLIT,), len(SEEDS))
    lines = lines_of(part.copies(scale), out / "raw", resume=True)
    convex.write(out / "scatter.csv", lines, ("split", "seed", *convex.FIELDS))
    return page(out, lines)


def page(out: Path, lines: list[dict[str, Any]]) -> Path:
    """Final accuracies of all seeds, and how one run moves from record to record."""
    rows = []
    for epsilon in EPSILONS:
        name = f"{epsilon:g}"
        mine = [line for line in lines if line["epsilon"] == name]
        curves = np.array(
            [
                [float(line["accuracy"]) for line in mine if line["seed"] == str(seed)]
                for seed in SEEDS
            ]
        )
        final = curves[:, -1]
        late = curves[:, curves.shape[1] // 2 :]
        there = INDEPENDENT[METHOD, "paper", name][SPLIT]
        rows.append(
            [
                name,
                ", ".join(f"{value:.3f}" for value in final),
                f"{final.mean():.3f}",
                f"{final.std(ddof=1):.3f}",
                f"{late.min():.3f} to {late.max():.3f}",
                f"{there:.3f}",
            ]
        )
    heads = ["epsilon", "final accuracies", "mean", "standard deviation"]
    heads += ["records of the second half", "independent run"]
    return write_page(
        out,
        "scatter",
        [
            f"# Scatter of single runs: {METHOD}, noise of the paper",
            f"Split {SPLIT}, l2 = {b.L2[SPLIT]:g}, R = {b.ROUNDS:,}; "
            f"{len(SEEDS)} seeds of batches and noise on the same data. A record every "
            f"{convex_curves.EVERY} rounds.",
            grid(heads, rows),
            "The noise of the last round is in the model that is measured, so the "
            "accuracy of one run jumps from record to record as much as it differs "
            "between seeds.",
        ],
    )


if __name__ == "__main__":
    script(main)
