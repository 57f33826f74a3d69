"""What a robust rule costs: against its bare arithmetic, and in a round.

Rules join 100 letters of 5 numbers (workload A) and of 100 000; NumPy sorts the same
letters, or multiplies them with each other. Then a round of FedAvg with a rule against
the plain round. Run it with `python -m bench.robust`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import tacita
from tacita import aggregation as agg
from tacita.aggregation.robust_rule import RobustRule, Vectors
from tacita.trees import double_precision

LETTERS, LIARS = 100, 10
OUT = Path(__file__).parent / "results" / "robust.json"
RULES: dict[str, tuple[RobustRule, str]] = {
    "TrimmedMean": (agg.TrimmedMean(trim=LIARS), "sort"),
    "Median": (agg.Median(), "sort"),
    "GeometricMedian": (agg.GeometricMedian(), "distances"),
    "Krum": (agg.Krum(liars=LIARS), "distances"),
    "NNM + TrimmedMean": (
        agg.NearestNeighbourMixing(liars=LIARS, rule=agg.TrimmedMean(trim=LIARS)),
        "both",
    ),
}


def fastest(work: Callable[[], Any], times: int = 7) -> float:
    """Seconds of the fastest of several calls, after one that compiles."""
    work()
    took = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        took.append(time.perf_counter() - began)
    return min(took)


def bare(letters: np.ndarray, kind: str) -> float:
    """NumPy's own sort, or its product of all letters."""
    sort = fastest(lambda: np.sort(letters, axis=0))
    product = fastest(lambda: letters @ letters.T)
    return {"sort": sort, "distances": product, "both": sort + product}[kind]


def rules(width: int) -> dict[str, dict[str, float]]:
    """Seconds of every rule, and by its bare arithmetic."""
    letters = np.random.default_rng(0).standard_normal((LETTERS, width))
    found = {}
    for name, (rule, kind) in RULES.items():
        given = Vectors(
            jnp.asarray(letters),
            jnp.ones(LETTERS, bool),
            None,
            jnp.zeros(width),
            jax.random.key(0),
        )
        join = jax.jit(rule.join)
        took = fastest(lambda join=join, given=given: join(given).block_until_ready())
        least = bare(letters, kind)
        found[name] = {"seconds": took, "bare": least, "ratio": took / least}
    return found


def rounds() -> dict[str, float]:
    """Seconds of a round of workload A, plain and with a rule."""
    problem = tacita.problem.synthetic.logistic(agents=100, features=5, samples=250)
    chosen: dict[str, Any] = {"mean": None} | {k: v[0] for k, v in RULES.items()}
    found = {}
    for name, rule in chosen.items():

        def run(count: int, rule: Any = rule) -> float:
            began = time.perf_counter()
            how = tacita.FedAvg(step_size=0.1, local_steps=5)
            tacita.simulate(problem, how, count, record=(), aggregation=rule)
            return time.perf_counter() - began

        run(1)
        short, long = min(run(1) for _ in range(3)), min(run(1001) for _ in range(3))
        found[name] = (long - short) / 1000
    return found


def main() -> None:
    """Print and write down."""
    with double_precision():
        told: dict[str, Any] = {f"100 x {d}": rules(d) for d in (5, 100_000)}
    for size, table in told.items():
        for name, row in table.items():
            print(
                f"{size:14} {name:20} {1e3 * row['seconds']:9.3f} ms  "
                f"{row['ratio']:6.2f} x NumPy"
            )
    told["round of FedAvg"] = rounds()
    for name, took in told["round of FedAvg"].items():
        print(f"round          {name:20} {1e3 * took:9.3f} ms")
    OUT.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
