"""A run as a map from noise to what observers see, and its derivative.

The rounds are those of `tacita.runtime`, with the Gaussian draws as arguments
(`gaussian_draws`); who takes part and which rows make a batch follow from keys.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from tacita import keys
from tacita.aggregation import Heard, Mean
from tacita.algorithm.base import GraphAlgorithm
from tacita.audits.gaussian_draws import count_draws, with_draws
from tacita.problem.population import Rows
from tacita.runtime import engine
from tacita.runtime.rounds import one_round
from tacita.runtime.world import Carry, Stage, World, first_carry
from tacita.trees import replace


class View(NamedTuple):
    """All that leaves an agent in a run; observers see parts of it."""

    letters: Any  # (rounds, exchanges, agents, numbers)
    told: Any  # broadcasts, the last one too: (rounds + 1, numbers)
    shared: Any  # the model at the end, (d,)
    models: Any  # every agent's, (agents, d)


class Linearised(NamedTuple):
    """A run around noise zero.

    Attributes:
        mean: What is seen without noise.
        slope: Its derivative, with a first axis over all draws of all rounds.
        error: How far, relatively, the run with real noise is from the linear map.
        active: Who took part in each round, (rounds, agents).
    """

    mean: View
    slope: View
    error: Any
    active: Any


class Overhearing:
    """The mean, noting the letters that it joins."""

    additive = False  # so that all letters of an exchange come together
    least = 1

    def __init__(self) -> None:
        self.heard: list[Heard] = []

    def check(self, agents: int) -> None:
        """Serves any number."""

    def __call__(self, heard: Heard) -> Any:
        """The mean."""
        self.heard.append(heard)
        return Mean()(heard)


@functools.partial(jax.jit, static_argnums=0)
def linearise(
    rounds: int, world: World, algorithm: Any, rows: Rows, base: keys.Keys, start: Any
) -> Linearised:
    """The run on these rows, exact where what is seen is linear in the noise.

    One program computes it without noise, with one unit in each draw, and with all of
    them at random, which tells whether it is linear.
    """
    run, size = _run(rounds, world, algorithm, rows, base, start)
    draws = rounds * size
    random = jax.random.normal(jax.random.key(0), (1, draws))
    tried = jnp.concatenate([jnp.zeros((1, draws)), jnp.eye(draws), random])
    seen, active = jax.vmap(run)(tried.reshape(-1, rounds, size))
    mean = jax.tree.map(lambda leaf: leaf[0], seen)
    slope = jax.tree.map(lambda leaf: leaf[1:-1] - leaf[0], seen)

    def apart(seen: Array, slope: Array) -> Array:
        moved = seen[-1] - seen[0]
        rest = moved - jnp.tensordot(random[0], slope, axes=1)
        largest = jnp.max(jnp.abs(moved), initial=1e-300)
        return jnp.max(jnp.abs(rest), initial=0.0) / largest

    errors = [apart(*pair) for pair in zip(seen, slope, strict=True)]
    return Linearised(mean, slope, jnp.max(jnp.stack(errors)), active[0])


@functools.partial(jax.jit, static_argnums=0)
def noiseless(
    rounds: int, world: World, algorithm: Any, rows: Rows, bases: keys.Keys, start: Any
) -> View:
    """What is seen without noise, for every draw of batches and of who takes part."""

    def one(base: keys.Keys) -> View:
        run, size = _run(rounds, world, algorithm, rows, base, start)
        return run(jnp.zeros((rounds, size)))[0]

    return jax.vmap(one)(bases)


def _run(
    rounds: int, world: World, algorithm: Any, rows: Rows, base: keys.Keys, start: Any
) -> tuple[Any, int]:
    """A function from noise, (rounds, size), to what is seen and who took part."""
    population = replace(world.population, rows=rows)
    world = world._replace(population=algorithm.oracle.prepare(population))
    graph = isinstance(algorithm, GraphAlgorithm)

    def a_round(carry: Carry, number: Array) -> tuple[Carry, Array, Array]:
        ear = Overhearing()
        stage = Stage(world._replace(aggregation=ear), algorithm, base, number)
        after = one_round(stage, carry)
        active = after.turns > carry.turns
        if graph:
            return after, _by_agent(after.mail.letters)[None], active
        # Exchanges may have letters of other lengths, or without a number.
        told = [heard for heard in ear.heard if jax.tree.leaves(heard.letters)]
        letters = [_of_everybody(heard, active) for heard in told]
        return after, jnp.concatenate(letters, axis=1)[None], active

    first = first_carry(world, algorithm, base, jnp.asarray(start))
    size = count_draws(a_round, first, jnp.asarray(1))

    def run(noise: Array) -> tuple[View, Array]:
        def step(carry: Carry, each: tuple[Array, Array]) -> tuple[Carry, Any]:
            number, drawn = each
            after, letters, active = with_draws(a_round, drawn, carry, number)
            return after, (letters, active, _flat(carry.broadcast))

        numbers = jnp.arange(1, rounds + 1)
        last, (letters, active, told) = jax.lax.scan(step, first, (numbers, noise))
        told = jnp.concatenate([told, _flat(last.broadcast)[None]])
        shared, models = engine.models(algorithm, last)
        return View(letters, told, shared, models), active

    return run, size


def _of_everybody(heard: Heard, active: Array) -> Array:
    """Letters by agent, (agents, numbers); zero of who is not heard."""
    letters, n = _by_agent(heard.letters), len(active)
    if len(letters) < n:  # of a cohort, in order
        numbers = jnp.nonzero(active, size=len(letters))[0]
        return jnp.zeros((n, letters.shape[1]), letters.dtype).at[numbers].set(letters)
    return letters if heard.active is None else letters * heard.active[:, None]


def _by_agent(letters: Any) -> Array:
    leaves = jax.tree.leaves(letters)
    return jnp.concatenate([leaf.reshape(len(leaf), -1) for leaf in leaves], axis=1)


def _flat(tree: Any) -> Array:
    leaves = [jnp.ravel(leaf) for leaf in jax.tree.leaves(tree)]
    return jnp.concatenate(leaves) if leaves else jnp.zeros(0)
