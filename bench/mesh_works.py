"""The works of `bench.mesh`: problem, algorithm, and how many rounds make a turn."""

from __future__ import annotations

import functools
import time
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import tacita
from tacita.problem import cnn
from tacita.problem.graph import grid

FEATURES = 10


class Work(NamedTuple):
    """What a turn does."""

    problem: Any
    algorithm: Any
    options: dict[str, Any]
    rounds: int


def seeds_of_logistic() -> Work:
    problem = tacita.problem.synthetic.logistic(
        agents=100, features=5, samples=250, l2=0.5, dtype=np.float32
    )
    algorithm = tacita.FedAvg(step_size=0.1, local_steps=5)
    return Work(problem, algorithm, {"seeds": 100}, 50)


def softmax() -> Work:
    rng = np.random.default_rng(0)
    x = rng.random((50_000, 784), dtype=np.float32)
    y, owner = rng.integers(0, 10, 50_000), np.repeat(np.arange(1000), 50)
    problem = tacita.from_arrays(x, y, owner, model="softmax", dtype=np.float32)
    batches = tacita.Minibatch(size=10)
    algorithm = tacita.FedAvg(step_size=0.1, local_steps=5, oracle=batches)
    return Work(problem, algorithm, {"participation": 100}, 50)


def images() -> Work:
    rng = np.random.default_rng(0)
    x, y = rng.random((80, 784), np.float32), rng.integers(0, 10, 80)
    model = cnn((28, 28, 1), 10, (32, 64))
    problem = tacita.from_arrays(x, y, np.arange(80) % 2, model=model)
    oracle = tacita.Minibatch(size=20, sampling="with_replacement")
    algorithm = tacita.FedAvg(step_size=0.05, local_steps=10, oracle=oracle)
    return Work(problem, algorithm, {}, 20)


def on_grid(side: int, samples: int, algorithm: Any) -> Work:
    """Logistic regression at the nodes of a square grid, labels from nearby models."""
    rng, nodes = np.random.default_rng(0), side**2
    owner = np.repeat(np.arange(nodes), samples)
    x = rng.standard_normal((len(owner), FEATURES), np.float32)
    slope = np.linspace(-1, 1, side)[owner // side]
    y = np.sign(x[:, 0] + slope * x[:, 1])
    problem = tacita.from_arrays(
        x, y, owner, model="logistic", l2=0.1, graph=grid(side, side), dtype=np.float32
    )
    return Work(problem, algorithm, {}, 40)


def descent_on_grid() -> Work:
    return on_grid(250, 20, tacita.FedGD(alpha=0.1, step_size=0.1))


def gossip_on_grid() -> Work:
    return on_grid(100, 20, tacita.GossipSGD(step_size=0.1, local_steps=5))


#: By title: what it is, and how it is made.
WORKS: dict[str, tuple[str, Callable[[], Work]]] = {
    "A x 100 seeds": (
        "100 seeds of logistic regression: 100 agents of 250 samples, 5 features, 5 "
        "local steps",
        seeds_of_logistic,
    ),
    "B": (
        "softmax regression 784 x 10: 1,000 agents of 50 samples, 100 active, batches "
        "of 10, 5 local steps",
        softmax,
    ),
    "C": ("CNN (32, 64) on 28 x 28: 2 agents, 10 steps of batch 20 each", images),
    "G": (
        "FedGD on a grid of 250 x 250 nodes, each with 20 samples of 10 features; one "
        "letter to all neighbours",
        descent_on_grid,
    ),
    "G, one letter an edge": (
        "GossipSGD on a grid of 100 x 100 nodes, 20 samples of 10 features, 5 local "
        "steps",
        gossip_on_grid,
    ),
}


@functools.lru_cache(maxsize=1)  # the rows of one work at a time
def _made(title: str) -> Work:
    return WORKS[title][1]()


def turn(title: str, mesh: int | None) -> tuple[float, float, str]:
    """Milliseconds of a round by the clock and by the processor, and the model.

    What it takes to begin and to end counts for the processor only.
    """
    work = _made(title)
    told = {"seed": 1, "record": (), "progress": False, "mesh": mesh, **work.options}
    began = time.process_time()
    run = tacita.simulate(work.problem, work.algorithm, work.rounds, **told)
    spent, seconds = time.process_time() - began, run.info["seconds"]["total"]
    per_round = 1e3 / work.rounds
    return seconds * per_round, spent * per_round, digest(run.params)


def digest(model: np.ndarray) -> str:
    """A short name for the bits of a model."""
    return f"{zlib.crc32(model.tobytes()):08x}"
