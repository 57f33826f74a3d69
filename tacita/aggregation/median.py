"""The median of every coordinate."""

from __future__ import annotations

from jax import Array

from tacita.aggregation.robust_rule import RobustRule, Vectors, ratio
from tacita.trees import frozen


@frozen
class Median(RobustRule):
    """The median of every coordinate: of an even number, the mean of the middle two.

    >>> Median().of([[1.0], [2.0], [99.0]]).tolist()
    [2.0]
    """

    @property
    def least(self) -> int:
        """Of one or two letters it is the mean."""
        return 3

    def kappa(self, agents: int, liars: int) -> float:
        """4 (1 + r)^2."""
        return 4 * (1 + ratio(agents, liars)) ** 2

    def join(self, given: Vectors) -> Array:
        """The middle of every coordinate."""
        return given.median
