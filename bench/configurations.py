"""Random configurations of every private algorithm, for `bench.truth`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import tacita
from tacita.algorithm.solvers import Accelerated, GradientDescent
from tacita.privacy import Clipped, Noisy
from tacita.problem.graph import Graph
from tacita.problem.oracles import SAMPLINGS
from tacita.schedule import Polynomial


@dataclass(frozen=True)
class Shape:
    """All of a configuration that compiles a program of its own."""

    algorithm: str
    counts: tuple[int, ...]  # rows of every agent
    l2: float
    rounds: int
    steps: int
    own: bool  # whether numbers differ between agents
    sampling: str | None
    participation: str
    relation: str | None
    curved: bool
    graph: str
    weights: str
    asynchronous: bool
    bounded: bool  # rows have a public bound, so that more theorems apply
    scheduled: bool  # noise differs between rounds

    @property
    def agents(self) -> int:
        """How many."""
        return len(self.counts)


class Draw:
    """Random numbers for one configuration."""

    def __init__(self, rng: np.random.Generator, shape: Shape) -> None:
        self.rng, self.shape = rng, shape
        self.norm = self.number(0.5, 2.0)

    def one(self, low: float, high: float) -> float:
        """Log-uniform, common to all."""
        return float(np.exp(self.rng.uniform(np.log(low), np.log(high))))

    def number(self, low: float, high: float) -> Any:
        """The same, for each agent if the shape says so."""
        if not self.shape.own:
            return self.one(low, high)
        return np.array([self.one(low, high) for _ in range(self.shape.agents)])

    def clipped(self) -> Clipped:
        """Gradients of one row, bounded."""
        if self.shape.sampling is None:
            return Clipped(norm=self.norm)
        batch = tacita.Minibatch(size=2, sampling=self.shape.sampling)
        return Clipped(norm=self.norm, oracle=batch)

    def noisy(self) -> Noisy:
        """With noise in the gradient."""
        schedule = None
        if self.shape.scheduled:
            weights = [self.one(0.2, 5.0) for _ in range(self.shape.rounds)]
            schedule = tacita.NoiseSchedule(weights=weights)
        return Noisy(std=self.noise(), oracle=self.clipped(), schedule=schedule)

    def noise(self) -> Any:
        """Noise of the size of what a row changes."""
        return self.number(0.5, 4.0) * 2 * self.norm / min(self.shape.counts)


Make = Callable[[Draw], Any]


def _solver(d: Draw) -> Any:
    return GradientDescent(step_size=d.number(0.05, 0.5), local_steps=d.shape.steps)


ON_SERVERS: dict[str, Make] = {
    "ServerGD": lambda d: tacita.ServerGD(step_size=d.one(0.05, 0.5), oracle=d.noisy()),
    "DPSGD": lambda d: tacita.DPSGD(
        step_size=d.one(0.05, 0.5),
        momentum=d.rng.uniform(0, 0.9),
        average=d.rng.uniform(0, 0.9),
        oracle=d.noisy(),
    ),
    "FedAvg": lambda d: tacita.FedAvg(
        step_size=d.number(0.02, 0.5),
        local_steps=d.shape.steps,
        weights=d.shape.weights,
        oracle=d.noisy(),
    ),
    "FedProx": lambda d: tacita.FedProx(
        eta=d.one(0.3, 3),
        step_size=d.number(0.05, 0.3),
        local_steps=d.shape.steps,
        weights=d.shape.weights,
        oracle=d.noisy(),
    ),
    "FedPLT": lambda d: tacita.FedPLT(
        rho=d.one(0.3, 3), solver=_solver(d), oracle=d.noisy()
    ),
    "FedPLT, accelerated": lambda d: tacita.FedPLT(
        rho=d.one(0.3, 3),
        solver=Accelerated(
            local_steps=d.shape.steps, strong_convexity=0.1, smoothness=2.0
        ),
        oracle=d.noisy(),
    ),
    "FedPD": lambda d: tacita.FedPD(
        eta=d.one(0.3, 3),
        step_size=d.number(0.05, 0.3),
        local_steps=d.shape.steps,
        oracle=d.noisy(),
    ),
    "FedLin": lambda d: tacita.FedLin(
        step_size=d.number(0.05, 0.3), local_steps=d.shape.steps, oracle=d.noisy()
    ),
    "SCAFFOLD": lambda d: tacita.SCAFFOLD(
        step_size=d.number(0.05, 0.3),
        local_steps=d.shape.steps,
        server_step=d.one(0.3, 1.5),
        oracle=d.noisy(),
    ),
    "LED": lambda d: tacita.LED(
        step_size=d.one(0.05, 0.3),
        beta=d.one(0.1, 1.0),
        local_steps=d.shape.steps,
        oracle=d.noisy(),
    ),
    "FiveGCS": lambda d: tacita.FiveGCS(
        strong_convexity=0.5,
        gamma=d.one(0.1, 1),
        tau=d.one(0.1, 1),
        solver=_solver(d),
        oracle=d.noisy(),
    ),
    "FedSplit": lambda d: tacita.FedSplit(
        rho=d.one(0.3, 3), solver=_solver(d), oracle=d.noisy()
    ),
    "DPADMM": lambda d: tacita.DPADMM(
        rho=d.one(0.3, 3),
        step_size=Polynomial(start=d.number(0.05, 0.5), power=d.rng.uniform(0, 1)),
        oracle=d.noisy(),
    ),
    "DPFedAvg": lambda d: tacita.DPFedAvg(
        step_size=d.number(0.02, 0.5),
        local_steps=d.shape.steps,
        noise_std=d.noise() * d.shape.steps,
        oracle=d.clipped(),
    ),
    "FedSPD": lambda d: tacita.FedSPD(
        rho=d.one(0.3, 3),
        gamma=Polynomial(start=d.number(1, 10), power=-d.rng.uniform(0, 0.5)),
        local_steps=d.shape.steps,
        noise_std=d.noise() * d.shape.steps,
        oracle=d.clipped(),
    ),
    "FedSPD, hidden": lambda d: tacita.FedSPD(
        rho=d.one(0.3, 3),
        gamma=Polynomial(start=d.number(1, 10), power=-d.rng.uniform(0, 0.5)),
        local_steps=d.shape.steps,
        noise_std=d.noise() * d.shape.steps,
        oracle=d.clipped(),
        state="hidden",
        paper_noise=True,
    ),
    "ClientDPFedAvg": lambda d: tacita.ClientDPFedAvg(
        clip=d.one(0.3, 3),
        step_size=d.number(0.05, 0.3),
        local_steps=d.shape.steps,
        noise_std=d.one(1, 6),
    ),
}
ON_GRAPHS: dict[str, Make] = {
    "FedGD": lambda d: tacita.FedGD(
        alpha=d.one(0.05, 0.5), step_size=d.number(0.05, 0.3), oracle=d.noisy()
    ),
    "GossipSGD": lambda d: _gossip(d),
    "GossipSGD, in step": lambda d: _gossip(d),
    "GraphADMM": lambda d: tacita.GraphADMM(
        rho=d.one(0.1, 1),
        step_size=d.number(0.05, 0.3),
        local_steps=d.shape.steps,
        oracle=d.noisy(),
    ),
    "GradientTracking": lambda d: tacita.GradientTracking(
        step_size=d.number(0.02, 0.1), oracle=d.noisy()
    ),
    "PrimalDual": lambda d: tacita.PrimalDual(
        alpha=d.one(0.1, 1), rho=d.one(0.3, 3), solver=_solver(d), oracle=d.noisy()
    ),
    "FedRelax": lambda d: tacita.FedRelax(
        alpha=d.one(0.1, 1), solver=_solver(d), oracle=d.noisy()
    ),
    "DPNorm": lambda d: _dp_norm(d, "synchronous"),
    "DPNorm, asynchronous": lambda d: _dp_norm(d, "asynchronous"),
}


def _gossip(d: Draw) -> Any:
    return tacita.GossipSGD(
        step_size=d.number(0.05, 0.5), local_steps=d.shape.steps, oracle=d.noisy()
    )


def _dp_norm(d: Draw, exchange: str) -> Any:
    step = d.one(0.05, 0.5)
    return tacita.DPNorm(
        step_size=step,
        local_steps=d.shape.steps,
        alpha=d.one(0.1, 2) if d.rng.uniform() < 0.5 else 0.0,
        noise_std=step * d.noise(),
        exchange=exchange,
        oracle=d.clipped(),
    )


MAKE = ON_SERVERS | ON_GRAPHS
#: Algorithms that need everybody in every round.
WHOLE = ("FedPD", "FedLin", "LED", "FedSplit", "GraphADMM", "GradientTracking")
#: Whose last models are bounded by mixing, on all of these conditions.
IN_STEP = "GossipSGD, in step"


def draw_shape(rng: np.random.Generator, algorithm: str) -> Shape:
    """Counts and words of a configuration."""
    sampling, steady = None, algorithm == IN_STEP
    if rng.uniform() < 0.35 and algorithm not in ("ClientDPFedAvg", IN_STEP):
        sampling = str(rng.choice(SAMPLINGS))
    mixed = sampling is not None or algorithm == "ClientDPFedAvg"
    own, agents = bool(rng.uniform() < 0.6), int(rng.integers(2, 5))
    counts = np.full(agents, 4 if sampling else rng.choice([2, 3, 5, 8]))
    if own:
        counts += rng.integers(0, 3, agents)
    whole = steady or algorithm in WHOLE
    partly = "all" if whole else rng.choice(["all", "cohort", "bernoulli"])
    most = 3 if sampling is None else 2
    return Shape(
        algorithm=algorithm,
        counts=tuple(counts.tolist()),
        l2=float(rng.choice([0.0, 0.1])),
        rounds=int(rng.integers(1, (10 if steady else most) + 1)),
        steps=int(rng.integers(1, most + 1)),
        own=own,
        sampling=sampling,
        participation=str(partly),
        relation=None if rng.uniform() < 0.7 else "add_remove",
        curved=not mixed and bool(rng.uniform() < 0.5),
        graph=str(rng.choice(["ring", "path", "star"])),
        weights=str(rng.choice(["uniform", "samples"])),
        asynchronous=algorithm in ("GossipSGD", "DPNorm") and bool(rng.uniform() < 0.3),
        bounded=steady or bool(rng.uniform() < 0.5),
        scheduled=not steady and bool(rng.uniform() < 0.2),
    )


def graph_of(shape: Shape) -> Graph:
    """A small graph."""
    n = shape.agents
    if shape.graph == "star":
        return Graph.from_edges(n, np.array([(0, i) for i in range(1, n)]))
    edges = [(i, i + 1) for i in range(n - 1)]
    if shape.graph == "ring" and n > 2:
        edges.append((0, n - 1))
    return Graph.from_edges(n, np.array(edges))


def problem_of(d: Draw) -> Any:
    """Empty rows, or short ones whose gradients are not clipped."""
    shape, total = d.shape, sum(d.shape.counts)
    scale = 0.3 if shape.curved else 0.0
    return tacita.from_arrays(
        scale * d.rng.standard_normal((total, 2)),
        0.1 * d.rng.standard_normal(total),
        np.repeat(np.arange(shape.agents), shape.counts),
        model="linear",
        l2=shape.l2,
        graph=graph_of(shape) if shape.algorithm in ON_GRAPHS else None,
        bound=1.0 if shape.bounded else None,
    )


def participation_of(d: Draw) -> Any:
    """Everybody, so many of all, or each with a chance."""
    kind, n = d.shape.participation, d.shape.agents
    if kind == "all" or d.shape.asynchronous:
        return 1.0
    return n - 1 if kind == "cohort" else d.rng.uniform(0.4, 0.9)
