"""What privacy costs: a round with clipped, noisy gradients against the plain one.

    python -m bench.clipping

Logistic regression as in workload A of `bench.simulator` (100 agents x 250 samples x 5
features, 5 full local steps), wide rows (100 features), softmax regression with
batches of 10, and a small network, whose per-example gradients are made in
microbatches. Medians after compilation, in turns in one process; ratios are printed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import tacita
from bench.simulator import LOCAL_STEPS, STEP, tacita_rounds
from bench.timing import in_turns, table

ROUNDS = 50


def private_twin(algorithm: tacita.FedAvg) -> tacita.FedAvg:
    """The same with every record clipped and noise in every local gradient."""
    clipped = tacita.Clipped(norm=1.0, oracle=algorithm.oracle)
    return replace(algorithm, oracle=tacita.Noisy(std=0.01, oracle=clipped))


def compare(title: str, problem: tacita.Problem, algorithm: tacita.FedAvg) -> str:
    clipped = tacita.Clipped(norm=1.0, oracle=algorithm.oracle)
    only_clipped = replace(algorithm, oracle=clipped)
    contestants = {
        "plain": algorithm,
        "clipped": only_clipped,
        "clipped and noisy": private_twin(algorithm),
    }
    work = {
        name: tacita_rounds(problem, each, 1.0, ROUNDS)
        for name, each in contestants.items()
    }
    return table(title, in_turns(work, repeats=25, per_call=ROUNDS), "plain")


def logistic(features: int, dtype) -> str:
    problem = tacita.problem.synthetic.logistic(
        agents=100, features=features, samples=250, l2=0.5, dtype=dtype
    )
    algorithm = tacita.FedAvg(step_size=STEP, local_steps=LOCAL_STEPS)
    name = f"logistic regression, {features} features, {np.dtype(dtype).name}"
    return compare(name, problem, algorithm)


def images(model: str | None) -> str:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20 * 50, 64))
    y = rng.integers(0, 10, len(x))
    made = model or tacita.problem.model.networks.mlp(64, (32,), 10)
    problem = tacita.from_arrays(
        x, y, np.repeat(np.arange(20), 50), model=made, dtype=np.float32
    )
    batch = tacita.Minibatch(size=10)
    algorithm = tacita.FedAvg(step_size=STEP, local_steps=LOCAL_STEPS, oracle=batch)
    return compare(f"{model or 'mlp'}, batches of 10, float32", problem, algorithm)


def main() -> None:
    for features in (5, 100):
        for dtype in (np.float32, np.float64):
            print(logistic(features, dtype))
    print(images("softmax"))
    print(images(None))


if __name__ == "__main__":
    main()
