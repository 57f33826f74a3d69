"""The mail: what the coordinator keeps of the letters, and what neighbours receive.

A silent agent's last letter stays valid. For algorithms that average the letters of
all agents, the coordinator keeps a running mean and adds the changes, so that it needs
one vector, not one per agent (an agent remembers its own last letter). For those that
average the active agents only, nothing is kept.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array


class Mail(NamedTuple):
    """The mean letter, and every agent's last letter where the algorithm needs it."""

    mean: Any
    letters: Any


def weighted_sum(weights: Array, letters: Any) -> Any:
    """sum_i weight_i letter_i over the first axis."""
    return jax.tree.map(
        lambda a: jnp.tensordot(weights.astype(a.dtype), a, axes=1), letters
    )


def mean_of(weights: Array, letters: Any) -> Any:
    """The weighted mean over the first axis; zero where all weights are zero."""
    total = jnp.sum(weights)
    share = weights / jnp.where(total > 0, total, 1)
    return weighted_sum(share, letters)


def add(mean: Any, change: Any, total: Array) -> Any:
    """The running mean after letters changed by `change` in (weighted) sum."""
    return jax.tree.map(lambda m, c: m + c / total.astype(m.dtype), mean, change)


def difference(new: Any, old: Any) -> Any:
    """New - old, entry by entry."""
    return jax.tree.map(jnp.subtract, new, old)
