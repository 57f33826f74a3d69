"""Letters pulled towards a centre: none moves the result by more than radius / n.

S. P. Karimireddy et al., "Learning from history for Byzantine robust optimization",
ICML 2021; Z. Sun et al., "Can you really backdoor federated learning?", 2019.
"""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from tacita import check
from tacita.aggregation.robust_rule import RobustRule, Vectors, middle
from tacita.trees import count, frozen, number, one_of


@frozen
class CenteredClipping(RobustRule):
    """v <- v + mean of clip(x_i - v, radius), a few times, from the centre.

    Attributes:
        radius: Longest difference; None takes the median one of every exchange.
        steps: How many.
        start: From the "centre" (the last broadcast), or the "median" of letters.
        weights: "uniform", or "samples".
    """

    radius: Any = number(check.positive)
    steps: int = count(3)
    start: str = one_of("centre", "median")
    weights: str = one_of("uniform", "samples")

    _weighs: ClassVar[bool] = True

    @property
    def bound(self) -> float | None:
        """The radius, of one step from the centre."""
        once = self.steps == 1 and self.start == "centre"
        return public_radius(self) if once else None

    def join(self, given: Vectors) -> Array:
        """All steps."""
        first = given.centre if self.start == "centre" else given.median
        radius = typical_length(given, first) if self.radius is None else self.radius

        def step(_: Array, v: Array) -> Array:
            return v + given.shares @ shortened(given.letters - v, radius)

        return jax.lax.fori_loop(0, self.steps, step, first)


@frozen
class NormBound(RobustRule):
    """centre + mean of clip(x_i - centre, radius): one step of centered clipping.

    Attributes:
        radius: Longest difference; None takes the median one of every exchange.
        weights: "uniform", or "samples".
    """

    radius: Any = number(check.positive)
    weights: str = one_of("uniform", "samples")

    _weighs: ClassVar[bool] = True

    @property
    def bound(self) -> float | None:
        """The radius."""
        return public_radius(self)

    def join(self, given: Vectors) -> Array:
        """The mean of bounded differences."""
        v = given.centre
        radius = typical_length(given, v) if self.radius is None else self.radius
        return v + given.shares @ shortened(given.letters - v, radius)


def public_radius(rule: CenteredClipping | NormBound) -> float | None:
    """The radius, unless it is a median of letters, or claims of rows weigh them."""
    return rule.radius if rule.weights == "uniform" else None


def shortened(vectors: Array, radius: Any) -> Array:
    """Every vector, no longer than its radius."""
    lengths = jnp.linalg.norm(vectors, axis=1)
    factor = jnp.minimum(1, radius / jnp.where(lengths > 0, lengths, 1))
    return vectors * jnp.where(lengths > 0, factor, 1).astype(vectors.dtype)[:, None]


def lengths_from(given: Vectors, point: Array) -> Array:
    """How far every letter lies from a point; infinite for the unheard."""
    away = jnp.linalg.norm(given.letters - point, axis=1)
    return jnp.where(given.active, away, jnp.inf)


def typical_length(given: Vectors, point: Array) -> Array:
    """The median distance of letters to a point."""
    return middle(jnp.sort(lengths_from(given, point)), given.heard)
