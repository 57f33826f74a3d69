"""Attacks: scores of what an observer saw, high if the data was D, low if D'.

A score may use all that the observer sees and all that it may know: both data sets,
the algorithm, everybody's numbers. It may not use a secret of the run that it scores;
how noise behaves is learned from other runs, the pilot. A poor score weakens an audit
and never makes it wrong.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.special import logsumexp

from tacita.aggregation import Summed
from tacita.algorithm.base import GraphAlgorithm
from tacita.audits.transcript import Seen, shown
from tacita.privacy.clipped import Clipped, without_noise
from tacita.privacy.letters import letters_of
from tacita.privacy.scope import Observer
from tacita.problem.oracles import Full, Minibatch
from tacita.runtime.world import World
from tacita.trees import replace

ATTACKS = ("matched", "batches", "learned")
#: Batches that an attack imagines, of each round.
_IMAGINED = 24
#: Numbers of a run whose noise is learned together; of more, round by round.
_TOGETHER = 128
#: The least noise that is believed in, relative to the most.
_FLOOR = 1e-12


def sees_letters(algorithm: Any, observer: Observer) -> bool:
    """Whether this observer is shown letters, not only what is made of them."""
    on_graph = isinstance(algorithm, GraphAlgorithm)
    near = [Observer.COORDINATOR, Observer.COLLUDERS]
    if not isinstance(algorithm, Summed):
        near.append(Observer.EAVESDROPPER)
    return observer in near or (on_graph and observer == Observer.NEIGHBOUR)


def all_numbers(
    algorithm: Any, observer: Observer, view: tuple[Seen, np.ndarray]
) -> np.ndarray:
    """All numbers that the observer sees, one line per run."""
    seen, shared = view
    if observer == Observer.FINAL_MODEL:
        return shared
    active = np.asarray(seen.active, float)[..., None]
    if sees_letters(algorithm, observer):
        # Nothing is seen of a letter that was not sent.
        shown = [active * by_run(seen.letter), active]
    else:
        shown = [by_run(seen.broadcast)]
    rounds = np.concatenate(shown, axis=-1).reshape(len(shared), -1)
    return np.concatenate([rounds, shared], axis=-1)


def expected_letters(
    world: World, algorithm: Any, agent: int, seen: Seen
) -> np.ndarray:
    """The letters that the data of `world` would give without noise, round by round.

    Batches are unknown to an observer, so gradients are taken over all records.
    """
    return np.asarray(_expected(agent, world, whole(quiet(algorithm)), seen))


def quiet(algorithm: Any) -> Any:
    """The algorithm without noise; the same keys draw the same batches."""
    return letters_of(algorithm).with_noise(0.0)


def whole(algorithm: Any) -> Any:
    """The algorithm without batches."""
    if isinstance(algorithm, Summed):
        return replace(algorithm, algorithm=whole(algorithm.algorithm))
    oracle = without_noise(algorithm.oracle)
    if isinstance(oracle, Clipped):
        oracle = replace(oracle, oracle=Full())
    elif isinstance(oracle, Minibatch):
        oracle = Full()
    return replace(algorithm, oracle=oracle)


@jax.jit
def _expected(agent: Any, world: World, algorithm: Any, seen: Seen) -> Array:
    key = jax.random.key(0)  # nothing is random any more
    seat = world.seats(algorithm)[agent]

    def one(state: Any, broadcast: Any) -> Array:
        letter = seat.answer(1, 0, key, state, broadcast)[1]
        return flat(shown(world, algorithm, agent, letter))

    def one_run(run: Seen) -> Array:
        """Replay a node whose state carries no noise, from what it received."""
        start = jax.tree.map(lambda leaf: leaf[0], run.state)

        def step(state: Any, each: tuple) -> tuple[Any, Array]:
            active, inbox, bits = each
            # The key decides when letters leave, which the network shows.
            when = jax.random.wrap_key_data(bits)
            after, letter = seat.answer(1, 0, when, state, inbox)
            kept = jax.tree.map(lambda a, b: jnp.where(active, a, b), after, state)
            return kept, flat(letter)

        return jax.lax.scan(step, start, (run.active, run.broadcast, run.key))[1]

    if letters_of(algorithm).replayed:
        return jax.vmap(one_run)(seen)
    return jax.vmap(jax.vmap(one))(seen.state, seen.broadcast)


@jax.jit
def noise_of(agent: Any, world: World, algorithm: Any, seen: Seen) -> Array:
    """The noise in letters, (runs, rounds, numbers), by their keys: a secret."""
    seat = world.seats(quiet(algorithm))[agent]

    def one(state: Any, broadcast: Any, bits: Array, letter: Any) -> Array:
        key = jax.random.wrap_key_data(bits)
        bare = seat.answer(1, 0, key, state, broadcast)[1]
        return flat(letter) - flat(shown(world, algorithm, agent, bare))

    each = jax.vmap(jax.vmap(one))
    return each(seen.state, seen.broadcast, seen.key, seen.letter)


def flat(letter: Any) -> Array:
    """All numbers of one letter in a row."""
    return jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(letter)])


def by_run(seen: Any) -> np.ndarray:
    """All numbers of a pytree as (runs, rounds, numbers)."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(seen)]
    return np.concatenate([a.reshape(*a.shape[:2], -1) for a in leaves], axis=-1)


