"""The trimmed mean of every coordinate.

A. Jung, "Federated Learning: From Theory to Practice", (187) with (189); D. Yin et al.,
"Byzantine-robust distributed learning", ICML 2018.
"""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp
from jax import Array

from tacita.aggregation.robust_rule import RobustRule, Vectors, ratio
from tacita.trees import count, frozen, one_of


@frozen
class TrimmedMean(RobustRule):
    """Drops the smallest and the largest values of a coordinate, and averages the rest.

    Attributes:
        trim: b, how many values are dropped at either end.
        weights: "uniform", or "samples": then the share trim / letters of all weight
            is cut off either tail.

    >>> TrimmedMean(trim=1).of([[1.0], [2.0], [3.0], [99.0]]).tolist()
    [2.5]
    """

    trim: int = count(1, at_least=0)
    weights: str = one_of("uniform", "samples")

    _weighs: ClassVar[bool] = True

    @property
    def least(self) -> int:
        """N > 2 b."""
        return 2 * self.trim + 1

    def bears(self, agents: int) -> int:
        """As many as are dropped at either end."""
        return self.trim if agents >= self.least else 0

    def kappa(self, agents: int, liars: int) -> float:
        """6 r (1 + r), where no more lie than are dropped."""
        r = ratio(agents, self.trim)
        return 6 * r * (1 + r) if liars <= self.trim else float("inf")

    def join(self, given: Vectors) -> Array:
        """The mean of the values that are left."""
        if given.weights is not None:
            return trimmed_by_mass(given, self.trim / jnp.maximum(given.heard, 1))
        total = given.rank_sum(self.trim, given.heard - self.trim)
        return total / jnp.maximum(given.heard - 2 * self.trim, 1)

    def used(self, given: Vectors) -> Array:
        """The share of its coordinates that are not dropped."""
        order = jnp.argsort(given.or_infinite, axis=0, stable=True)
        rank = jnp.argsort(order, axis=0, stable=True)
        left = (rank >= self.trim) & (rank < given.heard - self.trim)
        return jnp.mean(left, axis=1)


def trimmed_by_mass(given: Vectors, mass: Array | float) -> Array:
    """The weighted mean after the share `mass` of all weight is cut off either tail."""
    order = jnp.argsort(given.or_infinite, axis=0, stable=True)
    values = jnp.take_along_axis(given.letters, order, axis=0)
    shares = given.shares[order]
    above = jnp.cumsum(shares, axis=0)
    # What is left of a letter's share of [0, 1] within [mass, 1 - mass].
    inside = jnp.minimum(above, 1 - mass) - jnp.maximum(above - shares, mass)
    left = jnp.maximum(inside, 0)
    return jnp.sum(left * values, axis=0) / jnp.sum(left, axis=0)
