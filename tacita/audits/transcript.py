"""What observers see of many simulated runs: letters, broadcasts, the final model."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check, keys
from tacita.aggregation import Aggregation
from tacita.algorithm.base import Averages, GraphAlgorithm
from tacita.problem.problem import Problem
from tacita.runtime import engine
from tacita.runtime.delivery import deliver
from tacita.runtime.rounds import Stage, World, first_carry, one_round
from tacita.runtime.simulate import make_world
from tacita.trees import tree_rows

#: Numbers that one batch of runs may hold at once.
_AT_ONCE = 2**24


class Seen(NamedTuple):
    """One agent's rounds, as seen from outside; stacked over rounds and runs."""

    letter: Any
    active: Array  # whether the agent took part
    broadcast: Any  # what it was told, or received from its neighbours
    state: Any  # what it knew before; not every observer can compute it
    key: Any  # its key, a secret; only when asynchronous letters left is none


def watch(
    problem: Problem,
    algorithm: Any,
    rounds: int,
    seeds: np.ndarray,
    agent: int,
    participation: Any = 1.0,
    aggregation: Aggregation | None = None,
) -> tuple[Seen, np.ndarray]:
    """Run once per seed; what one agent sent, and the final models.

    `algorithm` is ready: all its numbers are set. Call in double precision.
    """
    world = world_of(problem, algorithm, participation, aggregation)
    # Letters, broadcasts and states of all rounds; scores of all rows of one round.
    one = 4 * rounds * problem.dim + 3 * problem.population.rows.y.size
    batch = max(1, min(len(seeds), _AT_ONCE // one))
    # Every batch has the same size, so that one program serves them all.
    turns = -(-len(seeds) // batch)
    padded = np.resize(seeds, turns * batch)
    parts = []
    for first in range(0, len(padded), batch):
        lanes = jnp.asarray(padded[first : first + batch])
        found = _watch(rounds, agent, world, algorithm, lanes, problem.start)
        parts.append(jax.tree.map(np.asarray, found))
    joined = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
    return jax.tree.map(lambda leaf: leaf[: len(seeds)], joined)


def world_of(
    problem: Problem,
    algorithm: Any,
    participation: Any,
    aggregation: Aggregation | None = None,
) -> World:
    """The problem as the runtime sees it; algorithms with one letter a round only."""
    graph = isinstance(algorithm, GraphAlgorithm)
    if not graph and len(algorithm.phases) > 1:
        check.refuse(
            f"{type(algorithm).__name__} has several letters a round, which an audit "
            "does not record"
        )
    return make_world(
        problem, algorithm, participation, aggregation=aggregation, lanes=True
    )


@functools.partial(jax.jit, static_argnums=0)
def _watch(
    rounds: int, agent: Any, world: World, algorithm: Any, seeds: Array, start: Any
) -> tuple[Seen, Array]:
    def one_run(seed: Array) -> tuple[Seen, Array]:
        base = keys.from_seed(seed)

        def step(carry: Any, number: Array) -> tuple[Any, Seen]:
            after = one_round(Stage(world, algorithm, base, number), carry)
            active = after.turns[agent] > carry.turns[agent]
            state = tree_rows(carry.states, agent)
            key = keys.agent_key(keys.agent_secret(base, agent), number, 0)
            bits = jax.random.key_data(key)
            if world.links is not None:
                letter = tree_rows(after.mail.letters, agent)
                told = tree_rows(deliver(world.links, carry.mail.letters), agent)
                return after, Seen(letter, active, told, state, bits)
            told = carry.broadcast
            if algorithm.averages == Averages.ALL:
                letter = tree_rows(after.mail.letters, agent)
            else:
                # Mean letters only are kept; the same key gives the same letter again.
                seat = world.seats(algorithm)[agent]
                letter = seat.answer(number, 0, key, state, told)[1]
            return after, Seen(letter, active, told, state, bits)

        carry = first_carry(world, algorithm, base, jnp.asarray(start))
        carry, seen = jax.lax.scan(step, carry, jnp.arange(1, rounds + 1))
        return seen, engine.models(algorithm, carry)[0]

    return jax.vmap(one_run)(seeds)
