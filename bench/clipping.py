"""What privacy costs: a round with clipped, noisy gradients against the plain one.

    python -m bench.clipping

Logistic regression as in workload A of `bench.simulator` (100 agents x 250 samples x 5
features, 5 full local steps), wide rows (100 features), softmax regression with
batches of 10, a small network, and convolutions with dense layers behind them, whose
gradients of single records are made in microbatches. Processor time of a round, in
turns in one process; raw results are kept in bench/results/clipping.json.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import tacita
from bench import turns
from bench.simulator import LOCAL_STEPS, STEP, tacita_rounds
from tacita.problem import cnn, mlp

ROUNDS, REPEATS = 50, 15


def private_twin(algorithm: tacita.FedAvg) -> tacita.FedAvg:
    """The same with every record clipped and noise in every local gradient."""
    clipped = tacita.Clipped(norm=1.0, oracle=algorithm.oracle)
    return replace(algorithm, oracle=tacita.Noisy(std=0.01, oracle=clipped))


def compare(
    problem: tacita.Problem, algorithm: tacita.FedAvg, rounds: int = ROUNDS
) -> dict[str, turns.Turn]:
    clipped = tacita.Clipped(norm=1.0, oracle=algorithm.oracle)
    only_clipped = replace(algorithm, oracle=clipped)
    contestants = {
        "plain": algorithm,
        "clipped": only_clipped,
        "clipped and noisy": private_twin(algorithm),
    }
    return {
        name: turns.own_turn(tacita_rounds(problem, each, 1.0, rounds), rounds)
        for name, each in contestants.items()
    }


def logistic(features: int, dtype: str) -> dict[str, turns.Turn]:
    problem = tacita.problem.synthetic.logistic(
        agents=100, features=features, samples=250, l2=0.5, dtype=dtype
    )
    return compare(problem, tacita.FedAvg(step_size=STEP, local_steps=LOCAL_STEPS))


def images(
    model: Any, features: int = 64, agents: int = 20, batch: int = 10, rounds=ROUNDS
) -> dict[str, turns.Turn]:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(agents * 50, features))
    y = rng.integers(0, 10, len(x))
    problem = tacita.from_arrays(
        x, y, np.repeat(np.arange(agents), 50), model=model, dtype=np.float32
    )
    oracle = tacita.Minibatch(size=batch)
    algorithm = tacita.FedAvg(step_size=STEP, local_steps=LOCAL_STEPS, oracle=oracle)
    return compare(problem, algorithm, rounds)


def main() -> None:
    works = {
        f"logistic regression, {features} features, {dtype}": (
            "100 agents of 250 rows, 5 full local steps",
            lambda features=features, dtype=dtype: logistic(features, dtype),
            REPEATS,
        )
        for features in (5, 100)
        for dtype in ("float32", "float64")
    }
    about = "20 agents, 64 features, 10 classes, batches of 10, 5 local steps, float32"
    works["softmax"] = about, lambda: images("softmax"), REPEATS
    works["perceptron 64-32-10"] = about, lambda: images(mlp(64, (32,), 10)), REPEATS
    wide = cnn((28, 28, 1), 10, (32, 64), kernel=5, hidden=(512,))
    works["CNN of FedAvg"] = (
        "1.7 million parameters, 2 agents, batches of 20, 5 local steps, float32",
        lambda: images(wide, 784, 2, 20, rounds=1),
        REPEATS,
    )
    turns.compete("clipping", works, "plain")


if __name__ == "__main__":
    main()
