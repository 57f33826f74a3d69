"""The clipped mean of every coordinate.

A. Jung, "Federated Learning: From Theory to Practice", (187) with (188) mended.
"""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp
from jax import Array

from tacita.aggregation.robust_rule import RobustRule, Vectors
from tacita.trees import count, frozen


@frozen
class ClippedMean(RobustRule):
    """Clamps every value to the (b+1)-th smallest and largest, and averages.

    Attributes:
        trim: b, how many values at either end are clamped.

    >>> ClippedMean(trim=1).of([[1.0], [2.0], [3.0], [99.0]]).tolist()
    [2.5]
    """

    trim: int = count(1, at_least=0)

    _weighs: ClassVar[bool] = True

    @property
    def least(self) -> int:
        """N > 2 b."""
        return 2 * self.trim + 1

    def bears(self, agents: int) -> int:
        """As many as are clamped at either end."""
        return self.trim if agents >= self.least else 0

    def join(self, given: Vectors) -> Array:
        """The mean of the clamped values."""
        last = jnp.maximum(given.heard - 1 - self.trim, 0)
        low = given.rank_sum(self.trim, self.trim + 1)
        high = given.rank_sum(last, last + 1)
        return given.shares @ jnp.clip(given.letters, low, high)
