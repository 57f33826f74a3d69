"""The asynchronous exchange as printed, within the receiver's round, beside ours."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np

import tacita
from papers.common.kept import Kept
from papers.dp_norm.common import benchmark as b
from papers.dp_norm.common import convex, mid_round, runs
from papers.dp_norm.common.pages import RESULTS, grid, script, write_page
from tacita.problem import graph

EPSILON, ALPHAS, ROUNDS = 1.0, (b.ALPHA, 0.0), 40
#: Noise only: gradients are zero, so that a short model shows what a long one does.
NOISE_ROUNDS, NOISE_DIM = 2000, 200
#: How letters are exchanged: fields of `DPNorm`, or a swap within the round.
EXCHANGES: dict[str, dict[str, Any] | bool] = {
    "synchronous": {"exchange": "synchronous"},
    "ours, fresh noise": {"exchange": "asynchronous", "letter_noise": "fresh"},
    "ours, shared noise": {"exchange": "asynchronous", "letter_noise": "shared"},
    "as printed": False,
    "as printed, both ends at once": True,
}
MEASURES: dict[str, runs.Measure] = {
    "accuracy": runs.own_accuracy,
    "norm of w": runs.model_norm,
    "norm of dual": runs.dual_norm,
}


def silent() -> tacita.Problem:
    """A ring of six whose rows are zero, and with them all gradients."""
    rows, labels = np.zeros((6, NOISE_DIM)), np.zeros(6)
    ring = {"graph": graph.ring(6), "test": (rows, labels)}
    return tacita.from_arrays(rows, labels, np.arange(6), model="linear", **ring)


def measure(
    problem: tacita.Problem, how: dict[str, Any] | bool, rounds: int, **changes: Any
) -> dict[str, Any]:
    """All measures by alpha and record, at a quarter, half and all of the rounds."""
    fields = how if isinstance(how, dict) else {}
    given = changes.pop("noise_std", None)
    many = [
        convex.dp_norm(a, given or b.paper_noise(EPSILON, a), **fields, **changes)
        for a in ALPHAS
    ]
    every = rounds // 4
    if isinstance(how, dict):
        found = runs.curves(problem, many, rounds, every, MEASURES)
    else:
        found = mid_round.curves(problem, many, rounds, every, how)
    return {name: np.asarray(values) for name, values in found.items()}


def main(rounds: int = ROUNDS, out: Path = RESULTS, resume: bool = False) -> Path:
    """Norms and accuracies by exchange and alpha; then noise alone, for longer."""
    kept, rows, alone = Kept(out, "asynchronous", resume), [], []
    quiet = {"oracle": tacita.Full()}
    problem = None
    for name, how in EXCHANGES.items():
        found = kept(
            f"noise only, {name}, {NOISE_ROUNDS} rounds",
            lambda how=how: _noise_only(how, quiet),
        )
        for k, alpha in enumerate(ALPHAS):
            values = [found["norm of dual"][k][m] for m in (0, 1, 3)]
            alone.append([name, f"{alpha:g}", *values, found["norm of w"][k][3]])

        def on_benchmark(how: Any = how) -> dict[str, Any]:
            nonlocal problem
            problem = problem or b.problem()
            return measure(problem, how, rounds)

        found = kept(f"benchmark, {name}, {rounds} rounds", on_benchmark)
        for k, alpha in enumerate(ALPHAS):
            norms = [found[column][k][3] for column in ("norm of w", "norm of dual")]
            early = found["norm of dual"][k][0]
            rows.append([name, f"{alpha:g}", found["accuracy"][k][3], *norms, early])
    heads = ("exchange", "alpha", "accuracy", "norm of w", "norm of dual")
    heads += (f"norm of dual, round {rounds // 4}",)
    lasting = ("exchange", "alpha", *(f"dual, round {r}" for r in _shown()), "w, end")
    _write(out, heads, rows, lasting, alone)
    return write_page(
        out,
        "asynchronous",
        [
            "# The asynchronous exchange, as printed and ours",
            "Algorithm 1 replaces z by a neighbour's letter at a random inner step, in "
            "the middle of the receiver's round, each direction of an edge at its own "
            "step, and all letters of a round carry one draw of noise. *Both ends at "
            "once*: an edge is exchanged at one step. *Ours* (`exchange="
            '"asynchronous"`): a letter shows the iterate of a random step and is used '
            "from the receiver's next round on.",
            f"## On the benchmark, {rounds} rounds",
            f"Split 0, l2 = 1e-3, the paper's noise for epsilon = {EPSILON:g} and "
            f"{b.ROUNDS:,} rounds, one seed, both alphas on the same batches. A round "
            f"is a {b.ROUNDS // rounds}th of the paper's run: all exchanges and both "
            "alphas at its rounds take about two processor hours.",
            grid(heads, rows),
            f"## Noise alone, {NOISE_ROUNDS:,} rounds",
            "Zero gradients; norms over sigma sqrt(p), one seed. An independent "
            "implementation had 2.10 (alpha = 0.2) and 4.37 (alpha = 0) for "
            "synchronous duals.",
            grid(lasting, alone),
            READING,
        ],
    )


def _shown() -> tuple[int, int, int]:
    return NOISE_ROUNDS // 4, NOISE_ROUNDS // 2, NOISE_ROUNDS


def _noise_only(how: Any, changes: dict[str, Any]) -> dict[str, Any]:
    """With noise of standard deviation 1, norms over sqrt(p)."""
    found = measure(silent(), how, NOISE_ROUNDS, noise_std=1.0, **changes)
    unit = math.sqrt(NOISE_DIM)
    return {
        name: values / unit if name.startswith("norm") else values
        for name, values in found.items()
    }


def _write(out: Path, heads: Any, rows: Any, lasting: Any, alone: Any) -> None:
    """Both tables as CSV."""
    for name, columns, cells in (
        ("asynchronous", heads, rows),
        ("asynchronous_noise", lasting, alone),
    ):
        with open(out / f"{name}.csv", "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(
                [c if isinstance(c, str) else f"{c:.6g}" for c in row] for row in cells
            )


READING = "TODO"


if __name__ == "__main__":
    script(main)
