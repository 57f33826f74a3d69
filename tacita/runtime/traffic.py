"""What a run sends: letters and bytes, counted from the shapes of its letters."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tacita import keys
from tacita.aggregation import Summed
from tacita.algorithm.base import GraphAlgorithm
from tacita.problem.quantised import Quantised
from tacita.runtime.world import World, first_carry
from tacita.trees import tree_rows


def bytes_of(tree: Any) -> int:
    """Payload of a letter: its numbers, without any envelope."""
    return sum(
        math.prod(leaf.shape) * np.dtype(leaf.dtype).itemsize
        for leaf in jax.tree.leaves(tree)
    )


@jax.jit  # never run: tracing is remembered, which a plain eval_shape would repeat
def _exchanges(world: World, algorithm: Any, start: Any) -> list[tuple[Any, Any]]:
    """What one agent and the coordinator tell each other in one round."""
    base, key = keys.from_seed(0), jax.random.key(0)
    carry = first_carry(world, algorithm, base, start)
    seat, alone = world.seats(algorithm)[0], world.round(1, 1)
    state, told = tree_rows(carry.states, 0), carry.broadcast
    memory, exchanges = carry.memory, []
    for number, phase in enumerate(algorithm.in_round(1).phases):
        state, letter = seat.answer(1, number, key, state, told)
        exchanges.append((told, letter))
        memory, told = phase.combine(key, memory, letter, alone)
    return exchanges


def per_turn(
    world: World, algorithm: Any, rounds: int, dim: int, dtype: Any
) -> dict[str, Any]:
    """Bytes that one active agent sends and receives in one round of a server run.

    Letters that are rounded gradients are counted by their bits, on average over the
    rounds.
    """
    if isinstance(algorithm, GraphAlgorithm):
        seat = world.seats(algorithm)[0]
        start = jax.ShapeDtypeStruct((dim,), dtype)
        letters = jax.eval_shape(seat.begin, start)[1]
        # With slots there is one letter per slot, padded ones included.
        slots = seat.edges.mask.shape[0] if algorithm.delivery == "slots" else 1
        return {"letter": bytes_of(letters) // slots}

    exchanges = _exchanges.eval_shape(world, algorithm, jnp.zeros(dim, dtype))
    up = sum(bytes_of(letter) for _, letter in exchanges)
    if algorithm.sends_gradients and isinstance(algorithm.oracle, Quantised):
        up = math.ceil(dim * algorithm.oracle.bits_sent(rounds) / 8)
    if isinstance(algorithm, Summed):
        # Integers, and a share for every agent when the sum is opened.
        up = dim * algorithm.aggregation.word // 8 + 32 * world.population.n_agents
    return {
        "up": up,
        "down": sum(bytes_of(told) for told, _ in exchanges),
        "exchanges": len(exchanges),
    }


def count(
    world: World, algorithm: Any, rounds: int, turns: Any, dim: int, dtype: Any
) -> dict:
    """Letters and bytes of a whole run, from how often every agent was active."""
    one = per_turn(world, algorithm, rounds, dim, dtype)
    turns = np.asarray(turns, dtype=np.int64)
    lanes = len(turns) if turns.ndim == 2 else 1
    if world.links is not None:
        neighbours = np.asarray(world.links.edges.neighbour_count)
        letters = int(np.sum(turns * neighbours)) // lanes
        return {"letters": letters, "bytes": letters * one["letter"]}
    active = int(turns.sum()) // lanes
    return {
        "letters": active * one["exchanges"],
        "bytes_up": active * one["up"],
        "bytes_down": active * one["down"],
        "bytes": active * (one["up"] + one["down"]),
    }
