"""The geometric median: the point of the least sum of distances to the letters.

A. Jung, "Federated Learning: From Theory to Practice", (175); E. Weiszfeld 1937, with
the step of Y. Vardi and C.-H. Zhang, PNAS 2000, at a letter, and L. Ostresh's longer
steps, Operations Research 1978. Of long letters a step needs inner products only, so
that it costs n^2, however long they are; short ones are taken as they are.
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from tacita.aggregation.gram import gram
from tacita.aggregation.robust_rule import RobustRule, Vectors, middle, ratio
from tacita.trees import frozen, one_of

#: Steps at most, and the step, by the usual distance, at which they end.
_STEPS = 2000
_SMALL = {8: 1e-13, 4: 1e-6}
#: How many times Weiszfeld's step a step is at most: below 2 each one is downhill.
_LONGEST = 1.9


class Point(NamedTuple):
    """A point or a difference of two: its coordinates, and what products need of it.

    Of long letters the coordinates are shares of the letters.
    """

    at: Array
    seen: Array  # the inner product of a and b is a.at @ b.seen

    def plus(self, other: Point, times: Array | float) -> Point:
        """This one and so many times another."""
        return Point(self.at + times * other.at, self.seen + times * other.seen)

    def times(self, other: Point) -> Array:
        """The inner product."""
        return self.at @ other.seen


class Space(NamedTuple):
    """Where the letters lie, seen from the centre."""

    rows: Array  # (n, d) of short letters; of long ones their inner products, (n, n)
    short: bool

    @classmethod
    def of(cls, given: Vectors) -> Space:
        """Of long letters their inner products."""
        n, length = given.letters.shape
        if length > n:
            return cls(gram(given), False)
        seen = given.letters - given.centre
        return cls(jnp.where(given.active[:, None], seen, 0), True)

    def mean(self, shares: Array) -> Point:
        """The letters' mean by these shares."""
        moved = shares @ self.rows
        return Point(moved, moved) if self.short else Point(shares, moved)

    def distances(self, point: Point) -> Array:
        """From every letter."""
        if self.short:
            return jnp.sqrt(jnp.sum((self.rows - point.at) ** 2, axis=1))
        squared = self.lengths_squared - 2 * point.seen + point.times(point)
        return jnp.sqrt(jnp.maximum(squared, 0))

    @property
    def lengths_squared(self) -> Array:
        """Of every letter."""
        if self.short:
            return jnp.sum(self.rows**2, axis=1)
        return jnp.diagonal(self.rows)

    def back(self, point: Point, given: Vectors) -> Array:
        """The point as a letter."""
        return given.centre + point.at if self.short else point.at @ given.letters


class Walk(NamedTuple):
    """Where the steps are."""

    here: Point
    moved: Point  # the last step
    pull: Point  # what was Weiszfeld's step then
    done: Array
    number: Array


@frozen
class GeometricMedian(RobustRule):
    """argmin_z sum_i weight_i ||x_i - z||, converged.

    Attributes:
        weights: "uniform", or "samples".

    >>> GeometricMedian().of([[0.0], [4.0], [90.0]]).round(9).tolist()
    [4.0]
    """

    weights: str = one_of("uniform", "samples")

    _weighs: ClassVar[bool] = True

    @property
    def least(self) -> int:
        """Of two letters any point between them is one."""
        return 3

    def kappa(self, agents: int, liars: int) -> float:
        """4 (1 + r)^2."""
        return 4 * (1 + ratio(agents, liars)) ** 2

    def reach(self, agents: int, liars: int) -> float:
        """How far it lies from the centre of a ball of radius 1 of all honest letters.

        (1 - a) / sqrt(1 - 2a), a the share of liars (S. Minsker, Bernoulli 2015).
        """
        share = liars / agents
        return (1 - share) / math.sqrt(1 - 2 * share) if share < 1 / 2 else math.inf

    def join(self, given: Vectors) -> Array:
        """Steps until they are tiny."""
        space, shares = Space.of(given), given.shares
        # Letters this close to a point count as lying at it; by the median length, for
        # the longest is the liars' to choose.
        squared = jnp.where(given.active, space.lengths_squared, jnp.inf)
        scale = jnp.sqrt(middle(jnp.sort(squared), given.heard))
        resolution = jnp.sqrt(jnp.finfo(scale.dtype).eps) * scale * 1e-3
        small = _SMALL[scale.dtype.itemsize]

        def step(walk: Walk) -> Walk:
            pull, total = _pull(space, shares, walk.here, resolution)
            times = _stretch(walk, pull)
            # By the harmonic mean of distances, in which far ones count for nothing.
            length = jnp.sqrt(jnp.maximum(pull.times(pull), 0))
            moved = Point(times * pull.at, times * pull.seen)
            here = walk.here.plus(moved, 1.0)
            return Walk(here, moved, pull, length * total <= small, walk.number + 1)

        def go_on(walk: Walk) -> Array:
            return ~walk.done & (walk.number < _STEPS)

        here = space.mean(shares)
        still = jax.tree.map(jnp.zeros_like, here)
        first = Walk(here, still, still, jnp.asarray(False), jnp.asarray(0))
        return space.back(jax.lax.while_loop(go_on, step, first).here, given)


def _pull(
    space: Space, shares: Array, here: Point, resolution: Array
) -> tuple[Point, Array]:
    """Weiszfeld's step; Vardi and Zhang's where the point is one of the letters.

    And the mean of one over the distances to the others.
    """
    far = space.distances(here)
    at = far <= resolution
    pull = jnp.where(at, 0, shares / jnp.where(at, 1, far))
    total = jnp.sum(pull)
    aim = space.mean(pull / jnp.where(total > 0, total, 1)).plus(here, -1.0)
    # (176): the point is the median if the others pull less than the letters at it.
    strength = total * jnp.sqrt(jnp.maximum(aim.times(aim), 0))
    held = jnp.sum(jnp.where(at, shares, 0))
    go = jnp.maximum(0, 1 - held / jnp.where(strength > 0, strength, 1))
    go = jnp.where(strength > 0, go, 0)
    return Point(go * aim.at, go * aim.seen), total


def _stretch(walk: Walk, pull: Point) -> Array:
    """How many times Weiszfeld's step to go, by how it changed along the last step.

    Were it to shrink as it did, so long a step would lead to where it is zero.
    """
    length = walk.moved.times(walk.moved)
    shrunk = walk.moved.times(walk.pull.plus(pull, -1.0))
    known = shrunk * _LONGEST > length
    times = jnp.where(known, length / jnp.where(known, shrunk, 1), _LONGEST)
    return jnp.where(length > 0, jnp.clip(times, 1, _LONGEST), 1.0)
