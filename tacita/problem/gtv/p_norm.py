"""Norms ||u||_p with 1 < p < infinity: value, slope and proximal point.

Of u = prox_{t ||.||_p}(v) all entries keep their sign, and their sizes a_k solve

    a_k + t (a_k / s)^(p - 1) = |v_k|,     s = ||a||_p,

zero where the dual norm of v is at most t. For every s the entries are found by Newton
steps from the right side, s itself by halving.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

#: Halvings of the norm: more than the digits of float64.
_HALVINGS = 60
#: Newton steps for the entries: from the right, on a convex or concave curve.
_NEWTON = 12


def dual_of(p: Any) -> Any:
    """The q with 1/p + 1/q = 1.

    >>> dual_of(3.0)
    1.5
    """
    return p / (p - 1)


def length(u: Array, p: Any) -> Array:
    """||u||_p, scaled so that powers neither vanish nor overflow."""
    largest = jnp.max(jnp.abs(u))
    unit = jnp.where(largest > 0, largest, 1)
    whole = jnp.sum((jnp.abs(u) / unit) ** p)
    return jnp.where(largest > 0, unit * jnp.where(whole > 0, whole, 1) ** (1 / p), 0)


def slope(u: Array, p: Any) -> Array:
    """The gradient; zero at zero."""
    whole = length(u, p)
    share = jnp.abs(u) / jnp.where(whole > 0, whole, 1)
    return jnp.sign(u) * share ** (p - 1)


def prox(v: Array, t: Array, p: Any) -> Array:
    """argmin_u t ||u||_p + ||u - v||^2 / 2."""
    sizes = jnp.abs(v)
    whole = length(v, p)
    away = length(v, dual_of(p)) > t
    unit = jnp.where(whole > 0, whole, 1)
    # In units of ||v||_p, so that halving starts from 1.
    right, reach = sizes / unit, t / unit

    def entries(s: Array) -> Array:
        return _entries(right, reach * s ** (1 - p), p)

    def halve(_: Any, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = (low + high) / 2
        # ||a(s)||_p - s falls from above zero through its only root.
        above = length(entries(middle), p) > middle
        return jnp.where(above, middle, low), jnp.where(above, high, middle)

    ends = jnp.zeros((), v.dtype), jnp.ones((), v.dtype)
    low, high = jax.lax.fori_loop(0, _HALVINGS, halve, ends)
    found = entries((low + high) / 2)
    return jnp.where(away, jnp.sign(v) * unit * found, 0)


def _entries(right: Array, factor: Array, p: Any) -> Array:
    """A >= 0 with a + factor a^(p - 1) = right, entry by entry."""
    # With b = a^(p-1) for p < 2, and a itself for p >= 2, the curve is convex: Newton's
    # steps fall to the root from the right of it.
    least = jnp.finfo(right.dtype).tiny
    power = jnp.where(p < 2, 1 / (p - 1), p - 1)
    outer = jnp.where(p < 2, 1.0, factor)  # outer z^power + inner z = right
    inner = jnp.where(p < 2, factor, 1.0)
    tall = (right / jnp.maximum(outer, least)) ** (1 / power)
    first = jnp.minimum(right / jnp.maximum(inner, least), tall)

    def step(_: Any, z: Array) -> Array:
        raised = outer * z ** (power - 1)
        gap = raised * z + inner * z - right
        fallen = z - gap / jnp.maximum(power * raised + inner, least)
        return jnp.clip(fallen, 0, z)

    z = jax.lax.fori_loop(0, _NEWTON, step, first)
    return jnp.where(p < 2, z**power, z)
