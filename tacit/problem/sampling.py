"""Draw k of n without replacement at a cost of k, not of n."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array


def without_replacement(key: Array, n: Any, k: int) -> Array:
    """k different whole numbers below n, every set equally likely; n may be traced.

    Floyd's algorithm: for j = n-k..n-1 draw t uniformly from 0..j and add t, or j if t
    is in the set already. It needs k draws and k^2 comparisons. (Bentley and Floyd,
    "A sample of brilliance", 1987.)
    """
    last = n - k + jnp.arange(k)
    draws = jax.random.randint(key, (k,), 0, last + 1)

    def add(j: Array, chosen: Array) -> Array:
        taken = jnp.any(jnp.where(jnp.arange(k) < j, chosen == draws[j], False))
        return chosen.at[j].set(jnp.where(taken, last[j], draws[j]))

    return jax.lax.fori_loop(0, k, add, jnp.zeros(k, draws.dtype))


def cohort(key: Array, n: int, k: int) -> Array:
    """k of n agents, sorted; by Floyd's algorithm when k is small against n."""
    if k * 32 <= n:
        return jnp.sort(without_replacement(key, n, k))
    return jnp.sort(jax.random.permutation(key, n)[:k])
