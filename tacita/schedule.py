"""Numbers that differ between rounds: step sizes that shrink.

Wherever an algorithm takes a step size it takes a schedule too, unless its field says
why not. The runtime hands the algorithm the number of the round, so that an algorithm
never sees a schedule; round 1 is the first, and silent agents count the rounds that
they miss. A. Jung, "Federated Learning: From Theory to Practice", (78): steps eta_k of
noisy gradients reach the optimum if

    sum_k eta_k = infinity,      sum_k eta_k^2 < infinity.

>>> Polynomial(start=0.5, power=1.0).over(4).round(3).tolist()
[0.5, 0.25, 0.167, 0.125]
>>> Listed(values=[0.5, 0.1]).over(3).tolist()
[0.5, 0.1, 0.1]

Numbers of a schedule are leaves: changing one compiles nothing.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.trees import frozen, number, replace, ruled

T = TypeVar("T")


class ByRound:
    """A number that differs between rounds. Abstract."""

    def at(self, number: Array | int) -> Any:
        """What it is in round `number`; the first is 1."""
        raise NotImplementedError

    @property
    def bounds(self) -> tuple[Any, Any]:
        """A lower and an upper bound over all rounds; one each, or one per agent."""
        raise NotImplementedError

    @property
    def open(self) -> bool:
        """Whether theory is to set where it starts."""
        return False

    def over(self, rounds: int) -> np.ndarray:
        """What it is in rounds 1 to `rounds`; a column per agent where they differ."""
        with jax.enable_x64(True):
            found = jax.vmap(self.at)(jnp.arange(1, rounds + 1))
        return np.asarray(found, dtype=float)


@frozen
class Polynomial(ByRound):
    """start / (1 + decay (k - 1))^power in round k.

    With decay 1 it is start / k^power; (78) holds for 1/2 < power <= 1.

    Attributes:
        start: Of the first round, one number or one per agent; None lets theory choose
            what it would choose without a schedule.
        power: How fast it shrinks; a negative one grows.
        decay: How soon it shrinks, one number or one per agent.
    """

    start: Any = number(check.positive)
    power: float = number(check.any_number, 1.0)
    decay: Any = number(check.not_negative, 1.0)

    def at(self, number: Array | int) -> Any:
        """Start / (1 + decay (k - 1))^power."""
        before = jnp.maximum(number, 1) - 1
        return self.start / (1 + self.decay * before) ** self.power

    @property
    def bounds(self) -> tuple[Any, Any]:
        """From the start to where it goes in the end."""
        start = np.asarray(self.start, float)
        moves = np.asarray(self.decay, float) * np.sign(self.power)
        return (
            np.where(moves > 0, 0.0, start),
            np.where(moves < 0, np.inf, start),
        )

    @property
    def open(self) -> bool:
        """Whether the start was left out."""
        return self.start is None


@frozen
class Geometric(ByRound):
    """start factor^(k - 1) in round k, and never below `least`.

    Attributes:
        start: Of the first round, one number or one per agent; None lets theory choose
            what it would choose without a schedule.
        factor: What is kept from round to round.
        least: What it does not fall below; above 0 it ends near the optimum only.
    """

    start: Any = number(check.positive)
    factor: float = number(check.fraction, 0.99)
    least: float = number(check.not_negative, 0.0)

    def at(self, number: Array | int) -> Any:
        """Start factor^(k - 1), or the least."""
        before = jnp.maximum(number, 1) - 1
        return jnp.maximum(self.start * self.factor**before, self.least)

    @property
    def bounds(self) -> tuple[Any, Any]:
        """The least, and the start."""
        high = np.maximum(np.asarray(self.start, float), self.least)
        return (high if self.factor == 1 else np.full_like(high, self.least)), high

    @property
    def open(self) -> bool:
        """Whether the start was left out."""
        return self.start is None


def _column(within: check.Range, **given: Any) -> Any:
    """Numbers as a column, lest they be taken for one per agent."""
    ((name, values),) = given.items()
    if isinstance(values, list | tuple | np.ndarray):
        # Numbers that a run has cast to single precision stay so.
        single = isinstance(values, np.ndarray) and values.dtype == np.float32
        values = _numbers(name, values, np.float32 if single else float)
        if not values.size:
            check.refuse(f"expected {name} with at least one number, got none")
    elif isinstance(values, int | float | np.number):
        check.refuse(f"expected {name} a list of numbers, got {name}={values!r}")
    return within(**{name: values})


def _numbers(name: str, values: Any, kind: Any) -> np.ndarray:
    """A list as a column; it may be one already, as records and run files keep it."""
    try:
        found = np.asarray(values, dtype=kind)
    except (TypeError, ValueError, OverflowError):
        found = np.zeros((0, 0))
    if found.ndim > 2 or (found.ndim == 2 and found.shape[1] != 1):
        told = str(values)[:60]
        check.refuse(f"expected {name} a list of numbers, got {name}={told}")
    return found.reshape(-1, 1)


def _columns(within: check.Range) -> Any:
    rule = functools.partial(_column, within)
    return ruled(dataclasses.MISSING, rule, words=f"{within.words}, a list")


@frozen
class Listed(ByRound):
    """One number for every round; the last one holds for all later rounds.

    Attributes:
        values: Of round 1, 2, ...
    """

    values: Any = _columns(check.positive)

    def at(self, number: Array | int) -> Any:
        """The number of the round, or the last one."""
        values = jnp.asarray(self.values)[:, 0]
        return values[jnp.clip(number - 1, 0, len(values) - 1)]

    @property
    def bounds(self) -> tuple[Any, Any]:
        """The smallest and the largest."""
        return np.min(self.values), np.max(self.values)


@frozen
class Piecewise(ByRound):
    """A number that stays for many rounds, then another one.

    Attributes:
        values: The numbers in their order.
        until: The last round of each but the last number, rising.

    >>> Piecewise(values=[0.3, 0.1, 0.01], until=[2, 3]).over(5).tolist()
    [0.3, 0.3, 0.1, 0.01, 0.01]
    """

    values: Any = _columns(check.positive)
    until: Any = _columns(check.whole)

    def __post_init__(self) -> None:
        if not all(isinstance(v, np.ndarray) for v in (self.values, self.until)):
            return  # JAX's own
        ends = np.asarray(self.until)[:, 0]
        if len(ends) != len(self.values) - 1 or np.any(np.diff(ends) <= 0):
            check.refuse(
                f"expected until rising, one round fewer than the {len(self.values)} "
                f"values, got until={ends.tolist()}"
            )

    def at(self, number: Array | int) -> Any:
        """The number whose rounds these are."""
        ends = jnp.asarray(self.until)[:, 0]
        return jnp.asarray(self.values)[jnp.sum(number > ends), 0]

    @property
    def bounds(self) -> tuple[Any, Any]:
        """The smallest and the largest."""
        return np.min(self.values), np.max(self.values)


#: What run files know by name; the first needs none.
SCHEDULES = (Polynomial, Geometric, Listed, Piecewise)


def rate(
    default: Any = None,
    *,
    within: check.Range = check.positive,
    theory: Any = None,
    common: bool = False,
) -> Any:
    """A field for a step size: a number in a range, or a schedule of such numbers."""
    rule = functools.partial(_number_or_schedule, within)
    told = {"words": f"{within.words}, or a schedule", "theory": theory}
    how = {"scheduled": True, "lacking": _lacking, "put": _put}
    return ruled(default, rule, common=common, **told, **how)


def constant(why: str, *, theory: Any = None, common: bool = False) -> Any:
    """A field for a step size that must not differ between rounds, and why."""
    rule = functools.partial(_constant, why)
    return ruled(None, rule, words=check.positive.words, theory=theory, common=common)


def _number_or_schedule(within: check.Range, **given: Any) -> Any:
    ((_, value),) = given.items()
    return value if isinstance(value, ByRound) else within(**given)


def _constant(why: str, **given: Any) -> Any:
    ((name, value),) = given.items()
    if isinstance(value, ByRound):
        check.refuse(
            f"expected {name} one number for all rounds, got {name}={value!r}: {why}"
        )
    return check.positive(**given)


def _lacking(value: Any) -> bool:
    return value is None or (isinstance(value, ByRound) and value.open)


def _put(given: Any, value: Any) -> Any:
    if not isinstance(given, ByRound):
        return value
    if isinstance(value, ByRound) or value is None:
        check.refuse(f"theory sets no start here; give {given!r} its start")
    return replace(given, start=value)


def _is_schedule(value: Any) -> bool:
    return isinstance(value, ByRound)


def in_round(record: T, number: Array | int) -> T:
    """The record with every number as it is in round `number`; the first is 1."""
    leaves = jax.tree.leaves(record, is_leaf=_is_schedule)
    if not any(map(_is_schedule, leaves)):
        return record
    return jax.tree.map(
        lambda leaf: leaf.at(number) if _is_schedule(leaf) else leaf,
        record,
        is_leaf=_is_schedule,
    )


def is_constant(value: Any) -> bool:
    """Whether a step size is the same in all rounds."""
    return not isinstance(value, ByRound)


def is_common(value: Any) -> bool:
    """Whether a number, or a schedule, is the same for all agents."""
    if not isinstance(value, ByRound):
        return np.ndim(value) == 0
    return all(np.ndim(leaf) != 1 for leaf in jax.tree.leaves(value))


def largest(value: Any) -> Any:
    """The upper bound over all rounds of a number or a schedule, maybe per agent."""
    return value.bounds[1] if isinstance(value, ByRound) else value


def smallest(value: Any) -> Any:
    """The lower bound over all rounds of a number or a schedule, maybe per agent."""
    return value.bounds[0] if isinstance(value, ByRound) else value
