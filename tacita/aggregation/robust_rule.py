"""What robust rules share: letters as plain vectors, who is heard, liars counted.

Definitions, conventions and the bounds kappa: docs/explanation-robust.md. Bounds are
those of Y. Allouah et al., "Fixing by Mixing", AISTATS 2023.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.flatten_util import ravel_pytree

from tacita import check
from tacita.aggregation.rule import Heard
from tacita.aggregation.sorting import Rank, rank_sum
from tacita.trees import in_double_precision, ruled

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
    #: Whether it also joins letters that another rule has mixed.
    of_mixed: ClassVar[bool] = True
    _weighs: ClassVar[bool] = False

    @property
    def additive(self) -> bool:
        """No: it needs the letters one by one."""
        return False

    @property
    def least(self) -> int:
        """The fewest letters that it can join."""
        return 1

    @property
    def weighs(self) -> bool:
        """Whether some letters may count for more; where not, `of` refuses weights."""
        return self._weighs

    @property
    def bound(self) -> float | None:
        """How far from the centre a letter counts in a mean; here nobody knows."""
        return None

    @property
    def by_samples(self) -> bool:
        """Whether letters weigh as much as their writers claim to have rows."""
        return self.weights == "samples"

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
            letters: One row for every agent; rows that are not finite are silence.
            weights: Of the rows, for rules that weigh them; default all alike.
            centre: What honest letters lie around; default zero.
        """
        rows = _numbers((None, None), letters=letters)
        n, d = rows.shape
        active: np.ndarray = np.all(np.isfinite(rows), axis=1)
        self.check(n)
        RobustRule.check(self, int(active.sum()))
        if weights is not None:
            if not self.weighs:
                check.refuse(
                    f"to {type(self).__name__} all letters weigh alike; leave weights "
                    "out, or take a rule such as GeometricMedian or TrimmedMean"
                )
            weights = check.not_negative(weights=_numbers((n,), weights=weights))
            if not np.any(weights[active]):
                check.refuse("expected weights that are not all zero, got zeros")
        middle = np.zeros(d) if centre is None else _numbers((d,), centre=centre)
        given = Vectors(
            letters=jnp.asarray(np.where(active[:, None], rows, 0)),
            active=jnp.asarray(active),
            weights=None if weights is None else jnp.asarray(weights),
            centre=jnp.asarray(check.finite(centre=middle)),
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
        if self.by_samples:
            weights = capped(heard.weights, active)
        centre = jnp.zeros_like(letters[0])
        if heard.centre is not None:
            centre = ravel_pytree(heard.centre)[0].astype(letters.dtype)
        return Vectors(letters, active, weights, centre, heard.key)


class Before(RobustRule):
    """A rule that changes every letter and then asks another one. Abstract."""

    liars: int
    rule: Any

    @property
    def weighs(self) -> bool:
        """If the other rule does."""
        return self.rule.weighs

    @property
    def by_samples(self) -> bool:
        """If in the other rule they do."""
        return self.rule.by_samples

    @property
    def least(self) -> int:
        """N > 2 f, and what the other rule needs."""
        return max(2 * self.liars + 1, self.rule.least)

    def bears(self, agents: int) -> int:
        """As many as the other rule bears, and it was told of."""
        return min(self.liars, self.rule.bears(agents))


def asked(default: RobustRule, of_groups: bool = False) -> Any:
    """A field that holds a rule, asked about what its holder makes of letters.

    Of a group's mean nobody claims rows.
    """
    refuse = _of_groups if of_groups else _another
    return ruled(default, refuse, words="a robust rule such as Median()")


def _of_groups(**named: Any) -> Any:
    """Refuse also a rule that weighs letters by rows."""
    value = _another(**named)
    if value.by_samples:
        check.refuse(f"{value!r}: groups weigh alike; leave weights='samples' out")
    return value


def _another(**named: Any) -> Any:
    """Refuse what is no robust rule, and one that needs letters as they came."""
    ((name, value),) = named.items()
    if not isinstance(value, RobustRule):
        check.refuse(
            f"expected {name} a robust rule such as Median(), got {name}={value!r}"
        )
    if not value.of_mixed:
        check.refuse(f"{value!r} needs letters as they came; use it by itself")
    return value


def _numbers(sides: tuple[int | None, ...], **named: Any) -> np.ndarray:
    """An array of that shape, of numbers; in words where it is none."""
    ((name, value),) = named.items()
    try:
        array = np.asarray(value, float)
    except (TypeError, ValueError):
        check.refuse(f"expected {name} an array of numbers, got {name}={value!r}")
    return check.shape(sides, **{name: array})


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
