"""Rules of a node on a graph, which trusts its own letter: that is the centre.

L. He et al., "Byzantine-robust decentralized learning via ClippedGossip", 2022;
C. Fang et al., "BRIDGE: Byzantine-resilient decentralized gradient descent", IEEE TSIPN
2022; S. Farhadkhani et al., "Robust collaborative learning with linear gradient
overhead", ICML 2023 (nearest to own).
"""

from __future__ import annotations

from typing import Any, ClassVar

import jax.numpy as jnp
from jax import Array

from tacita import check
from tacita.aggregation.norm_clipping import lengths_from, shortened
from tacita.aggregation.robust_rule import RobustRule, Vectors
from tacita.aggregation.sorting import nearest
from tacita.aggregation.trimmed_mean import TrimmedMean
from tacita.trees import count, frozen, number


@frozen
class ClippedGossip(RobustRule):
    """own + sum_j W_ij clip(x_j - own, radius), W_ij = A_ij / degree.

    Attributes:
        drop: b: without a radius, the distance left after dropping the b farthest.
        radius: Longest difference; None lets every node take its own.
    """

    drop: int = count(1, at_least=0)
    radius: Any = number(check.positive)

    _weighs: ClassVar[bool] = True

    @property
    def least(self) -> int:
        """More than are dropped."""
        return self.drop + 1

    def bears(self, agents: int) -> int:
        """As many as are dropped."""
        return min(self.drop, max(agents - 1, 0))

    def join(self, given: Vectors) -> Array:
        """The own letter and the mean of bounded differences to it."""
        radius = self.left(given) if self.radius is None else self.radius
        own = given.centre
        return own + given.shares @ shortened(given.letters - own, radius)

    def left(self, given: Vectors) -> Array:
        """The distance to the farthest neighbour after the farthest are dropped."""
        ordered = jnp.sort(lengths_from(given, given.centre))
        return ordered[jnp.maximum(given.heard - 1 - self.drop, 0)]


@frozen
class Bridge(RobustRule):
    """BRIDGE-T: trims neighbours' values per coordinate, then averages with the own.

    Attributes:
        trim: b, how many values are dropped at either end.
    """

    trim: int = count(1, at_least=0)

    @property
    def least(self) -> int:
        """Neighbours > 2 b."""
        return 2 * self.trim + 1

    def bears(self, agents: int) -> int:
        """As many as are dropped at either end."""
        return self.trim if agents >= self.least else 0

    def join(self, given: Vectors) -> Array:
        """The mean of what is left and of the own letter."""
        left = given.heard - 2 * self.trim
        trimmed = TrimmedMean(trim=self.trim).join(given._replace(weights=None))
        return (given.centre + left * trimmed) / (left + 1)


@frozen
class NearestToOwn(RobustRule):
    """The mean of the own letter and of all neighbours' but the f farthest.

    Attributes:
        liars: f, how many neighbours may lie.
    """

    liars: int = count(1, at_least=0)

    @property
    def least(self) -> int:
        """More than are left out."""
        return self.liars + 1

    def bears(self, agents: int) -> int:
        """As many as are left out."""
        return self.liars if agents >= self.least else 0

    def join(self, given: Vectors) -> Array:
        """The mean of the near ones."""
        keep = given.heard - self.liars
        away = lengths_from(given, given.centre)[:, None]
        near = nearest(away, keep)[:, 0] & given.active
        total = near.astype(given.letters.dtype) @ given.letters
        return (given.centre + total) / (keep + 1)


#: Rules whose centre is a node's own letter: they say nothing to a coordinator.
ON_GRAPHS = (ClippedGossip, Bridge, NearestToOwn)
