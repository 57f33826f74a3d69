"""Penalties: sparse models, small ones, models of few groups."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from tacita.check import not_negative, refuse, shape
from tacita.problem.prox.function import arguments, sqrt
from tacita.trees import frozen, needed, static


def _soft_threshold(v: jax.Array, threshold: jax.Array) -> jax.Array:
    """Return sign(v) max(|v| - threshold, 0), with exact zeros."""
    return v - jnp.clip(v, -threshold, threshold)


@frozen
class L1:
    """The lasso: h(w) = weight ||w||_1.

    Args:
        weight: Number >= 0, or one per coordinate.

    Example:
        >>> L1(0.5).prox([2.0, -0.25, -1.0], 1.0).tolist()
        [1.5, 0.0, -0.5]
    """

    weight: ArrayLike = needed(not_negative, kw_only=False)

    def __call__(self, w: ArrayLike) -> jax.Array:
        """Return weight ||w||_1."""
        w = jnp.asarray(w)
        return jnp.sum(jnp.asarray(self.weight, w.dtype) * jnp.abs(w))

    def prox(self, v: ArrayLike, t: ArrayLike) -> jax.Array:
        """Shrink every coordinate by t weight; small ones become exactly zero."""
        v, t = arguments(v, t)
        return _soft_threshold(v, t * jnp.asarray(self.weight, v.dtype))


@frozen
class ElasticNet:
    """The elastic net: h(w) = l1 ||w||_1 + (l2 / 2) ||w||^2, l1 >= 0, l2 >= 0.

    Example:
        >>> ElasticNet(l1=0.5, l2=2.0).prox([2.0, -0.25], 1.0).tolist()
        [0.5, 0.0]
    """

    l1: ArrayLike = needed(not_negative, kw_only=False)
    l2: ArrayLike = needed(not_negative, kw_only=False)

    def __call__(self, w: ArrayLike) -> jax.Array:
        """Return l1 ||w||_1 + (l2 / 2) ||w||^2."""
        w = jnp.asarray(w)
        l1, l2 = jnp.asarray(self.l1, w.dtype), jnp.asarray(self.l2, w.dtype)
        return jnp.sum(l1 * jnp.abs(w) + 0.5 * l2 * w**2)

    def prox(self, v: ArrayLike, t: ArrayLike) -> jax.Array:
        """Shrink by t l1, then scale by 1 / (1 + t l2)."""
        v, t = arguments(v, t)
        l1, l2 = jnp.asarray(self.l1, v.dtype), jnp.asarray(self.l2, v.dtype)
        return _soft_threshold(v, t * l1) / (1 + t * l2)


@frozen
class GroupLasso:
    """The group lasso: h(w) = sum_g weight ||w_g||_2, whole groups become zero.

    The weight is not scaled by the group size; give one weight per group, such as
    `weight * sqrt(size)`, where larger groups should pay more.

    Args:
        weight: Number >= 0, or one per group.
        groups: For every coordinate the label of its group, a whole number from 0.
            Kept as a tuple: new labels recompile.

    Example:
        >>> GroupLasso(weight=5.0, groups=(0, 0, 1)).prox([6.0, 8.0, 4.0], 1.0).tolist()
        [3.0, 4.0, 0.0]
    """

    weight: ArrayLike = needed(not_negative, kw_only=False)
    groups: Sequence[int] | np.ndarray = static(kw_only=False)

    def __post_init__(self) -> None:
        labels = np.asarray(self.groups)
        if labels.ndim != 1 or labels.size == 0 or labels.dtype.kind not in "iu":
            refuse(
                "expected groups one whole number per coordinate, got "
                f"{labels.dtype} of shape {labels.shape}"
            )
        if labels.min() < 0:
            refuse(f"expected groups >= 0, got groups={labels.min()}")
        object.__setattr__(self, "groups", tuple(labels.tolist()))

    def _norms(self, w: jax.Array) -> tuple[jax.Array, np.ndarray]:
        shape((len(self.groups),), w=w)
        labels = np.asarray(self.groups, np.int32)
        squares = jax.ops.segment_sum(w**2, labels, int(labels.max()) + 1)
        return sqrt(squares), labels

    def __call__(self, w: ArrayLike) -> jax.Array:
        """Return the weighted sum of the norms of the groups."""
        w = jnp.asarray(w)
        return jnp.sum(jnp.asarray(self.weight, w.dtype) * self._norms(w)[0])

    def prox(self, v: ArrayLike, t: ArrayLike) -> jax.Array:
        """Shrink the norm of every group by t weight."""
        v, t = arguments(v, t)
        norms, labels = self._norms(v)
        threshold = t * jnp.asarray(self.weight, v.dtype)
        # (1 - t weight / ||v_g||)_+ v_g, with no division by the norm of a zero group
        kept = norms > threshold
        factor = jnp.where(kept, 1 - threshold / jnp.where(kept, norms, 1), 0)
        return factor[labels] * v
