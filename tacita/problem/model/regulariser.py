"""Smooth penalties that every agent adds to its own loss."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array

from tacita import check
from tacita.trees import frozen, needed


@frozen
class SquaredL2:
    """(weight/2) ||w||^2: convex, its gradient is weight * w."""

    weight: float = needed(check.not_negative, called="l2")

    def __call__(self, w: Array) -> Array:
        """The penalty."""
        return 0.5 * self.weight * jnp.sum(w**2)

    def grad(self, w: Array) -> Array:
        """Its gradient."""
        return self.weight * w

    def curvature(self, w: Array) -> Array:
        """The diagonal of its Hessian."""
        return jnp.full_like(w, self.weight)

    @property
    def curvature_bounds(self) -> tuple[float, float]:
        """Smallest and largest curvature over all w."""
        return self.weight, self.weight


@frozen
class NonConvex:
    """weight * sum_j w_j^2 / (1 + w_j^2): smooth and not convex (Fed-PLT, sec. VII)."""

    weight: float = needed(check.not_negative)

    def __call__(self, w: Array) -> Array:
        """The penalty."""
        return self.weight * jnp.sum(w**2 / (1 + w**2))

    def grad(self, w: Array) -> Array:
        """2 weight w / (1 + w^2)^2."""
        return 2 * self.weight * w / (1 + w**2) ** 2

    def curvature(self, w: Array) -> Array:
        """The diagonal of its Hessian: 2 weight (1 - 3 w^2) / (1 + w^2)^3."""
        return 2 * self.weight * (1 - 3 * w**2) / (1 + w**2) ** 3

    @property
    def curvature_bounds(self) -> tuple[float, float]:
        """The curvature is smallest at w = 1 (-weight/2) and largest at 0."""
        return -0.5 * self.weight, 2.0 * self.weight


Regulariser = SquaredL2 | NonConvex


def regulariser_of(regulariser: Any, l2: Any) -> Regulariser:
    """The smooth penalty of a problem: the one given, or (l2/2) ||w||^2."""
    if regulariser is None:
        return SquaredL2(weight=check.given(l2=check.common(l2=l2)))
    if not isinstance(regulariser, SquaredL2 | NonConvex):
        check.refuse(
            "expected regulariser such as tacita.problem.NonConvex(weight=0.1), got "
            f"regulariser={regulariser!r}; for a plain number use l2="
        )
    return regulariser
