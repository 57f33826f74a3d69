"""Attacks: scores of what an observer saw, high if the data was D, low if D'.

A score may use all that the observer sees and all that it may know: both data sets,
the algorithm, everybody's numbers. It may not use a secret. A poor score weakens an
audit and never makes it wrong.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita.algorithm.base import GraphAlgorithm
from tacita.audits.transcript import Seen
from tacita.privacy.clipped import Clipped, without_noise
from tacita.privacy.letters import letters_of
from tacita.privacy.scope import Observer
from tacita.problem.oracles import Full, Minibatch
from tacita.runtime.rounds import World
from tacita.trees import replace

ATTACKS = ("matched", "reused", "cancelled", "learned")


def sees_letters(algorithm: Any, observer: Observer) -> bool:
    """Whether this observer is shown letters, not only what is made of them."""
    on_graph = isinstance(algorithm, GraphAlgorithm)
    near = (Observer.COORDINATOR, Observer.EAVESDROPPER)
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


def score(
    name: str,
    algorithm: Any,
    agent: int,
    worlds: list[World],
    seen: Seen,
    scale: np.ndarray | None,
) -> np.ndarray:
    """One score per run by an attack that knows both data sets."""
    on, off = (expected_letters(w, algorithm, agent, seen) for w in worlds)
    shown = (by_run(seen.letter), np.asarray(seen.active, float), on, off)
    if name == "cancelled":
        assert scale is not None
        return cancelled(*shown, scale)
    return matched(*shown) if name == "matched" else reused(*shown)


def expected_letters(
    world: World, algorithm: Any, agent: int, seen: Seen
) -> np.ndarray:
    """The letters that the data of `world` would give without noise, round by round.

    Batches are unknown to an observer, so gradients are taken over all records.
    """
    return np.asarray(_expected(agent, world, _quiet(algorithm), seen))


def _quiet(algorithm: Any) -> Any:
    """The algorithm without noise and without batches."""
    oracle = without_noise(algorithm.oracle)
    if isinstance(oracle, Clipped):
        oracle = replace(oracle, oracle=Full())
    elif isinstance(oracle, Minibatch):
        oracle = Full()
    return letters_of(replace(algorithm, oracle=oracle)).with_noise(0.0)


@jax.jit
def _expected(agent: Any, world: World, algorithm: Any, seen: Seen) -> Array:
    key = jax.random.key(0)  # nothing is random any more
    seat = world.seats(algorithm)[agent]

    def one(state: Any, broadcast: Any) -> Array:
        return flat(seat.answer(1, 0, key, state, broadcast)[1])

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


def flat(letter: Any) -> Array:
    """All numbers of one letter in a row."""
    return jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(letter)])


def by_run(seen: Any) -> np.ndarray:
    """All numbers of a pytree as (runs, rounds, numbers)."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(seen)]
    return np.concatenate([a.reshape(*a.shape[:2], -1) for a in leaves], axis=-1)


def matched(letters: np.ndarray, active: np.ndarray, on: Any, off: Any) -> np.ndarray:
    """The likelihood ratio for letters with fresh, equal Gaussian noise.

    sum_t <l_t - (m_t + m'_t)/2, m_t - m'_t> over the rounds in which the agent was
    active, with m and m' the letters that D and D' would give without noise.
    """
    per_round = np.sum((letters - (on + off) / 2) * (on - off), axis=-1)
    return np.sum(per_round * active, axis=-1)


def reused(letters: np.ndarray, active: np.ndarray, on: Any, off: Any) -> np.ndarray:
    """The likelihood ratio after removing what all rounds have in common.

    Finds noise that is drawn once and used again: the letters' rests under the right
    hypothesis are then all the same.
    """
    weights = active / np.maximum(active.sum(axis=1, keepdims=True), 1)

    def spread(rest: np.ndarray) -> np.ndarray:
        common = np.einsum("rt,rtd->rd", weights, rest)
        return np.einsum("rt,rtd->r", active, (rest - common[:, None]) ** 2)

    return spread(letters - off) - spread(letters - on)


def cancelled(
    letters: np.ndarray, active: np.ndarray, on: Any, off: Any, scale: np.ndarray
) -> np.ndarray:
    """The likelihood ratio after removing what all letters of a round have in common.

    Finds noise that is drawn once a round and added to letters about different
    iterates: whoever compares two of them learns their difference exactly.

    Args:
        letters: What was seen, (runs, rounds, numbers of all edges).
        active: Rounds in which the agent wrote.
        on: The letters that D would give without noise.
        off: Those that D' would.
        scale: What the noise is multiplied by in the letter on each edge.
    """
    slots = len(scale)

    def spread(rest: np.ndarray) -> np.ndarray:
        noise = rest.reshape(*rest.shape[:2], slots, -1) / scale[:, None]
        apart = noise - noise.mean(axis=2, keepdims=True)
        return np.einsum("rt,rtsd->r", active, apart**2)

    return spread(letters - off) - spread(letters - on)
