"""What observers see of many simulated runs: letters, broadcasts, the final model."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check, keys
from tacita.aggregation import Aggregation, Heard, Summed
from tacita.aggregation.secure import dequantise
from tacita.algorithm.base import Averages, GraphAlgorithm
from tacita.privacy.letters.secure_sum import honest_noises
from tacita.privacy.scope import Observer
from tacita.problem.problem import Problem
from tacita.runtime import engine
from tacita.runtime.delivery import deliver
from tacita.runtime.ready import make_world
from tacita.runtime.rounds import one_round
from tacita.runtime.world import Stage, World, first_carry, mean_weights
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
    observer: Observer = Observer.COORDINATOR,
    aggregation: Aggregation | None = None,
) -> tuple[Seen, np.ndarray]:
    """Run once per seed; what one agent sent, and the final models.

    Of a secure sum, what is left of it for whoever knows all other letters, and the
    noise that this observer knows. `algorithm` is ready: all its numbers are set. Call
    in double precision.
    """
    world = world_of(problem, algorithm, participation, observer, aggregation)
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
    observer: Observer = Observer.COORDINATOR,
    aggregation: Aggregation | None = None,
) -> World:
    """The problem as the runtime sees it; algorithms with one letter a round only.

    The noise of a secure sum is that which the observer does not know.
    """
    graph = isinstance(algorithm, GraphAlgorithm)
    if not graph and len(algorithm.phases) > 1:
        check.refuse(
            f"{type(algorithm).__name__} has several letters a round, which an audit "
            "does not record"
        )
    world = make_world(
        problem, algorithm, participation, aggregation=aggregation, lanes=True
    )
    if not isinstance(algorithm, Summed):
        return world
    if world.schedule.kind != "all":
        check.refuse(
            "secure sums are audited with everybody in them; participation=1.0"
        )
    rule = algorithm.aggregation
    honest = honest_noises(rule, observer)
    return world._replace(aggregation=rule.at_work(problem.n_agents, honest))


class Listening:
    """A secure sum's rule, noting what it is handed and what comes out."""

    additive = False
    least = 1

    def __init__(self, rule: Any) -> None:
        self._rule = rule

    def check(self, agents: int) -> None:
        """Serves any number."""

    def __call__(self, heard: Heard) -> Any:
        """The rule's mean."""
        self.heard, self.mean = heard, self._rule(heard)
        return self.mean

    def left_of(self, agent: Any) -> Array:
        """The sum without the letters of all others: the agent's own, and noise."""
        letters = on_the_grid(self._rule, self.heard)
        others = jnp.sum(letters, axis=0) - letters[agent]
        return self.mean * jnp.sum(self.heard.weights) - others


def on_the_grid(rule: Any, heard: Heard) -> Array:
    """Everybody's letter as it enters a sum."""
    return dequantise(rule.integers(heard), rule.step, rule.word)


def shown(world: World, algorithm: Any, agent: Any, letter: Any) -> Any:
    """What others may see of a letter without noise: in a secure sum, on its grid."""
    if not isinstance(algorithm, Summed):
        return letter
    weight = mean_weights(algorithm, world.population)[agent]
    key = jax.random.key(0)  # nothing is drawn
    heard = Heard(letter[None], weight[None], None, key)
    return on_the_grid(world.aggregation, heard)[0]


@functools.partial(jax.jit, static_argnums=0)
def _watch(
    rounds: int, agent: Any, world: World, algorithm: Any, seeds: Array, start: Any
) -> tuple[Seen, Array]:
    def one(seed: Array) -> tuple[Seen, Array]:
        return watched_run(rounds, agent, world, algorithm, seed, start)

    return jax.vmap(one)(seeds)


def watched_run(
    rounds: int, agent: Any, world: World, algorithm: Any, seed: Array, start: Any
) -> tuple[Seen, Array]:
    """One run: what an agent sent in every round, and the final model."""
    base = keys.from_seed(seed)

    def step(carry: Any, number: Array) -> tuple[Any, Seen]:
        ear, heard = Listening(world.aggregation), world
        if isinstance(algorithm, Summed):
            heard = world._replace(aggregation=ear)
        after = one_round(Stage(heard, algorithm, base, number), carry)
        active = after.turns[agent] > carry.turns[agent]
        state = tree_rows(carry.states, agent)
        key = keys.agent_key(keys.agent_secret(base, agent), number, 0)
        bits = jax.random.key_data(key)
        if world.links is not None:
            letter = tree_rows(after.mail.letters, agent)
            told = tree_rows(deliver(world.links, carry.mail.letters), agent)
            return after, Seen(letter, active, told, state, bits)
        told = carry.broadcast
        if isinstance(algorithm, Summed):
            letter = ear.left_of(agent)
        elif algorithm.averages == Averages.ALL:
            letter = tree_rows(after.mail.letters, agent)
        else:
            # Mean letters only are kept; the same key gives the same letter again.
            seat = world.seats(algorithm)[agent]
            letter = seat.answer(number, 0, key, state, told)[1]
        return after, Seen(letter, active, told, state, bits)

    carry = first_carry(world, algorithm, base, jnp.asarray(start))
    carry, seen = jax.lax.scan(step, carry, jnp.arange(1, rounds + 1))
    return seen, engine.models(algorithm, carry)[0]
