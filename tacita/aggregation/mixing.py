"""Rules before a rule: letters become means of letters, which lie closer together.

Y. Allouah et al., "Fixing by mixing", AISTATS 2023 (nearest neighbours);
S. P. Karimireddy et al., "Byzantine-robust learning on heterogeneous datasets via
bucketing", ICLR 2022 (buckets).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from tacita.aggregation.gram import squared_distances
from tacita.aggregation.median import Median
from tacita.aggregation.robust_rule import Before, RobustRule, Vectors, asked
from tacita.aggregation.sorting import nearest
from tacita.aggregation.trimmed_mean import TrimmedMean
from tacita.trees import count, frozen


@frozen
class NearestNeighbourMixing(Before):
    """Every letter becomes the mean of its n - f nearest, itself included.

    Attributes:
        liars: f, how many agents may lie.
        rule: What joins the mixed letters.
    """

    liars: int = count(1, at_least=0)
    rule: Any = asked(TrimmedMean(trim=1))

    def kappa(self, agents: int, liars: int) -> float:
        """8 f / (n - f) (kappa + 1)."""
        inner = self.rule.kappa(agents, self.liars)
        known = 8 * self.liars / (agents - self.liars) * (inner + 1)
        return known if liars <= self.liars else float("inf")

    def join(self, given: Vectors) -> Array:
        """The other rule of the mixed letters."""
        return self.rule.join(given._replace(letters=self.mixed(given)))

    def mixed(self, given: Vectors) -> Array:
        """Every letter's mean with its nearest."""
        apart = squared_distances(given)
        apart = jnp.where(jnp.eye(len(apart), dtype=bool), -1, apart)
        keep = given.heard - self.liars
        # Distances are the same from both sides, so that columns serve for rows.
        near = nearest(apart, keep).T & given.active[:, None] & given.active[None, :]
        share = near.astype(given.letters.dtype) / jnp.maximum(keep, 1)
        return share.astype(given.letters.dtype) @ given.letters


@frozen
class Buckets(RobustRule):
    """Means of random groups of letters, then another rule.

    Attributes:
        size: Letters in a group; the last may have fewer.
        rule: What joins the groups' means.
    """

    size: int = count(2)
    rule: Any = asked(Median(), of_groups=True)

    @property
    def least(self) -> int:
        """As many groups as the other rule needs."""
        return self.size * (self.rule.least - 1) + 1

    def bears(self, agents: int) -> int:
        """As many as the other rule bears among the groups: one liar spoils one."""
        return self.rule.bears(-(-agents // self.size))

    def join(self, given: Vectors) -> Array:
        """The other rule of the means of groups."""
        # Drawn by the place among the heard, so that silent agents change nothing.
        place = jnp.cumsum(given.active) - 1
        one = jax.vmap(lambda j: jax.random.uniform(jax.random.fold_in(given.key, j)))
        drawn = jnp.where(given.active, one(place), jnp.inf)
        rank = jnp.argsort(jnp.argsort(drawn, stable=True), stable=True)
        return self.rule.join(self.grouped(given, rank))

    def grouped(self, given: Vectors, rank: Array) -> Vectors:
        """The means of groups of letters that follow each other in rank."""
        groups = -(-len(given.active) // self.size)
        group = jnp.where(given.active, rank // self.size, groups)
        belongs = (group[None, :] == jnp.arange(groups)[:, None]).astype(
            given.letters.dtype
        )
        members = jnp.sum(belongs, axis=1)
        means = belongs @ given.letters / jnp.maximum(members, 1)[:, None]
        return given._replace(letters=means, active=members > 0, weights=None)
