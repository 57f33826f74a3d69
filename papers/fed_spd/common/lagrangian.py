"""Runs of FedSPD that also measure its augmented Lagrangian, which the paper plots.

With x_i the mean of a client's local iterates of the last round it was active in,

    (4), (5)   L  = sum_i f_i(x_i) + R_i(x_i) + <lam_i, x0 - x_i>
                    + rho/2 ||x_i - x0||^2
    (7), (8)   L~ = the same with f_i(x_i) replaced, of clients active in the round, by
                    f_i(x_i') + <grad f_i(x_i'), x_i - x_i'>
                    + gamma_t/2 ||x_i - x_i'||^2

where x_i' is x_i of the round before. The paper says that it plots (7); its gradient is
that of a batch, here of all rows. x_i is in no state and no letter shows it without
noise; the dual step lam_i <- lam_i - rho (x_i - x0) gives it away.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

import tacita
from tacita import keys
from tacita.runtime.ready import make_world, prepare
from tacita.runtime.rounds import one_round
from tacita.runtime.world import Carry, Stage, World, first_carry
from tacita.trees import in_double_precision


class Curves(NamedTuple):
    """What was measured, by seed and record; sums over clients."""

    rounds: np.ndarray
    accuracy: np.ndarray
    objective: np.ndarray  # sum_i f_i(x0) + h(x0)
    lagrangian: np.ndarray  # (4)
    linearised: np.ndarray  # (7)


class _Moment(NamedTuple):
    """A round: what it began with, what it left."""

    carry: Carry
    x: Array  # x_i of all clients, (N, d)


@in_double_precision
def curves(
    problem: tacita.Problem,
    algorithm: tacita.FedSPD,
    rounds: int,
    every: int,
    accuracy: Callable[[Array], Array],
    participation: float | int = 1.0,
    seeds: int = 1,
    seed: int = 0,
) -> Curves:
    """All seeds at once; the same iterates as `tacita.simulate` with these seeds."""
    if rounds % every:
        raise ValueError(f"expected every a divisor of rounds={rounds}, got {every}")
    ready: Any = prepare(problem, algorithm)
    world = make_world(problem, ready, participation, lanes=True)
    bases = jax.vmap(keys.from_seed)(np.arange(seed, seed + seeds))
    start = jnp.asarray(problem.start)
    moments = jax.vmap(lambda base: _first(world, ready, base, start))(bases)
    pages = []
    for done in range(0, rounds, every):
        moments, page = _advance(accuracy, every, world, ready, bases, moments, done)
        pages.append(np.asarray(page))
    book = np.stack(pages, axis=-1)
    return Curves(
        np.arange(every, rounds + 1, every), *(book[:, k] for k in range(book.shape[1]))
    )


def _first(world: World, algorithm: Any, base: Any, start: Array) -> _Moment:
    carry = first_carry(world, algorithm, base, start)
    return _Moment(carry, carry.states.u)


def _next(stage: Stage, before: _Moment) -> _Moment:
    """One round, with the x_i of whoever was active in it."""
    carry = one_round(stage, before.carry)
    moved = before.carry.states.lam - carry.states.lam
    # lam_i <- lam_i - rho (x_i - x0)
    x = before.carry.broadcast.x0 + moved / stage.algorithm.rho
    active = carry.turns > before.carry.turns
    return _Moment(carry, jnp.where(active[:, None], x, before.x))


@functools.partial(jax.jit, static_argnums=(0, 1))
def _advance(
    accuracy: Callable[[Array], Array],
    every: int,
    world: World,
    algorithm: Any,
    bases: Any,
    moments: _Moment,
    done: Any,
) -> tuple[_Moment, Array]:
    def lane(base: Any, moment: _Moment) -> tuple[_Moment, Array]:
        def step(number: Any, before: _Moment) -> _Moment:
            return _next(Stage(world, algorithm, base, number, True), before)

        before = jax.lax.fori_loop(done + 1, done + every, step, moment)
        after = step(done + every, before)
        found = _measured(world, algorithm, before, after, accuracy, done + every)
        return after, jnp.stack([jnp.asarray(v, jnp.float64) for v in found])

    return jax.vmap(lane)(bases, moments)


def _measured(
    world: World,
    algorithm: Any,
    before: _Moment,
    after: _Moment,
    accuracy: Callable[[Array], Array],
    number: Any,
) -> tuple[Array, ...]:
    """Accuracy, objective, (4) and (7) after a round."""
    population, told = world.population, before.carry.broadcast.x0
    x, old, lam = after.x, before.x, after.carry.states.lam
    apart, step = x - told, x - old
    h, n = population.h, population.n_agents
    shares = 0.0 if h is None else jnp.sum(jax.vmap(h)(x)) / n
    others = shares - jnp.sum(lam * apart) + algorithm.rho / 2 * jnp.sum(apart**2)
    # A client that was silent has step 0, so that its line is f_i(x_i) itself.
    line = population.smooth_loss(old) + jnp.sum(population.grad(old) * step)
    line += algorithm.in_round(number).gamma / 2 * jnp.sum(step**2)
    shared = after.carry.broadcast.x0
    return (
        accuracy(shared),
        population.loss(shared),
        population.smooth_loss(x) + others,
        line + others,
    )
