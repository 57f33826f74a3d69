"""Krum: the letter with the nearest company.

P. Blanchard et al., "Machine learning with adversaries", NeurIPS 2017. A letter's score
is the sum of squared distances to its n - f - 2 nearest others.
"""

from __future__ import annotations

from typing import ClassVar

import jax.numpy as jnp
from jax import Array

from tacita.aggregation.gram import squared_distances
from tacita.aggregation.robust_rule import RobustRule, Vectors, ratio
from tacita.aggregation.sorting import nearest, rank_sum
from tacita.trees import count, frozen


def scores(apart: Array, active: Array, liars: Array | int) -> Array:
    """Krum's scores of the active letters, infinite for the others."""
    others = jnp.where(jnp.eye(len(active), dtype=bool), jnp.inf, apart)
    others = jnp.where(active[:, None], others, jnp.inf)
    company = jnp.maximum(jnp.sum(active) - liars - 2, 1)
    # Distances are the same from both sides, so that columns serve for rows.
    return jnp.where(active, rank_sum(others, 0, company), jnp.inf)


@frozen
class Krum(RobustRule):
    """The one letter of the least score; ties go to the lower agent number.

    Attributes:
        liars: f, how many agents may lie.
    """

    liars: int = count(1, at_least=0)

    @property
    def least(self) -> int:
        """N > 2 f + 2."""
        return 2 * self.liars + 3

    def bears(self, agents: int) -> int:
        """As many as it was told of."""
        return self.liars if agents >= self.least else 0

    def kappa(self, agents: int, liars: int) -> float:
        """6 (1 + r), where no more lie than it was told of."""
        known = liars <= self.liars
        return 6 * (1 + ratio(agents, self.liars)) if known else float("inf")

    def join(self, given: Vectors) -> Array:
        """The best letter."""
        return given.letters[self._best(given)]

    def used(self, given: Vectors) -> Array:
        """One letter, all of it."""
        return (jnp.arange(len(given.active)) == self._best(given)).astype(float)

    def _best(self, given: Vectors) -> Array:
        return jnp.argmin(scores(squared_distances(given), given.active, self.liars))


@frozen
class MultiKrum(RobustRule):
    """The mean of the letters of the least scores.

    Attributes:
        liars: f, how many agents may lie.
        keep: How many letters; default all but liars + 2.
    """

    liars: int = count(1, at_least=0)
    keep: int | None = count(None)

    _weighs: ClassVar[bool] = True

    @property
    def least(self) -> int:
        """N > 2 f + 2."""
        return max(2 * self.liars + 3, self.keep or 0)

    def bears(self, agents: int) -> int:
        """As many as it was told of."""
        return self.liars if agents >= self.least else 0

    def join(self, given: Vectors) -> Array:
        """The mean of the best."""
        return given._replace(active=self.used(given)).shares @ given.letters

    def used(self, given: Vectors) -> Array:
        """The best letters, all of them."""
        keep = given.heard - self.liars - 2 if self.keep is None else self.keep
        score = scores(squared_distances(given), given.active, self.liars)
        return nearest(score[:, None], keep)[:, 0] & given.active
