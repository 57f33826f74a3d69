"""The geometric median: the point of the least sum of distances to the letters.

A. Jung, "Federated Learning: From Theory to Practice", (175); E. Weiszfeld 1937, with
the step of Y. Vardi and C.-H. Zhang, PNAS 2000, at a letter. The steps need inner
products only, so that each costs n^2, however long letters are.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from tacita.aggregation.gram import distances_to_mix, gram
from tacita.aggregation.robust_rule import RobustRule, Vectors, middle, ratio
from tacita.trees import frozen, one_of

#: Steps at most, and the step, by the usual distance, at which they end.
_STEPS = 2000
_SMALL = {8: 1e-13, 4: 1e-6}


@frozen
class GeometricMedian(RobustRule):
    """argmin_z sum_i weight_i ||x_i - z||, converged.

    Attributes:
        weights: "uniform", or "samples".

    >>> GeometricMedian().of([[0.0], [4.0], [90.0]]).round(9).tolist()
    [4.0]
    """

    weights: str = one_of("uniform", "samples")

    @property
    def least(self) -> int:
        """Of two letters any point between them is one."""
        return 3

    def kappa(self, agents: int, liars: int) -> float:
        """4 (1 + r)^2."""
        return 4 * (1 + ratio(agents, liars)) ** 2

    def join(self, given: Vectors) -> Array:
        """Steps until they are tiny."""
        inner, shares = gram(given), given.shares
        # Letters this close to a point count as lying at it; by the median length, for
        # the longest is the liars' to choose.
        lengths = jnp.where(given.active, jnp.sqrt(jnp.diagonal(inner)), jnp.inf)
        scale = middle(jnp.sort(lengths), given.heard)
        resolution = jnp.sqrt(jnp.finfo(inner.dtype).eps) * scale * 1e-3
        small = _SMALL[inner.dtype.itemsize]

        def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            mix, _, number = state
            far = distances_to_mix(inner, mix)
            new, total = _step(inner, shares, mix, far, resolution)
            change = new - mix
            moved = jnp.sqrt(jnp.maximum(change @ inner @ change, 0))
            # By the harmonic mean of distances, in which far ones count for nothing.
            return new, moved * total <= small, number + 1

        def go_on(state: tuple[Array, Array, Array]) -> Array:
            return ~state[1] & (state[2] < _STEPS)

        first = (shares, jnp.asarray(False), jnp.asarray(0))
        return jax.lax.while_loop(go_on, step, first)[0] @ given.letters


def _step(
    inner: Array, shares: Array, mix: Array, far: Array, resolution: Array
) -> tuple[Array, Array]:
    """Weiszfeld's step; Vardi and Zhang's where the point is one of the letters.

    And the mean of one over the distances to the others.
    """
    at = far <= resolution
    pull = jnp.where(at, 0, shares / jnp.where(at, 1, far))
    total = jnp.sum(pull)
    aim = pull / jnp.where(total > 0, total, 1)
    # (176): the point is the median if the others pull less than the letters at it.
    force = pull - total * mix
    strength = jnp.sqrt(jnp.maximum(force @ inner @ force, 0))
    held = jnp.sum(jnp.where(at, shares, 0))
    stay = jnp.minimum(1, held / jnp.where(strength > 0, strength, 1))
    stay = jnp.where(total > 0, jnp.where(strength > 0, stay, 1.0), 1.0)
    return (1 - stay) * aim + stay * mix, total
