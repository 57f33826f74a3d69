"""RFA: a few steps of smoothed Weiszfeld.

K. Pillutla et al., "Robust aggregation for federated learning", IEEE TSP 2022.
"""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from tacita import check
from tacita.aggregation.gram import distances_to_mix, gram
from tacita.aggregation.robust_rule import RobustRule, Vectors, middle
from tacita.trees import count, frozen, number, one_of

#: Of the median distance from the mean, where no smoothing is given.
_SHARE = 1e-6


@frozen
class RFA(RobustRule):
    """From the mean, z <- sum_i b_i x_i / sum_i b_i, b_i = w_i / max(nu, ||x_i - z||).

    Attributes:
        steps: How many.
        smoothing: nu, a distance below which letters pull no harder; None takes a
            millionth of the median distance from the mean, of every exchange.
        weights: "uniform", or "samples".
    """

    steps: int = count(4)
    smoothing: Any = number(check.positive)
    weights: str = one_of("uniform", "samples")

    _weighs: ClassVar[bool] = True

    @property
    def least(self) -> int:
        """As the geometric median."""
        return 3

    def bears(self, agents: int) -> int:
        """None: f liars far away move it f / (n - f) times less with every step.

        However many steps there are, liars may go further away.
        """
        return 0

    def join(self, given: Vectors) -> Array:
        """All steps."""
        inner, shares = gram(given), given.shares
        nu = self._smoothing(given, inner)

        def step(_: Array, mix: Array) -> Array:
            pull = shares / jnp.maximum(nu, distances_to_mix(inner, mix))
            return pull / jnp.sum(pull)

        return jax.lax.fori_loop(0, self.steps, step, shares) @ given.letters

    def _smoothing(self, given: Vectors, inner: Array) -> Any:
        if self.smoothing is not None:
            return self.smoothing
        # By the median, for the longest distances are the liars' to choose.
        far = jnp.where(given.active, distances_to_mix(inner, given.shares), jnp.inf)
        usual = _SHARE * middle(jnp.sort(far), given.heard)
        return jnp.maximum(usual, jnp.finfo(far.dtype).tiny)
