"""Penalties on the difference of two neighbours' models, for GTVMin.

A penalty is phi in  sum_i f_i(w_i) + alpha sum_{edges} A_ij phi(w_i - w_j)  (A. Jung,
"Federated Learning: From Theory to Practice", (48)): the squared length (49), the
length itself (the network lasso), the sum of absolute values, the largest of them, or
another p-norm. It may couple only some coordinates, and several may be combined with
strengths of their own (149). Any other symmetric function is an `OwnPenalty`.

All are written for ONE difference u, a flat vector; batch them with `jax.vmap`.
"""

from __future__ import annotations

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.problem.gtv import p_norm
from tacita.problem.gtv.own_penalty import ByNewton, OwnPenalty
from tacita.trees import frozen, number, one_of, replace, ruled

KINDS = ("squared", "l2", "l1", "linf", "lp")


@frozen
class Penalty:
    """One norm of the coupled coordinates.

    Attributes:
        kind: "squared": ||u||_2^2, "l2": ||u||_2, "l1": ||u||_1, "linf": max_k |u_k|,
            "lp": ||u||_p with the p below. In place of a `Penalty` the word "l3", or
            "l1.5", names such a norm.
        coordinates: Which coordinates are coupled, one boolean each; None couples all.
            The others are every node's own.
        strength: A factor, of use where penalties are combined.
        p: Of kind "lp", above 1.

    >>> shared = Penalty(kind="l1", coordinates=[True, True, False])
    >>> float(shared(jnp.array([1.0, -2.0, 5.0])))
    3.0
    """

    kind: str = one_of(*KINDS, called="penalty")
    coordinates: Any = None
    strength: float = number(check.not_negative, 1.0)
    p: float = number(check.positive, 2.0)

    def __post_init__(self) -> None:
        if check.is_number(self.p):
            each = np.asarray(self.p)  # those of a sweep
            if not np.all((each > 1) & (each < np.inf)):
                check.refuse(f"expected p > 1, got p={self.p}; use kind='l1' or 'linf'")
        given = self.coordinates
        if isinstance(given, list | tuple) and np.shape(given)[:-1] == (1,):
            given = given[0]  # as the table of a run tells it
        listed = isinstance(given, list | tuple | np.ndarray | Array)
        if listed and np.ndim(given) == 1:
            mask = np.asarray(given)
            if not np.all((mask == 0) | (mask == 1)):
                check.refuse("expected coordinates one boolean each, True if coupled")
            if not np.any(mask):
                check.refuse("coordinates couples nothing; use alpha=0 for that")
            # Two axes, lest a mask be taken for an array of one number per agent.
            object.__setattr__(self, "coordinates", mask[None].astype(float))

    @property
    def smooth(self) -> bool:
        """Whether it has a gradient everywhere."""
        return self.kind == "squared"

    @property
    def masked(self) -> bool:
        """Whether it may leave coordinates alone."""
        return self.coordinates is not None

    def mask(self, dim: int) -> Any:
        """1 on coupled coordinates, 0 on the others, (dim,)."""
        if self.coordinates is None:
            return np.ones(dim)
        return self.coordinates[0]

    @property
    def curvature(self) -> Any:
        """The c of phi(u) = sum_k c_k u_k^2 where squared: one number, or (d,)."""
        masked = self.coordinates is not None
        return self.strength * self.coordinates[0] if masked else self.strength

    def __call__(self, u: Array) -> Array:
        """phi(u)."""
        part = self._part(u)
        if self.kind == "squared":
            return self.strength * jnp.sum(part**2)
        if self.kind == "l2":
            return self.strength * _length(part)
        if self.kind == "lp":
            return self.strength * p_norm.length(part, self.p)
        sizes = jnp.abs(part)
        whole = jnp.max(sizes) if self.kind == "linf" else jnp.sum(sizes)
        return self.strength * whole

    def grad(self, u: Array) -> Array:
        """The gradient; at a kink the shortest subgradient, which is zero there."""
        part = self._part(u)
        if self.kind == "squared":
            return 2 * self.strength * part
        if self.kind == "l1":
            return self.strength * jnp.sign(part)
        if self.kind == "lp":
            return self.strength * p_norm.slope(part, self.p)
        if self.kind == "linf":
            # Shared by all entries that are the largest; none where all are zero.
            largest = jnp.sign(part) * (jnp.abs(part) == jnp.max(jnp.abs(part)))
            return self.strength * largest / jnp.maximum(jnp.sum(jnp.abs(largest)), 1)
        length = _length(part)
        return self.strength * part / jnp.where(length > 0, length, 1)

    def prox(self, v: Array, t: Any) -> Array:
        """argmin_u t phi(u) + ||u - v||^2 / 2; uncoupled coordinates stay."""
        part, reach = self._part(v), jnp.asarray(t * self.strength, v.dtype)
        if self.kind == "squared":
            shrunk = part / (1 + 2 * reach)
        elif self.kind == "l1":
            shrunk = part - jnp.clip(part, -reach, reach)
        elif self.kind == "linf":
            shrunk = part - _onto_l1_ball(part, reach)
        elif self.kind == "lp":
            shrunk = p_norm.prox(part, reach, jnp.asarray(self.p, v.dtype))
        else:
            length = _length(part)
            # Exact zero inside the ball: neighbours that agree agree to the last bit.
            kept = 1 - reach / jnp.where(length > 0, length, 1)
            shrunk = part * jnp.where(length > reach, kept, 0)
        return v - part + shrunk

    def _part(self, u: Array) -> Array:
        mask = self.mask(u.shape[-1])
        return u if self.coordinates is None else u * jnp.asarray(mask, u.dtype)

    def check(self, dim: int) -> None:
        """Refuse a mask that does not fit the model."""
        if self.coordinates is not None and np.ndim(self.coordinates) == 0:
            check.refuse(
                f"expected coordinates a list of {dim} booleans, one per parameter, "
                f"got coordinates={self.coordinates}"
            )
        if self.coordinates is not None and np.shape(self.coordinates)[-1] != dim:
            check.refuse(
                f"expected coordinates with {dim} entries, one per parameter, got "
                f"{np.shape(self.coordinates)[-1]}"
            )


