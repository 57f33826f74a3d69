"""What tighter accounts and a noise schedule buy: accuracy at equal epsilon.

    python -m bench.accuracy [--seeds 10] [--out bench/results]

Adult (logistic, public columns) and Fashion-MNIST (softmax on 14 x 14 pixels), 20 and
100 agents, DP-SGD with momentum 0.9. Epsilon is against the coordinator, replace-one.

* schedule: full gradients, constant noise against `schedule="prefix"`, for the last
  model and for a fading average of models;
* account: batches without replacement, noise set by Renyi divergences (before) and by
  loss distributions (after).

The step size is chosen on a fifth of the training rows with constant noise, and used
by both of a pair. Pairs have the same seeds, so the same draws: the gain is a mean of
differences, with its standard error.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tacita
from papers.fed_spd.common.adult import tables
from tacita.encoding import unit_rows
from tacita.privacy import WithoutReplacement, noise_for

RESULTS = Path(__file__).parent / "results"
EPSILONS = (0.5, 1.0)
AGENTS = (20, 100)
ROUNDS = 80
MOMENTUM = 0.9
#: Of the published model, for the second comparison of schedules.
AVERAGE = 0.95
STEPS = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
BATCH = 32


class Rows(NamedTuple):
    """Rows to train on and rows to judge by."""

    x: np.ndarray
    y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray

    def dealt(self, agents: int, model: str) -> tacita.Problem:
        """The rows to train on, dealt to so many agents."""
        order = np.random.default_rng(2).permutation(len(self.y))
        return tacita.from_arrays(
            self.x[order],
            self.y[order],
            np.arange(len(self.y)) % agents,
            model=model,
            dtype=np.float32,
            classes=None if model == "logistic" else range(10),
        )


class Task(NamedTuple):
    """A data set, and how it is judged."""

    name: str
    model: str
    delta: float
    tuning: Rows
    test: Rows


def adult() -> Task:
    tuning, test = (Rows(*table) for table in tables("public"))
    return Task("Adult", "logistic", 1e-4, tuning, test)


def fashion() -> Task:
    data: Any = tacita.data.load("fashion-mnist")

    def small(x: np.ndarray) -> np.ndarray:
        pixels = np.asarray(x, float).reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4))
        flat = pixels.reshape(len(pixels), -1)
        # Centred by a round figure, with an intercept; no longer than 1.
        return unit_rows(np.column_stack([np.ones(len(flat)), flat / flat.max() - 0.3]))

    x, test_x = small(data.x), small(data.test_x)
    order = np.random.default_rng(1).permutation(len(x))
    held, kept = np.split(order, [len(x) // 5])
    tuning = Rows(x[kept], data.y[kept], x[held], data.y[held])
    test = Rows(x, data.y, test_x, data.test_y)
    return Task("Fashion-MNIST", "softmax", 1e-5, tuning, test)


def accuracies(
    rows: Rows, problem: tacita.Problem, algorithm: Any, seeds: int
) -> np.ndarray:
    """On the rows to judge by, one for every seed."""
    run = tacita.simulate(
        problem, algorithm, rounds=ROUNDS, seeds=list(range(seeds)), record=()
    )
    scores = rows.test_x @ run.params.reshape(seeds, -1, rows.test_x.shape[1]).swapaxes(
        1, 2
    )
    if scores.shape[-1] == 1:
        return np.mean((scores[..., 0] > 0) == (rows.test_y > 0), axis=-1)
    return np.mean(scores.argmax(axis=-1) == rows.test_y, axis=-1)


def best_step(task: Task, agents: int, made: Any) -> float:
    """On validation rows, with constant noise; three seeds each."""
    problem = task.tuning.dealt(agents, task.model)
    found = [
        accuracies(task.tuning, problem, made(problem, step), 3).mean()
        for step in STEPS
    ]
    return STEPS[int(np.argmax(found))]


def last_model(task: Task, epsilon: float, schedule: str) -> Any:
    """Full gradients; the last model is published."""
    return _scheduled(task, epsilon, schedule, 0.0)


def mean_model(task: Task, epsilon: float, schedule: str) -> Any:
    """Full gradients; a fading average of models is published."""
    return _scheduled(task, epsilon, schedule, AVERAGE)


def _scheduled(task: Task, epsilon: float, schedule: str, average: float) -> Any:
    def made(problem: tacita.Problem, step: float) -> Any:
        return tacita.private(
            problem,
            tacita.DPSGD(step_size=step, momentum=MOMENTUM, average=average),
            epsilon=epsilon,
            delta=task.delta,
            observer="coordinator",
            rounds=ROUNDS,
            schedule=schedule,
        )

    return made


def batched(task: Task, epsilon: float, method: str) -> Any:
    """Batches; the noise comes from one of two accounts."""

    def made(problem: tacita.Problem, step: float) -> Any:
        fewest = int(problem.counts.min())
        std = noise_for(
            epsilon=epsilon,
            delta=task.delta,
            relation="replace_one",
            sensitivity=2 / BATCH,
            rounds=ROUNDS,
            sampling=WithoutReplacement(BATCH, fewest),
            method=method,
            tolerance=1e-3,
        )
        rows = tacita.Minibatch(size=BATCH, sampling="without_replacement")
        oracle = tacita.Noisy(std=std, oracle=tacita.Clipped(norm=1.0, oracle=rows))
        return tacita.DPSGD(step_size=step, momentum=MOMENTUM, oracle=oracle)

    return made


#: What is compared: how an algorithm is made, before and after.
PAIRS = (
    (last_model, "uniform", "prefix"),
    (mean_model, "uniform", "prefix"),
    (batched, "rdp", "pld"),
)


def measure(seeds: int) -> list[list[str]]:
    """One line for every task, number of agents, epsilon and pair."""
    lines = []
    for task in (adult(), fashion()):
        for agents in AGENTS:
            problem = task.test.dealt(agents, task.model)
            for make, before, after in PAIRS:
                for epsilon in EPSILONS:
                    step = best_step(task, agents, make(task, epsilon, before))
                    old, new = (
                        accuracies(
                            task.test,
                            problem,
                            make(task, epsilon, how)(problem, step),
                            seeds,
                        )
                        for how in (before, after)
                    )
                    gain, error = np.mean(new - old), np.std(new - old, ddof=1)
                    lines.append(
                        [
                            *(task.name, str(agents), f"{epsilon:g}"),
                            f"{make.__name__.replace('_', ' ')}: {before} -> {after}",
                            *(f"{step:g}", f"{old.mean():.4f}", f"{new.mean():.4f}"),
                            f"{gain:+.4f} ± {error / np.sqrt(seeds):.4f}",
                        ]
                    )
                    print(" | ".join(lines[-1]), flush=True)
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path, default=RESULTS)
    asked = parser.parse_args()
    heads = ["data", "agents", "epsilon", "what", "step", "before", "after", "gain"]
    rows = [heads, ["---"] * len(heads), *measure(asked.seeds)]
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    asked.out.mkdir(parents=True, exist_ok=True)
    page = asked.out / "accuracy.md"
    page.write_text(
        f"# Accuracy at equal epsilon\n\n`python -m bench.accuracy --seeds "
        f"{asked.seeds}`: {ROUNDS} rounds, test accuracy, mean over seeds; the gain "
        "is over pairs with the same seed, with its standard error.\n\n"
        f"{table}\n"
    )
    print(page)


if __name__ == "__main__":
    main()
