"""Proximable functions: the non-smooth term `h` of `sum_i f_i(w) + h(w)`.

Each function knows its value and its proximal operator

    prox_{t h}(v) = argmin_x  h(x) + ||x - v||^2 / (2 t),        t > 0.

N. Parikh and S. Boyd, "Proximal Algorithms", Foundations and Trends in Optimization,
2014: chapter 6 has the formulas used here.

All are written for ONE flat vector; batch them with `jax.vmap`. Weights, bounds and
radii are pytree leaves, so a new weight does not recompile. Values and proximal points
keep the dtype of their argument. The value of a constraint is 0 inside its set and
infinite outside, where points within rounding of the set count as inside.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from tacita.check import finite, is_number, not_negative, positive, refuse, shape
from tacita.trees import count, frozen, needed, number, static


class Proximable(Protocol):
    """A function with a cheap proximal operator.

    One of your own is a record, so that JAX knows its numbers:

    >>> from tacita.trees import frozen
    >>> @frozen
    ... class Ridge:
    ...     weight: float
    ...
    ...     def __call__(self, w):
    ...         return 0.5 * self.weight * jnp.sum(w**2)
    ...
    ...     def prox(self, v, t):
    ...         return v / (1 + t * self.weight)
    >>> Ridge(weight=1.0).prox(jnp.array([2.0]), 1.0).tolist()
    [1.0]
    """

    def __call__(self, w: ArrayLike) -> jax.Array:
        """Return the value at `w`, infinite outside a constraint set."""
        ...

    def prox(self, v: ArrayLike, t: ArrayLike) -> jax.Array:
        """Return `argmin_x h(x) + ||x - v||^2 / (2 t)`."""
        ...


def _arguments(v: ArrayLike, t: ArrayLike) -> tuple[jax.Array, jax.Array]:
    """Bring the point to JAX and the step `t` to the dtype of the point."""
    v = jnp.asarray(v)
    return v, jnp.asarray(not_negative(t=t), v.dtype)


def _soft_threshold(v: jax.Array, threshold: jax.Array) -> jax.Array:
    """Return sign(v) max(|v| - threshold, 0), with exact zeros."""
    return v - jnp.clip(v, -threshold, threshold)


def _sqrt(squares: jax.Array) -> jax.Array:
    """Square root whose derivative at zero is zero, not infinite."""
    above = squares > 0
    return jnp.where(above, jnp.sqrt(jnp.where(above, squares, 1)), 0)


def _indicator(inside: jax.Array, w: jax.Array) -> jax.Array:
    return jnp.where(inside, 0.0, jnp.inf).astype(w.dtype)


def _rounding(w: jax.Array) -> float:
    """How far outside its set a point may lie, relative to the size of the set."""
    return 1e3 * float(jnp.finfo(w.dtype).eps)


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
        v, t = _arguments(v, t)
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
        v, t = _arguments(v, t)
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
        return _sqrt(squares), labels

    def __call__(self, w: ArrayLike) -> jax.Array:
        """Return the weighted sum of the norms of the groups."""
        w = jnp.asarray(w)
        return jnp.sum(jnp.asarray(self.weight, w.dtype) * self._norms(w)[0])

    def prox(self, v: ArrayLike, t: ArrayLike) -> jax.Array:
        """Shrink the norm of every group by t weight."""
        v, t = _arguments(v, t)
        norms, labels = self._norms(v)
        threshold = t * jnp.asarray(self.weight, v.dtype)
        # (1 - t weight / ||v_g||)_+ v_g, with no division by the norm of a zero group
        kept = norms > threshold
        factor = jnp.where(kept, 1 - threshold / jnp.where(kept, norms, 1), 0)
        return factor[labels] * v


@frozen
class Box:
    """The constraint low <= w <= high; an infinite bound is no bound.

    Args:
        low: Number or one per coordinate.
        high: Number or one per coordinate.

    Example:
        >>> Box(low=0.0, high=float("inf")).prox([-1.0, 2.0], 1.0).tolist()
        [0.0, 2.0]
    """

    low: ArrayLike = dataclasses.field(kw_only=False)
    high: ArrayLike = dataclasses.field(kw_only=False)

    def __post_init__(self) -> None:
        if not (is_number(self.low) and is_number(self.high)):
            finite(low=self.low)
            finite(high=self.high)
        elif not np.all(np.asarray(self.low) <= np.asarray(self.high)):
            refuse(f"expected low <= high, got low={self.low}, high={self.high}")

    def __call__(self, w: ArrayLike) -> jax.Array:
        """Return 0 inside the box, infinity outside."""
        w = jnp.asarray(w)
        outside = jnp.abs(w - self.prox(w, 1.0))
        return _indicator(jnp.all(outside <= _rounding(w) * (1 + jnp.abs(w))), w)

    def prox(self, v: ArrayLike, t: ArrayLike) -> jax.Array:
        """Project on the box."""
        v, _ = _arguments(v, t)
        low, high = jnp.asarray(self.low, v.dtype), jnp.asarray(self.high, v.dtype)
        return jnp.clip(v, low, high)


@frozen
class L2Ball:
    """The constraint ||w||_2 <= radius.

    Example:
        >>> L2Ball(radius=2.5).prox([3.0, 4.0], 1.0).tolist()
        [1.5, 2.0]
    """

    radius: ArrayLike = needed(positive, kw_only=False)

    def __call__(self, w: ArrayLike) -> jax.Array:
        """Return 0 inside the ball, infinity outside."""
        w = jnp.asarray(w)
        radius = jnp.asarray(self.radius, w.dtype)
        return _indicator(_sqrt(jnp.sum(w**2)) <= radius * (1 + _rounding(w)), w)

    def prox(self, v: ArrayLike, t: ArrayLike) -> jax.Array:
        """Project on the ball."""
        v, _ = _arguments(v, t)
        norm, radius = _sqrt(jnp.sum(v**2)), jnp.asarray(self.radius, v.dtype)
        outside = norm > radius
        return jnp.where(outside, v * (radius / jnp.where(outside, norm, 1)), v)


@frozen
class Simplex:
    """The constraint w >= 0, sum(w) = total.

    Example:
        >>> Simplex().prox([1.5, 1.0, -3.0], 1.0).tolist()
        [0.75, 0.25, 0.0]
    """

    total: ArrayLike = number(positive, 1.0)

    def __call__(self, w: ArrayLike) -> jax.Array:
        """Return 0 on the simplex, infinity outside."""
        w = jnp.asarray(w)
        total = jnp.asarray(self.total, w.dtype)
        slack = _rounding(w) * total
        inside = jnp.all(w >= -slack) & (jnp.abs(jnp.sum(w) - total) <= slack)
        return _indicator(inside, w)

    def prox(self, v: ArrayLike, t: ArrayLike) -> jax.Array:
        """Project on the simplex: max(v - tau, 0) with tau such that the sum fits."""
        v, _ = _arguments(v, t)
        total = jnp.asarray(self.total, v.dtype)
        # The projection does not change when all entries move by the same amount;
        # a largest entry of zero keeps every digit of the ones that matter.
        v = v - jnp.max(v)
        falling = -jnp.sort(-v)
        taus = (jnp.cumsum(falling) - total) / jnp.arange(1, v.size + 1, dtype=v.dtype)
        tau = taus[jnp.sum(falling > taus) - 1]
        return jnp.maximum(v - tau, 0)


@frozen
class Sum:
    """h_1 + h_2 + ..., such as a sparse model within bounds.

    Together they have no formula; their proximal point is approached in `steps` rounds
    of the proximal points of each (Dykstra's algorithm: H. Bauschke and P. Combettes,
    "A Dykstra-like algorithm for two monotone operators", 2008; coordinate ascent on
    the dual). Whoever uses it bears a small error, as Fed-PLT does. Put a constraint
    last: that one is kept to the last digit.

    Args:
        parts: The functions.
        steps: Rounds through all parts.

    Example:
        >>> Sum(parts=(L1(0.5), Box(0.0, 1.0))).prox([2.0, -0.5, 0.75], 1.0).tolist()
        [1.0, 0.0, 0.25]
    """

    parts: Sequence[Proximable] = dataclasses.field(kw_only=True)
    steps: int = count(50)

    def __post_init__(self) -> None:
        parts = self.parts if isinstance(self.parts, list | tuple) else ()
        known = [hasattr(one, "prox") and not isinstance(one, type) for one in parts]
        if not parts or not all(known):
            refuse(
                "expected parts a list of functions such as [prox.L1(0.1), "
                f"prox.Box(0, 1)], got parts={self.parts!r}"
            )
        object.__setattr__(self, "parts", tuple(parts))

    def __call__(self, w: ArrayLike) -> jax.Array:
        """Return the sum of the values."""
        w = jnp.asarray(w)
        return sum((part(w) for part in self.parts), jnp.zeros((), w.dtype))

    def prox(self, v: ArrayLike, t: ArrayLike) -> jax.Array:
        """Let every part in turn move the point, less what it moved it before."""
        v, t = _arguments(v, t)

        def once(state: tuple, _: None) -> tuple[tuple, None]:
            x, moved = state
            after = []
            for part, own in zip(self.parts, moved, strict=True):
                before = x + own
                x = part.prox(before, t)
                after.append(before - x)
            return (x, tuple(after)), None

        still = tuple(jnp.zeros_like(v) for _ in self.parts)
        return jax.lax.scan(once, (v, still), length=self.steps)[0][0]


def _parts_of(h: Any) -> list[Any]:
    """All functions of which it is the sum, or itself."""
    if not isinstance(h, Sum):
        return [h]
    return [one for part in h.parts for one in _parts_of(part)]


def proximable(h: Any, dim: int) -> Any:
    """Refuse an `h` that is no proximable function of `dim` parameters."""
    if h is None:
        return None
    prox = getattr(h, "prox", None)
    if isinstance(h, type) or not callable(h) or prox is None:
        refuse(
            "expected h a proximable function such as tacita.problem.prox.L1(0.1), got "
            f"h={h!r}"
        )
    for one in _parts_of(h):
        if jax.tree_util.all_leaves([one]):
            refuse(
                f"h={type(one).__name__} is of a class that JAX does not know; put "
                "@tacita.trees.frozen above the class and write its numbers as fields"
            )
    w = jax.ShapeDtypeStruct((dim,), jnp.float32)
    try:
        # Shapes only: nothing is computed or compiled.
        made = jax.eval_shape(lambda v: prox(v, 1.0), w).shape, jax.eval_shape(h, w)
    except (TypeError, ValueError) as error:
        first = str(error).strip().split("\n")[0]
        refuse(f"h={type(h).__name__} does not fit {dim} parameters: {first}")
    if made[0] != (dim,) or made[1].shape != ():
        refuse(
            f"h={type(h).__name__} does not fit {dim} parameters: its proximal point "
            f"has shape {made[0]}; give one number, or one per parameter"
        )
    return h
