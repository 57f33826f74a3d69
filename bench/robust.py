"""What a robust rule costs: against its bare arithmetic, and in a round.

Rules join 100 letters of 5 numbers (workload A) and of 100 000, in both precisions;
NumPy sorts the same letters, or multiplies them with each other: no more than that, so
that distances come on top; only where a rule ends in means of all letters by weights
that it found does NumPy take such means too. Then a round of FedAvg with a rule against
the plain round. All in processor time, which other programs do not change much. Run it
with `python -m bench.robust`.
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
from threadpoolctl import threadpool_limits

import tacita
from tacita import aggregation as agg
from tacita.aggregation.robust_rule import RobustRule, Vectors
from tacita.trees import double_precision

LETTERS, LIARS = 100, 10
OUT = Path(__file__).parent / "results" / "robust.json"
RULES: dict[str, tuple[RobustRule, str]] = {
    "TrimmedMean": (agg.TrimmedMean(trim=LIARS), "sort"),
    "Median": (agg.Median(), "sort"),
    "GeometricMedian": (agg.GeometricMedian(), "products, mean"),
    "Krum": (agg.Krum(liars=LIARS), "products"),
    "NNM + TrimmedMean": (
        agg.NearestNeighbourMixing(liars=LIARS, rule=agg.TrimmedMean(trim=LIARS)),
        "products, means, sort",
    ),
}


def fastest(work: Callable[[], Any], times: int = 5) -> float:
    """Processor seconds of the fastest of several calls, after one that compiles."""
    work()
    took = []
    for _ in range(times):
        began = time.process_time()
        work()
        took.append(time.process_time() - began)
    return min(took)


def repeated(work: Callable[[], Any], times: int) -> Callable[[], None]:
    """Work that is too short for the clock, many times over."""

    def many() -> None:
        for _ in range(times):
            work()

    return many


def rules(width: int, kind: type) -> dict[str, dict[str, float]]:
    """Processor seconds of every rule, and by its bare arithmetic."""
    rows = np.random.default_rng(0).standard_normal((LETTERS, width)).astype(kind)
    times = max(1, 10_000 // width)
    shares = np.full((LETTERS, LETTERS), 1 / LETTERS, kind)
    parts = {
        "sort": lambda: np.sort(rows, axis=0),
        "products": lambda: rows @ rows.T,
        "mean": lambda: shares[0] @ rows,
        "means": lambda: shares @ rows,
    }
    with threadpool_limits(1):  # threads that wait for others count as work
        bare = {name: fastest(repeated(part, times)) for name, part in parts.items()}
    found = {}
    for name, (rule, work) in RULES.items():
        given = Vectors(
            jnp.asarray(rows),
            jnp.ones(LETTERS, bool),
            None,
            jnp.zeros(width, kind),
            jax.random.key(0),
        )
        join = jax.jit(rule.join)
        call = repeated(
            lambda join=join, given=given: join(given).block_until_ready(), times
        )
        took = fastest(call) / times
        least = sum(bare[part] for part in work.split(", ")) / times
        found[name] = {"seconds": took, "bare": least, "ratio": took / least}
        print(
            f"{LETTERS} x {width:<7} {kind.__name__} {name:20} {1e3 * took:9.3f} ms  "
            f"{took / least:6.2f} x NumPy",
            flush=True,
        )
    return found


def rounds() -> dict[str, float]:
    """Seconds of a round of workload A, plain and with a rule."""
    problem = tacita.problem.synthetic.logistic(agents=100, features=5, samples=250)
    chosen: dict[str, Any] = {"mean": None} | {k: v[0] for k, v in RULES.items()}
    found = {}
    for name, rule in chosen.items():

        def run(count: int, rule: Any = rule) -> float:
            began = time.process_time()
            how = tacita.FedAvg(step_size=0.1, local_steps=5)
            tacita.simulate(problem, how, count, record=(), aggregation=rule)
            return time.process_time() - began

        run(1)
        short, long = min(run(1) for _ in range(3)), min(run(1001) for _ in range(3))
        found[name] = (long - short) / 1000
    return found


def main() -> None:
    """Print and write down."""
    with double_precision():
        told: dict[str, Any] = {
            f"100 x {width} {kind.__name__}": rules(width, kind)
            for width in (5, 100_000)
            for kind in (np.float64, np.float32)
        }
    told["round of FedAvg"] = rounds()
    for name, took in told["round of FedAvg"].items():
        print(f"round of FedAvg        {name:20} {1e3 * took:9.3f} ms")
    OUT.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
