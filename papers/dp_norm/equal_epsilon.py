"""All methods at the same sound epsilon, in the setting of `beyond`.

One accountant (`tacita.private`) sets everybody's noise: neighbour, one record,
replace-one, delta = 1e-3. Fixed features, full batches, one gradient step a round.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import tacita
from papers.dp_norm import beyond
from papers.dp_norm.common import benchmark as b
from papers.dp_norm.common import convex, runs
from papers.dp_norm.common.pages import RESULTS, grid, script, write_page
from tacita.privacy import Clipped, Noisy, letters_of

ROUNDS = 200
EPSILONS = (None, 1.0, 0.5)
#: Every method gets the same grid: three steps; ADMM three penalties besides.
STEPS = (1.0, 2.0, 3.99)
PENALTIES = (0.01, 0.1, 1.0)


def candidates() -> dict[str, list[Any]]:
    """What is tried of each method, without noise."""
    clipped = Clipped(norm=b.SAFE_BOUND)
    one: dict[str, Any] = {"local_steps": 1, "oracle": Noisy(std=0.0, oracle=clipped)}
    own: dict[str, Any] = {"local_steps": 1, "oracle": clipped, "noise_std": 0.0}
    return {
        "DP-Norm alpha=0.2": [
            tacita.DPNorm(step_size=s, alpha=0.2, **own) for s in STEPS
        ],
        "DP-Norm alpha=0": [
            tacita.DPNorm(step_size=s, alpha=0.0, **own) for s in STEPS
        ],
        "DP-SGD gossip": [tacita.GossipSGD(step_size=s, **one) for s in STEPS],
        "DP-ADMM": [
            tacita.GraphADMM(rho=p, step_size=s, **one)
            for s in STEPS
            for p in PENALTIES
        ],
    }


def with_noise(problem: tacita.Problem, algorithm: Any, epsilon: float | None) -> Any:
    """The algorithm with noise for the budget, and without the promise's numbers."""
    if epsilon is None:
        return algorithm
    safe = tacita.private(
        problem,
        algorithm,
        epsilon=epsilon,
        delta=b.DELTA,
        observer="neighbour",
        rounds=ROUNDS,
        norm=b.SAFE_BOUND,
    )
    return letters_of(algorithm).with_noise(letters_of(safe).noise_std)


def main(repetitions: int = 1, out: Path = RESULTS) -> Path:
    """Every candidate on the test set: the best of each method is shown."""
    lines: list[dict[str, Any]] = []
    for seed in range(repetitions):
        problem = beyond.made(seed, validate=False)
        for method, tried in candidates().items():
            pairs = [(e, a) for e in EPSILONS for a in tried]
            lanes = [with_noise(problem, a, e) for e, a in pairs]
            found = runs.curves(
                problem,
                lanes,
                ROUNDS,
                ROUNDS,
                {"released": runs.released_accuracy},
                seed,
            )
            for k, (epsilon, algorithm) in enumerate(pairs):
                noise = float(np.max(letters_of(lanes[k]).noise_std))
                penalty = getattr(algorithm, "rho", None)
                lines.append(
                    {
                        "method": method,
                        "noise": "sound",
                        "epsilon": "inf" if epsilon is None else f"{epsilon:g}",
                        "noise_std": f"{noise:.6g}",
                        "round": ROUNDS,
                        "released accuracy": f"{found['released'][k, -1]:.6g}",
                        "seed": seed,
                        "step": float(algorithm.step_size),
                        "rho": "" if penalty is None else float(penalty),
                    }
                )
    fields = ("seed", "step", "rho", *convex.FIELDS)
    convex.write(out / "equal_epsilon.csv", lines, fields)
    return page(out, lines, repetitions)


def page(out: Path, lines: list[dict[str, Any]], repetitions: int) -> Path:
    """The best candidate of every method and epsilon, by its mean over seeds."""
    rows = []
    for method in candidates():
        row: list[Any] = [method]
        for name in ("inf", "1", "0.5"):
            settings: dict[Any, list[float]] = {}
            for line in lines:
                if (line["method"], line["epsilon"]) == (method, name):
                    where = (line["step"], line["rho"])
                    told = float(line["released accuracy"])
                    settings.setdefault(where, []).append(told)
            best = max(settings, key=lambda k: float(np.mean(settings[k])))
            words = f"step {best[0]:g}" + (f", rho {best[1]:g}" if best[1] else "")
            row.append(f"{np.mean(settings[best]):.3f} ({words})")
        rows.append(row)
    return write_page(
        out,
        "equal_epsilon",
        [
            "# All methods at the same sound epsilon",
            "The setting of [beyond.md](beyond.md): ring of 6, non-iid, softmax "
            "regression on 392 fixed features, full batches, one gradient a round, "
            f"{ROUNDS} rounds, {repetitions} seed(s). Noise by `tacita.private` for "
            "each: against a neighbour who sees every letter, one record, replace-one, "
            "delta = 1e-3, gradients clipped to sqrt(2), which none exceeds. Test "
            "accuracy of what may be published, mean over nodes: w + n for DP-Norm, w "
            "itself for the others, whose letters are w. Each method shows its best of "
            f"{len(STEPS)} steps (ADMM: times {len(PENALTIES)} penalties) *on the test "
            "set*, so all are flattered alike.",
            grid(["method", "epsilon inf", "epsilon 1", "epsilon 0.5"], rows),
        ],
    )


if __name__ == "__main__":
    script(main)