class Whitening:
    """How noise varies, learned from rests: what letters are beside their mean.

    Args:
        rests: (runs, rounds, numbers), of runs whose data is known.
        active: Rounds in which the agent wrote.
    """

    def __init__(self, rests: np.ndarray, active: np.ndarray) -> None:
        self.together = rests[0].size <= _TOGETHER and bool(np.all(active))
        rows = rests.reshape(len(rests), -1) if self.together else rests[active > 0]
        self.inverse = _inverse(rows)

    def matched(
        self, letters: np.ndarray, active: np.ndarray, on: Any, off: Any
    ) -> np.ndarray:
        """The likelihood ratio for letters with Gaussian noise of this kind.

        sum <l - (m + m')/2, S^-1 (m - m')> over the rounds in which the agent was
        active, with m and m' the letters that D and D' would give without noise and S
        the noise's covariance, over all rounds at once where they are few. Noise that
        is missing somewhere, or the same in two letters, leaves S without an inverse
        there: what differs there is seen through.
        """
        shown = active[..., None]
        apart, rest = shown * (on - off), shown * (letters - (on + off) / 2)
        if self.together:
            apart, rest = (v.reshape(len(v), -1) for v in (apart, rest))
            return np.einsum("rd,de,re->r", rest, self.inverse, apart)
        return np.einsum("rtd,de,rte->r", rest, self.inverse, apart)


def _inverse(rows: np.ndarray) -> np.ndarray:
    """The inverse of the second moment, with a floor under its eigenvalues."""
    second = rows.T @ rows / max(len(rows), 1)
    values, vectors = np.linalg.eigh(second)
    floor = _FLOOR * max(float(values.max(initial=0.0)), 1e-300)
    return (vectors / np.maximum(values, floor)) @ vectors.T


def imagined_batches(
    worlds: tuple[World, World],
    algorithm: Any,
    agent: int,
    seen: Seen,
    precision: np.ndarray,
    key: Array,
) -> np.ndarray:
    """The likelihood ratio of mixtures over batches, one score per run.

    Which batch was drawn is a secret; many are imagined, and the likelihoods of a
    letter averaged over them, on D and on D'. `precision` is the inverse covariance
    of the noise in one letter.
    """
    given = (agent, worlds, quiet(algorithm), seen, jnp.asarray(precision), key)
    return np.asarray(_imagined(*given))


@jax.jit
def _imagined(
    agent: Any,
    worlds: tuple[World, World],
    algorithm: Any,
    seen: Seen,
    precision: Array,
    key: Array,
) -> Array:
    here, there = (world.seats(algorithm)[agent] for world in worlds)
    keys = jax.random.split(key, _IMAGINED)

    def one(state: Any, told: Any, letter: Any, active: Array) -> Array:
        def likelihood(seat: Any) -> Array:
            def at(k: Array) -> Array:
                bare = seat.answer(1, 0, k, state, told)[1]
                rest = flat(letter) - flat(shown(worlds[0], algorithm, agent, bare))
                return -rest @ precision @ rest / 2

            return logsumexp(jax.vmap(at)(keys))

        return active * (likelihood(here) - likelihood(there))

    each = jax.vmap(jax.vmap(one))
    return each(seen.state, seen.broadcast, seen.letter, seen.active).sum(axis=1)
