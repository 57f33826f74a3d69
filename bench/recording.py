"""What records cost by default: rounds with them against rounds without.

    python -m bench.recording

How often is recorded is estimated from shapes (`tacita.runtime.recording`); here it is
seen whether that holds: at most 1.3 times the processor time of rounds that are not
recorded. Both in turns, medians, written to bench/results/recording.json.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import tacita
from tacita import keys
from tacita.problem import mlp, synthetic
from tacita.runtime import engine, recording
from tacita.runtime.measure import DEFAULT_RECORD
from tacita.runtime.ready import make_plan, make_world, prepare

MOST, REPEATS = 1.3, 7
RESULT = Path(__file__).parent / "results" / "recording.json"
Work = tuple[str, tacita.Problem, Any, Any]


def rows(agents: int, each: int, features: int, model: Any) -> tacita.Problem:
    rng = np.random.default_rng(0)
    x = rng.random((agents * each, features), np.float32)
    y = rng.integers(0, 10, agents * each)
    return tacita.from_arrays(x, y, np.repeat(np.arange(agents), each), model=model)


def works() -> Iterator[Work]:
    steps = tacita.FedAvg(step_size=0.1, local_steps=5)
    small = tacita.FedAvg(
        step_size=0.1, local_steps=5, oracle=tacita.Minibatch(size=10)
    )
    yield "A: logistic, 100 agents, all active", synthetic.logistic(), steps, 1.0
    yield "README: 20 of 100 active", synthetic.logistic(), steps, 20
    many = synthetic.linear(agents=10_000, features=10, samples=10)
    slow = tacita.FedAvg(step_size=0.01, local_steps=5)
    yield "linear, 10 of 10,000 active", many, slow, 10
    many = synthetic.logistic(agents=10_000, features=5, samples=20)
    yield "logistic, 10 of 10,000 active", many, steps, 10
    yield "B: softmax, 100 of 1,000 active", rows(1000, 50, 784, "softmax"), small, 100
    network = mlp(64, (32,), 10)
    yield "perceptron, 10 of 200 active", rows(200, 50, 64, network), small, 10


@tacita.trees.in_double_precision
def rounds_of(work: Work, every: int, record: tuple[str, ...]) -> Callable[[], float]:
    """A function that does rounds and tells the processor time of one."""
    _, problem, algorithm, participation = work
    ready = prepare(problem, algorithm)
    plan = make_plan(problem, ready, record, None, None)
    world, base = make_world(problem, ready, participation), keys.from_seed(0)
    start = jnp.asarray(problem.start)
    state = {"carry": engine.begin(plan, world, ready, base, start)}
    records = -(-100 // every)

    @tacita.trees.in_double_precision
    def work_once() -> float:
        book = jax.device_put(np.zeros((len(record), engine.CAPACITY)))
        began = time.process_time()
        told = plan, world, ready, base, 0, state["carry"], book
        done = engine.advance(*told, records, every, 0.0, None)
        jax.block_until_ready(done)
        state["carry"] = done[0]
        return (time.process_time() - began) / (records * every)

    return work_once


@tacita.trees.in_double_precision
def chosen(work: Work) -> int:
    _, problem, algorithm, participation = work
    ready = prepare(problem, algorithm)
    world = make_world(problem, ready, participation)
    return recording.of(problem, ready, world, DEFAULT_RECORD, None).rounds


def main() -> None:
    found = {}
    for work in works():
        every = chosen(work)
        plain, told = rounds_of(work, every, ()), rounds_of(work, every, DEFAULT_RECORD)
        times = [(plain(), told()) for _ in range(REPEATS + 1)][1:]
        bare, full = (statistics.median(column) for column in zip(*times, strict=True))
        found[work[0]] = {
            "record_every": every,
            "ms_without": round(1e3 * bare, 4),
            "ms_by_default": round(1e3 * full, 4),
            "ratio": round(full / bare, 3),
        }
        print(work[0], found[work[0]], flush=True)
    RESULT.write_text(json.dumps(found, indent=1) + "\n")
    worst = max(one["ratio"] for one in found.values())
    print(f"at most {worst:.2f} times the rounds alone; the aim is {MOST}")


if __name__ == "__main__":
    main()