@frozen
class Combined:
    """The sum of penalties on disjoint sets of coordinates, (149).

    Attributes:
        parts: The penalties, each with its own coordinates, kind and strength.

    >>> first = Penalty(kind="squared", coordinates=[True, False])
    >>> second = Penalty(kind="l1", coordinates=[False, True], strength=0.5)
    >>> float(Combined(parts=(first, second))(jnp.array([3.0, -4.0])))
    11.0
    """

    parts: tuple[Penalty, ...]

    def __post_init__(self) -> None:
        masks = [p.coordinates for p in self.parts if isinstance(p, Penalty)]
        if any(mask is None for mask in masks):
            check.refuse("penalties are combined by coordinates; give each its own")
        if masks and all(isinstance(mask, np.ndarray) for mask in masks):
            if len({np.shape(mask) for mask in masks}) > 1 or np.any(sum(masks) > 1):  # pyright: ignore
                check.refuse("combined penalties need disjoint coordinates")

    @property
    def smooth(self) -> bool:
        """Whether all parts have gradients."""
        return all(part.smooth for part in self.parts)

    @property
    def masked(self) -> bool:
        """Whether it may leave coordinates alone."""
        return True

    def mask(self, dim: int) -> Any:
        """1 on coupled coordinates, 0 on the others, (dim,)."""
        return sum(part.mask(dim) for part in self.parts)

    @property
    def curvature(self) -> Any:
        """The c with phi(u) = sum_k c_k u_k^2 where all parts are squared, (d,)."""
        return sum(part.curvature for part in self.parts)

    def __call__(self, u: Array) -> Array:
        """phi(u)."""
        return sum((part(u) for part in self.parts), jnp.zeros((), u.dtype))

    def grad(self, u: Array) -> Array:
        """The sum of the parts' gradients."""
        return sum((part.grad(u) for part in self.parts), jnp.zeros_like(u))

    def prox(self, v: Array, t: Any) -> Array:
        """One part after the other: they touch different coordinates."""
        for part in self.parts:
            v = part.prox(v, t)
        return v

    def check(self, dim: int) -> None:
        """Refuse masks that do not fit the model."""
        for part in self.parts:
            part.check(dim)


