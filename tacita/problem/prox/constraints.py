"""Constraints: 0 inside a set, infinite outside."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from tacita.check import finite, is_number, positive, refuse
from tacita.problem.prox.function import arguments, sqrt
from tacita.trees import frozen, needed, number


def _indicator(inside: jax.Array, w: jax.Array) -> jax.Array:
    return jnp.where(inside, 0.0, jnp.inf).astype(w.dtype)


def _rounding(w: jax.Array) -> float:
    """How far outside its set a point may lie, relative to the size of the set."""
    return 1e3 * float(jnp.finfo(w.dtype).eps)


@frozen
class Box:
    """The constraint low <= w <= high; an infinite bound is no bound.

    Args:
        low: Number or one per coordinate.
        high: Number or one per coordinate.

    Example:
        >>> Box(low=0.0, high=float("inf")).prox([-1.0, 2.0], 1.0).tolist()
        [0.0, 2.0]
    """

    low: ArrayLike = dataclasses.field(kw_only=False)
    high: ArrayLike = dataclasses.field(kw_only=False)

    def __post_init__(self) -> None:
        if not (is_number(self.low) and is_number(self.high)):
            finite(low=self.low)
            finite(high=self.high)
        elif not np.all(np.asarray(self.low) <= np.asarray(self.high)):
            refuse(f"expected low <= high, got low={self.low}, high={self.high}")

    def __call__(self, w: ArrayLike) -> jax.Array:
        """Return 0 inside the box, infinity outside."""
        w = jnp.asarray(w)
        outside = jnp.abs(w - self.prox(w, 1.0))
        return _indicator(jnp.all(outside <= _rounding(w) * (1 + jnp.abs(w))), w)

    def prox(self, v: ArrayLike, t: ArrayLike) -> jax.Array:
        """Project on the box."""
        v, _ = arguments(v, t)
        low, high = jnp.asarray(self.low, v.dtype), jnp.asarray(self.high, v.dtype)
        return jnp.clip(v, low, high)


@frozen
class L2Ball:
    """The constraint ||w||_2 <= radius.

    Example:
        >>> L2Ball(radius=2.5).prox([3.0, 4.0], 1.0).tolist()
        [1.5, 2.0]
    """

    radius: ArrayLike = needed(positive, kw_only=False)

    def __call__(self, w: ArrayLike) -> jax.Array:
        """Return 0 inside the ball, infinity outside."""
        w = jnp.asarray(w)
        radius = jnp.asarray(self.radius, w.dtype)
        return _indicator(sqrt(jnp.sum(w**2)) <= radius * (1 + _rounding(w)), w)

    def prox(self, v: ArrayLike, t: ArrayLike) -> jax.Array:
        """Project on the ball."""
        v, _ = arguments(v, t)
        norm, radius = sqrt(jnp.sum(v**2)), jnp.asarray(self.radius, v.dtype)
        outside = norm > radius
        return jnp.where(outside, v * (radius / jnp.where(outside, norm, 1)), v)


@frozen
class Simplex:
    """The constraint w >= 0, sum(w) = total.

    Example:
        >>> Simplex().prox([1.5, 1.0, -3.0], 1.0).tolist()
        [0.75, 0.25, 0.0]
    """

    total: ArrayLike = number(positive, 1.0)

    def __call__(self, w: ArrayLike) -> jax.Array:
        """Return 0 on the simplex, infinity outside."""
        w = jnp.asarray(w)
        total = jnp.asarray(self.total, w.dtype)
        slack = _rounding(w) * total
        inside = jnp.all(w >= -slack) & (jnp.abs(jnp.sum(w) - total) <= slack)
        return _indicator(inside, w)

    def prox(self, v: ArrayLike, t: ArrayLike) -> jax.Array:
        """Project on the simplex: max(v - tau, 0) with tau such that the sum fits."""
        v, _ = arguments(v, t)
        total = jnp.asarray(self.total, v.dtype)
        # The projection does not change when all entries move by the same amount;
        # a largest entry of zero keeps every digit of the ones that matter.
        v = v - jnp.max(v)
        falling = -jnp.sort(-v)
        taus = (jnp.cumsum(falling) - total) / jnp.arange(1, v.size + 1, dtype=v.dtype)
        tau = taus[jnp.sum(falling > taus) - 1]
        return jnp.maximum(v - tau, 0)
