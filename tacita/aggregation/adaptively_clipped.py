"""Adaptive clipping: the longest letters are cut to the next one's length.

Y. Allouah et al., "Adaptive gradient clipping for robust federated learning", 2024.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array

from tacita.aggregation.norm_clipping import lengths_from, shortened
from tacita.aggregation.robust_rule import Before, Vectors, asked
from tacita.aggregation.trimmed_mean import TrimmedMean
from tacita.trees import count, frozen


@frozen
class AdaptivelyClipped(Before):
    """Shortens the floor(2f(n-f)/n) longest differences, then asks another rule.

    Attributes:
        liars: f, how many agents may lie.
        rule: What joins the shortened letters.
    """

    liars: int = count(1, at_least=0)
    rule: Any = asked(TrimmedMean(trim=1))

    def join(self, given: Vectors) -> Array:
        """The other rule of the shortened letters."""
        return self.rule.join(given._replace(letters=self.clipped(given)))

    def clipped(self, given: Vectors) -> Array:
        """The letters, the longest differences from the centre shortened."""
        h = given.heard
        cut = 2 * self.liars * (h - self.liars) // jnp.maximum(h, 1)
        lengths = jnp.sort(lengths_from(given, given.centre))
        radius = lengths[jnp.maximum(h - cut - 1, 0)]
        near = shortened(given.letters - given.centre, radius)
        return jnp.where(given.active[:, None], given.centre + near, 0)
