"""Draw k of n without replacement at a cost of k, not of n."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from tacita.random_numbers import uniform


def below(key: Array, limits: Any, shape: tuple[int, ...]) -> Array:
    """Whole numbers uniform below `limits`, from one hash instead of randint's three.

    A 52-bit uniform number is scaled, so that no value is more likely than another by
    more than limit / 2^52.
    """
    limits = jnp.asarray(limits)
    draws = jnp.floor(uniform(key, shape, jnp.float64) * limits)
    # Rounding may lift the product to the limit itself.
    return jnp.minimum(draws.astype(jnp.int32), limits.astype(jnp.int32) - 1)


def without_replacement(key: Array, n: Any, k: int, times: int = 1) -> Array:
    """`times` samples of k different numbers below n, (times, k); n may be traced.

    Every set is equally likely. Floyd's algorithm: for j = n-k..n-1 draw t uniformly
    from 0..j and add t, or j if t is in the set already. It needs k draws and k^2
    comparisons. (Bentley and Floyd, "A sample of brilliance", 1987.)
    """
    last = (n - k + jnp.arange(k)).astype(jnp.int32)
    draws = below(key, last + 1, (times, k))

    def add(j: Array, chosen: Array) -> Array:
        earlier = jnp.arange(k) < j
        taken = jnp.any(earlier & (chosen == draws[:, j, None]), axis=-1)
        return chosen.at[:, j].set(jnp.where(taken, last[j], draws[:, j]))

    return jax.lax.fori_loop(0, k, add, jnp.zeros((times, k), jnp.int32))


def cohort(key: Array, n: int, k: int) -> Array:
    """K of n agents, sorted; by Floyd's algorithm when k is small against n."""
    if k * 4 <= n:
        return jnp.sort(without_replacement(key, n, k)[0])
    # The agents with the k smallest of n random numbers.
    order = jnp.argsort(uniform(key, (n,), jnp.float64))
    return jnp.sort(order[:k]).astype(jnp.int32)
