"""What a robust rule costs: against its bare arithmetic, and in a round.

Rules join 100 letters of 5 numbers (workload A) and of 100 000, in both precisions;
NumPy sorts the same letters, or multiplies them with each other: no more than that, so
that distances come on top; only where a rule ends in means of all letters by weights
that it found does NumPy take such means too. Then a round of FedAvg with a rule against
the plain round and that arithmetic together. All in processor time and in turns, so
that other programs change little. Run it with `python -m bench.robust`.
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
from bench.turns import on_one_core
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


def fastest(works: dict[str, Callable[[], Any]], times: int = 5) -> dict[str, float]:
    """Processor seconds of the fastest of several calls each, made in turns.

    After one call that compiles.
    """
    took: dict[str, list[float]] = {name: [] for name in works}
    for work in works.values():
        work()
    for _ in range(times):
        for name, work in works.items():
            began = time.process_time()
            work()
            took[name].append(time.process_time() - began)
    return {name: min(each) for name, each in took.items()}


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
    given = Vectors(
        jnp.asarray(rows),
        jnp.ones(LETTERS, bool),
        None,
        jnp.zeros(width, kind),
        jax.random.key(0),
    )

    def joined(rule: RobustRule) -> Callable[[], Any]:
        join = jax.jit(rule.join)
        return lambda: join(given).block_until_ready()

    parts: dict[str, Callable[[], Any]] = {
        "sort": lambda: np.sort(rows, axis=0),
        "products": lambda: rows @ rows.T,
        "mean": lambda: shares[0] @ rows,
        "means": lambda: shares @ rows,
    }
    works = parts | {name: joined(rule) for name, (rule, _) in RULES.items()}
    with threadpool_limits(1):  # threads that wait for others count as work
        took = fastest({name: repeated(work, times) for name, work in works.items()})
    found = {}
    for name, (_, work) in RULES.items():
        least = sum(took[part] for part in work.split(", ")) / times
        each = took[name] / times
        found[name] = {"seconds": each, "bare": least, "ratio": each / least}
        print(
            f"{LETTERS} x {width:<7} {kind.__name__} {name:20} {1e3 * each:9.3f} ms  "
            f"{each / least:6.2f} x NumPy",
            flush=True,
        )
    return found


def rounds(problem: tacita.Problem, count: int, bare: dict) -> dict[str, Any]:
    """Processor seconds of a round, and by the plain round and the bare arithmetic."""

    def run(rule: Any, count: int) -> Callable[[], Any]:
        how = tacita.FedAvg(step_size=0.1, local_steps=5)
        chosen = {"record": (), "aggregation": rule}
        return lambda: tacita.simulate(problem, how, count, **chosen)

    chosen: dict[str, Any] = {"Mean": None} | {k: v[0] for k, v in RULES.items()}
    works = {
        f"{name} {k}": run(rule, k)
        for name, rule in chosen.items()
        for k in (1, 1 + count)
    }
    took = fastest(works, 3)
    each = {n: (took[f"{n} {1 + count}"] - took[f"{n} 1"]) / count for n in chosen}
    found: dict[str, Any] = {"Mean": {"seconds": each.pop("Mean")}}
    plain = found["Mean"]["seconds"]
    for name, seconds in each.items():
        ratio = seconds / (plain + bare[name]["bare"])
        found[name] = {"seconds": seconds, "ratio": ratio}
    return found


def long_letters() -> tacita.Problem:
    """A linear model of 100 000 numbers, two rows for every agent."""
    random = np.random.default_rng(0)
    x = random.standard_normal((2 * LETTERS, 100_000)) / 300
    who = np.arange(2 * LETTERS) // 2
    return tacita.from_arrays(x, random.standard_normal(len(who)), who, model="linear")


def main() -> None:
    """Print and write down."""
    on_one_core()
    with double_precision():
        told: dict[str, Any] = {
            f"100 x {width} {kind.__name__}": rules(width, kind)
            for width in (5, 100_000)
            for kind in (np.float64, np.float32)
        }
    short = tacita.problem.synthetic.logistic(agents=100, features=5, samples=250)
    for name, problem, count in (("5", short, 1000), ("100000", long_letters(), 3)):
        case = f"100 x {name} float64"
        made = told[f"round of FedAvg, {case}"] = rounds(problem, count, told[case])
        for rule, took in made.items():
            ratio = f"{took['ratio']:6.2f} x" if "ratio" in took else ""
            print(f"round, {case} {rule:20} {1e3 * took['seconds']:9.3f} ms  {ratio}")
    OUT.write_text(json.dumps(told, indent=1) + "\n")


if __name__ == "__main__":
    main()