def of(given: Any) -> Any:
    """A penalty from what the user gave: a word, a penalty, or several to combine.

    A function with a `prox` is a penalty of the user's own, and so is a smooth convex
    one without: its proximal points are found by Newton's method.

    >>> of("l2").kind
    'l2'
    """
    if isinstance(given, str):
        return _named(given)
    if isinstance(given, list | tuple):
        if not given or not all(isinstance(part, Penalty) for part in given):
            check.refuse(
                "expected several penalties as Penalty(kind=..., coordinates=...), got "
                f"penalty={given!r}"
            )
        return Combined(parts=tuple(given))
    if callable(getattr(given, "prox", None)) and not isinstance(
        given, Penalty | Combined | OwnPenalty
    ):
        return OwnPenalty(phi=given)
    known = Penalty | Combined | OwnPenalty | type
    if callable(given) and not isinstance(given, known):
        function: Any = given
        return OwnPenalty(phi=ByNewton(phi=function))
    # Anything else may be a placeholder that JAX puts into records.
    return given


def _named(word: str) -> Penalty:
    """A penalty by its word: "l3" is the norm with p = 3."""
    power = re.fullmatch(r"l(\d+(?:\.\d+)?)", word)
    if power is None or word in KINDS:
        return Penalty(kind=word)
    p = float(power[1])
    return Penalty(kind=f"l{p:g}") if p in (1, 2) else Penalty(kind="lp", p=p)


def coupling(*kinds: str) -> Any:
    """A field for a penalty; the first of these kinds is the default.

    Where only "squared" is known, penalties with kinks are refused.
    """

    def checked(penalty: Any) -> Any:
        made = of(penalty)
        known = isinstance(made, Penalty | Combined | OwnPenalty)
        if known and not made.smooth and len(kinds) == 1:
            check.refuse(
                "expected squared penalties, got penalty with a norm; use "
                "tacita.PrimalDual for l2, l1, linf and penalties of your own"
            )
        return made

    return ruled(kinds[0], checked, words=" or ".join(kinds))


def in_dtype(penalty: Any, dtype: Any) -> Any:
    """The same penalty with its masks in the precision of the models."""
    if isinstance(penalty, Combined):
        return replace(penalty, parts=tuple(in_dtype(p, dtype) for p in penalty.parts))
    if isinstance(penalty, OwnPenalty) or penalty.coordinates is None:
        return penalty
    return replace(penalty, coordinates=penalty.coordinates.astype(dtype))


def _length(u: Array) -> Array:
    """||u||_2 with derivative zero at zero."""
    squares = jnp.sum(u**2)
    return jnp.where(squares > 0, jnp.sqrt(jnp.where(squares > 0, squares, 1)), 0)


def _onto_l1_ball(v: Array, radius: Array) -> Array:
    """The nearest point with sum_k |u_k| <= radius."""
    sizes = jnp.abs(v)
    falling = -jnp.sort(-sizes)
    # All entries shrink by one tau, such that the sum fits.
    taus = (jnp.cumsum(falling) - radius) / jnp.arange(1, v.size + 1, dtype=v.dtype)
    tau = taus[jnp.maximum(jnp.sum(falling > taus), 1) - 1]
    shrunk = jnp.sign(v) * jnp.maximum(sizes - tau, 0)
    return jnp.where(jnp.sum(sizes) <= radius, v, shrunk)


def on_edges(penalty: Any, method: str, differences: Array) -> Array:
    """A method of the penalty for every row of `differences`, (edges, d)."""
    return jax.vmap(lambda u: getattr(penalty, method)(u))(differences)
