"""Mapping one agent's function over the active agents, at a cost of the active ones.

`one(key, own)` computes an agent's answer from its key and from `own`, its slice of
everything that is stacked over agents. Whether agents are computed together (vmapped)
or one by one (scanned) changes speed only: on a CPU small matrices gain from being
batched, large ones from staying in the cache.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from tacita.trees import tree_rows

#: Multiply-adds of one local gradient above which agents are computed one by one.
#: Measured: 1,250 is faster together, 78,400 faster one by one.
ONE_BY_ONE_WORK = 20_000

One = Callable[[Array, Any], Any]


def ask_everyone(one: One, keys: Array, own: Any, together: bool) -> Any:
    """Answers of all agents, stacked."""
    if together:
        return jax.vmap(one)(keys, own)
    return jax.lax.map(lambda pair: one(*pair), (keys, own))


def ask_some(one: One, keys: Array, own: Any, numbers: Array, together: bool) -> Any:
    """Answers of the agents `numbers`, stacked in that order, as their keys are."""
    if together:
        return jax.vmap(one)(keys, tree_rows(own, numbers))
    # Slicing inside the loop never copies more than one agent's rows.
    return jax.lax.map(
        lambda pair: one(pair[0], tree_rows(own, pair[1])), (keys, numbers)
    )


def keep_silent(active: Array, new: Any, old: Any) -> Any:
    """The new entries of active agents and the old ones of the silent."""

    def choose(a: Array, b: Array) -> Array:
        wide = active.reshape(active.shape + (1,) * (a.ndim - 1))
        return jnp.where(wide, a, b)

    return jax.tree.map(choose, new, old)


def write(old: Any, numbers: Array, new: Any) -> Any:
    """`old` with the rows `numbers` replaced; numbers past the end are dropped."""
    return jax.tree.map(
        lambda a, b: a.at[numbers].set(b, mode="drop", unique_indices=True), old, new
    )


def in_blocks(
    step: Callable[[Any, Array, Array], Any], carry: Any, active: Array, block: int
) -> Any:
    """Run `step(carry, numbers, real)` over the active agents, `block` at a time.

    The last block is filled up with numbers past the end, which `real` marks False.
    The number of blocks follows the number of active agents.
    """
    n = active.shape[0]
    total = jnp.sum(active)
    order = jnp.nonzero(active, size=n + block, fill_value=n)[0]

    def body(state: tuple[Array, Any]) -> tuple[Array, Any]:
        first, inner = state
        numbers = jax.lax.dynamic_slice(order, (first,), (block,))
        return first + block, step(inner, numbers, numbers < n)

    start = (jnp.zeros((), order.dtype), carry)
    return jax.lax.while_loop(lambda state: state[0] < total, body, start)[1]
