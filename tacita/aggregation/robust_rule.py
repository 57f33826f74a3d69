"""What robust rules share: letters as plain vectors, who is heard, liars counted.

Definitions, conventions and the bounds kappa: docs/explanation-robust.md. Bounds are
those of Y. Allouah et al., "Fixing by Mixing", AISTATS 2023.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from tacita import check
from tacita.aggregation.rule import Heard
from tacita.aggregation.sorting import Rank, rank_sum
from tacita.trees import in_double_precision

#: Rows are claims: nobody's letter weighs more than this many times the median one.
MOST_WEIGHT = 2.0


class Vectors(NamedTuple):
    """The letters of one exchange as vectors; those that are not heard are zero."""

    letters: Array  # (n, d)
    active: Array  # (n,), whether it is heard
    weights: Array | None  # (n,); None: all alike
    centre: Array  # (d,)
    key: Array

    @property
    def heard(self) -> Array:
        """How many letters are heard."""
        return jnp.sum(self.active)

    @property
    def shares(self) -> Array:
        """What each letter weighs in a mean; they sum to 1."""
        given = jnp.ones_like(self.letters[:, 0])
        given = given if self.weights is None else self.weights
        heard = jnp.where(self.active, given, 0).astype(self.letters.dtype)
        total = jnp.sum(heard)
        return heard / jnp.where(total > 0, total, 1)

    def rank_sum(self, first: Rank, end: Rank) -> Array:
        """Of every coordinate's values in rising order, ranks first to end - 1, summed.

        Infinity stands behind the values that are heard.
        """
        return rank_sum(self.letters, first, end, self.active)

    @property
    def or_infinite(self) -> Array:
        """The letters; infinity where none is heard."""
        return jnp.where(self.active[:, None], self.letters, jnp.inf)

    @property
    def median(self) -> Array:
        """Of every coordinate: the mean of the two middle values."""
        heard = jnp.maximum(self.heard, 1)
        low, high = (heard - 1) // 2, heard // 2
        return self.rank_sum(low, high + 1) / (1 + high - low)


class RobustRule:
    """A rule that joins vectors. Abstract: rules derive from it and say `join`."""

    #: "samples" lets letters weigh as much as their writer claims to have rows.
    weights: str = "uniform"

    @property
    def additive(self) -> bool:
        """No: it needs the letters one by one."""
        return False

    @property
    def least(self) -> int:
        """The fewest letters that it can join."""
        return 1

    @property
    def bound(self) -> float | None:
        """How far from the centre a letter counts in a mean; here nobody knows."""
        return None

    def bears(self, agents: int) -> int:
        """How many liars among so many agents cannot carry it away."""
        return (agents - 1) // 2

    def kappa(self, agents: int, liars: int) -> float:
        """The bound of Allouah et al., where one is known."""
        return math.inf

    def check(self, agents: int) -> None:
        """Refuse too few agents."""
        if agents < self.least:
            check.refuse(
                f"{self!r} joins at least {self.least} letters, got {agents}; take "
                "more agents or count on fewer liars"
            )

    def join(self, given: Vectors) -> Array:
        """One vector out of many."""
        raise NotImplementedError

    def used(self, given: Vectors) -> Array:
        """How much of every letter goes into the result, from 0 to 1."""
        return given.active.astype(given.letters.dtype)

    def __call__(self, heard: Heard) -> Any:
        """One letter out of many."""
        return back(self.join(self.vectors(heard)), heard.letters)

    @in_double_precision
    def of(self, letters: Any, weights: Any = None, centre: Any = None) -> np.ndarray:
        """The rule of plain letters, (n, d) -> (d,).

        Args:
            letters: One row for every agent.
            weights: Of the rows; default all alike.
            centre: What honest letters lie around; default zero.
        """
        rows = jnp.asarray(letters, float)
        self.check(len(rows))
        given = Vectors(
            letters=rows,
            active=jnp.ones(len(rows), bool),
            weights=None if weights is None else jnp.asarray(weights, float),
            centre=jnp.zeros(rows.shape[1]) if centre is None else jnp.asarray(centre),
            key=jax.random.key(0),
        )
        return np.asarray(_joined(self, given))

    def vectors(self, heard: Heard) -> Vectors:
        """Letters as vectors, and what else there is to know of them."""
        n = len(heard.weights)
        letters = flat(heard.letters, n)
        active = jnp.ones(n, bool)
        if heard.active is not None:
            active = heard.active
            letters = jnp.where(active[:, None], letters, 0)
        weights = None
        if self.weights == "samples":
            weights = capped(heard.weights, active)
        centre = jnp.zeros_like(letters[0])
        if heard.centre is not None:
            centre = ravel_pytree(heard.centre)[0].astype(letters.dtype)
        return Vectors(letters, active, weights, centre, heard.key)


@jax.jit
def _joined(rule: RobustRule, given: Vectors) -> Array:
    return rule.join(given)


def flat(letters: Any, n: int) -> Array:
    """Letters as the rows of one matrix."""
    leaves = [leaf.reshape(n, -1) for leaf in jax.tree.leaves(letters)]
    return leaves[0] if len(leaves) == 1 else jnp.concatenate(leaves, axis=1)


def back(vector: Array, letters: Any) -> Any:
    """A vector in the form of one of these letters."""
    return _shaped(vector, jax.tree.map(lambda leaf: leaf[0], letters))


def stacked_back(rows: Array, letters: Any) -> Any:
    """The rows of a matrix in the form of these letters, stacked as they are."""
    return jax.vmap(_shaped)(rows, letters)


def _shaped(vector: Array, like: Any) -> Any:
    leaves, form = jax.tree.flatten(like)
    parts = jnp.split(vector, np.cumsum([leaf.size for leaf in leaves])[:-1])
    whole = [
        part.reshape(leaf.shape).astype(leaf.dtype)
        for part, leaf in zip(parts, leaves, strict=True)
    ]
    return jax.tree.unflatten(form, whole)


def capped(weights: Array, active: Array) -> Array:
    """Weights, none beyond MOST_WEIGHT times the median of those that are heard."""
    rows = jnp.where(active, weights, jnp.inf)
    most = MOST_WEIGHT * middle(jnp.sort(rows), jnp.sum(active))
    return jnp.minimum(weights, most)


def middle(ordered: Array, count: Array) -> Array:
    """The mean of the two middle rows of the first `count`."""
    last = jnp.maximum(count, 1)
    return (ordered[(last - 1) // 2] + ordered[last // 2]) / 2


def ratio(agents: int, liars: int) -> float:
    """R = f / (n - 2f), below which no rule's kappa lies; infinite for too many."""
    return liars / (agents - 2 * liars) if agents > 2 * liars else math.inf
