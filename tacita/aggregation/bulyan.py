"""Bulyan: many letters by Krum, then every coordinate near its median.

E. El Mhamdi et al., "The hidden vulnerability of distributed learning in Byzantium",
ICML 2018.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from tacita.aggregation.gram import squared_distances
from tacita.aggregation.krum import scores
from tacita.aggregation.robust_rule import RobustRule, Vectors
from tacita.aggregation.sorting import nearest
from tacita.trees import count, frozen


@frozen
class Bulyan(RobustRule):
    """Picks n - 2f letters by repeated Krum, averages the n - 4f values near a median.

    Attributes:
        liars: f, how many agents may lie.
    """

    liars: int = count(1, at_least=0)

    @property
    def least(self) -> int:
        """N >= 4 f + 3."""
        return 4 * self.liars + 3

    def bears(self, agents: int) -> int:
        """As many as it was told of."""
        return self.liars if agents >= self.least else 0

    def join(self, given: Vectors) -> Array:
        """Pick, then average around the median."""
        apart, h = squared_distances(given), given.heard

        def pick(number: Array, left: Array) -> Array:
            best = jnp.argmin(scores(apart, left, self.liars))
            return left.at[best].set(
                jnp.where(number < h - 2 * self.liars, False, left[best])
            )

        n = len(given.active)
        left = jax.lax.fori_loop(0, max(n - 2 * self.liars, 0), pick, given.active)
        chosen = given._replace(active=given.active & ~left)
        return mean_around_median(chosen, h - 4 * self.liars)


def mean_around_median(given: Vectors, keep: Array) -> Array:
    """The mean of every coordinate's `keep` values nearest their median."""
    away = jnp.abs(given.or_infinite - given.median)
    total = jnp.sum(jnp.where(nearest(away, keep), given.letters, 0), axis=0)
    return total / jnp.maximum(keep, 1)
