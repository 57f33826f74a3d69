"""The asynchronous exchange as printed, within the receiver's round, beside ours."""

from __future__ import annotations

import csv
import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import tacita
from papers.common.kept import Kept
from papers.dp_norm.common import benchmark as b
from papers.dp_norm.common import convex, mid_round, runs
from papers.dp_norm.common.pages import RESULTS, grid, script, write_page
from papers.dp_norm.common.parts import Part, Scale, lines_of
from tacita.problem import graph

EPSILON, ALPHAS = 1.0, (b.ALPHA, 0.0)
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


def main(rounds: int = 0, out: Path = RESULTS, resume: bool = False) -> Path:
    """Noise alone with the paper's rounds; with `rounds`, the benchmark for as many."""
    kept, alone = Kept(out, "asynchronous", resume), []
    for name, how in EXCHANGES.items():
        found = kept(
            f"noise only, {name}, {NOISE_ROUNDS} rounds",
            lambda how=how: _noise_only(how),
        )
        for k, alpha in enumerate(ALPHAS):
            values = [found["norm of dual"][k][m] for m in (0, 1, 3)]
            alone.append([name, f"{alpha:g}", *values, found["norm of w"][k][3]])
    heads = ("exchange", "alpha", *(f"dual, round {r}" for r in _shown()), "w, end")
    _write(out / "asynchronous.csv", heads, alone)
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
            f"## Noise alone, {NOISE_ROUNDS:,} rounds",
            f"Ring of six, K = {b.STEPS}, mu = {b.STEP:g}, gradients zero, {NOISE_DIM} "
            "numbers; norms over sigma sqrt(p), which do not depend on p; one seed.",
            grid(heads, alone),
            *_benchmark(kept, rounds, out),
            reading(alone),
        ],
    )


def _benchmark(kept: Kept, rounds: int, out: Path) -> list[str]:
    """The same exchanges on images, if rounds are asked for."""
    if not rounds:
        return []
    problem = functools.cache(b.problem)
    rows = []
    for name, how in EXCHANGES.items():
        key = f"benchmark, {name}, {rounds} rounds"
        if name == "synchronous":
            found = kept(key, functools.partial(_synchronous, rounds, out))
        else:
            found = kept(key, lambda how=how: measure(problem(), how, rounds))
        for k, alpha in enumerate(ALPHAS):
            ends = [found[column][k][3] for column in MEASURES]
            rows.append([name, f"{alpha:g}", *ends])
    heads = ("exchange", "alpha", *MEASURES)
    _write(out / "asynchronous_benchmark.csv", heads, rows)
    words = (
        f"Split 0, l2 = 1e-3, the paper's noise for epsilon = {EPSILON:g} and "
        f"{b.ROUNDS:,} rounds, one seed, both alphas on the same batches."
    )
    told = grid(heads, rows), _gains(rows)
    return [f"## On the benchmark, {rounds:,} rounds", words, *told]


def _gains(rows: Sequence[Sequence[Any]]) -> str:
    """What alpha is worth on images, exchange by exchange."""
    pairs = [(rows[k], rows[k + 1]) for k in range(0, len(rows), 2)]
    gains = ", ".join(
        f"{damped[0]} {100 * (damped[2] - plain[2]):.1f}" for damped, plain in pairs
    )
    return (
        f"Points of accuracy that alpha = {b.ALPHA:g} gains on alpha = 0: {gains}. It "
        "is worth most where letters come at random times and duals wander."
    )


def _synchronous(rounds: int, out: Path) -> dict[str, Any]:
    """As `measure`, but of curves that Figure 2 has too, and may have run."""
    entries = [
        convex.Entry(
            f"alpha={alpha:g}",
            "paper",
            EPSILON,
            convex.dp_norm(alpha, b.paper_noise(EPSILON, alpha)),
        )
        for alpha in ALPHAS
    ]
    part = Part("asynchronous", tuple(entries), rounds, every=rounds // 4)
    lines = lines_of(part.copies(Scale(rounds)), out / "raw", resume=True)
    return {
        name: np.reshape([float(line[name]) for line in lines], (len(ALPHAS), -1))
        for name in MEASURES
    }


def _shown() -> tuple[int, int, int]:
    return NOISE_ROUNDS // 4, NOISE_ROUNDS // 2, NOISE_ROUNDS


def _noise_only(how: dict[str, Any] | bool) -> dict[str, Any]:
    """With noise of standard deviation 1, norms over sqrt(p)."""
    changes = {"noise_std": 1.0, "oracle": tacita.Full()}
    found = measure(silent(), how, NOISE_ROUNDS, **changes)
    unit = math.sqrt(NOISE_DIM)
    return {
        name: values / unit if name.startswith("norm") else values
        for name, values in found.items()
    }


def _write(path: Path, heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A table as CSV."""
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(heads)
        writer.writerows(
            [c if isinstance(c, str) else f"{c:.6g}" for c in row] for row in rows
        )


def reading(alone: Sequence[Sequence[Any]]) -> str:
    """What the duals do, in words."""
    grown = ", ".join(
        f"{name} {end / early:.2f}"
        for name, alpha, early, _, end, _ in alone
        if alpha == "0"
    )
    damped = [row[4] for row in alone if row[1] != "0"]
    return (
        "**The paper's reading.** Without alpha the noise makes duals explode, with it "
        "they are bounded. **Ours.** With alpha = 0 duals grow from round "
        f"{_shown()[0]:,} to {_shown()[2]:,} by these factors, where the root of the "
        f"rounds has 2: {grown}. With alpha = {b.ALPHA:g} they end between "
        f"{min(damped):.2f} and {max(damped):.2f}, whatever the exchange. So the "
        "paper's picture is that of letters at random times, and whether they are used "
        "within the round or from the next one on is a matter of degree. As printed "
        "they share a noise, which neighbours who compare letters take out again: only "
        "fresh noise is accounted."
    )


if __name__ == "__main__":
    script(main)
