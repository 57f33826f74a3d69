"""One agent's place in a run, and what it answers: written here and nowhere else.

The simulator maps seats over agents, `debug` loops over them, a party of a federation
has one, and an audit replays one.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from tacita.algorithm.base import GraphAlgorithm, Round
from tacita.problem.oracles import AgentOracle
from tacita.problem.population import Local, Population, Rows
from tacita.trees import tree_rows


class Seat(NamedTuple):
    """One agent: the algorithm with its own numbers, its rows, its edges."""

    algorithm: Any
    local: Local
    edges: Any = ()

    def begin(self, w: Array) -> tuple[Any, Any]:
        """State and letter before the first round."""
        if isinstance(self.algorithm, GraphAlgorithm):
            return self.algorithm.init(w, self.edges)
        return self.algorithm.init(w)

    def answer(
        self, number: Any, phase: int, key: Array, state: Any, told: Any
    ) -> tuple[Any, Any]:
        """State and letter with which it answers a broadcast, or its neighbours.

        In round `number`; the first is 1.
        """
        algorithm = self.algorithm.in_round(number)
        oracle = AgentOracle(algorithm.oracle.in_round(number), self.local)
        if isinstance(algorithm, GraphAlgorithm):
            return algorithm.local(key, oracle, self.edges, state, told)
        return algorithm.phases[phase].local(key, oracle, state, told)


class Own(NamedTuple):
    """What differs between agents, one agent's or stacked over all of them."""

    rows: Rows
    numbers: list[Array]  # the algorithm's numbers that differ between agents
    edges: Any


class Seats:
    """The seats of all agents.

    Args:
        algorithm: With every number set.
        population: All agents' rows.
        edges: Everybody's edges, stacked, of a run on a graph.
    """

    def __init__(self, algorithm: Any, population: Population, edges: Any = ()) -> None:
        self._population = population
        numbers, self._for_agent = split_numbers(algorithm, population.here)
        self.stacked = Own(population.rows, numbers, edges)

    def at(self, own: Own) -> Seat:
        """The seat of the agent that these are the rows, numbers and edges of."""
        algorithm = self._for_agent(own.numbers)
        return Seat(algorithm, self._population.local(own.rows), own.edges)

    def __getitem__(self, agent: Any) -> Seat:
        return self.at(tree_rows(self.stacked, agent))


def split_numbers(algorithm: Any, n: int) -> tuple[list[Array], Any]:
    """Part the algorithm's per-agent numbers, shape (n,), from its common ones.

    Returns the stacked per-agent numbers, and a function that puts one agent's
    numbers back into an algorithm for that agent.
    """
    leaves, treedef = jax.tree.flatten(algorithm)
    varies = [jnp.ndim(leaf) == 1 and jnp.shape(leaf)[0] == n for leaf in leaves]
    stacked = [jnp.asarray(x) for x, v in zip(leaves, varies, strict=True) if v]

    def for_agent(numbers: list[Array]) -> Any:
        mine = iter(numbers)
        chosen = [next(mine) if v else x for x, v in zip(leaves, varies, strict=True)]
        return jax.tree.unflatten(treedef, chosen)

    return stacked, for_agent


def combine(
    phase: int, algorithm: Any, now: Round, key: Array, state: Any, mean: Any
) -> tuple[Any, Any]:
    """The coordinator's step, compiled: its bits are the same wherever it is taken."""
    known = (now.h, now.number, now.active, now.regulariser, now.fresh)
    return _combine(phase, now.n_agents, algorithm, known, key, state, mean)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _combine(
    phase: int,
    n_agents: int,
    algorithm: Any,
    known: tuple[Any, Any, Any, Any, Any],
    key: Array,
    state: Any,
    mean: Any,
) -> Any:
    now = Round(n_agents, *known)
    return algorithm.in_round(now.number).phases[phase].combine(key, state, mean, now)
