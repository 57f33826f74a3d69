"""What releases cost, how costs add up, and what one person has seen of an agent.

**One letter, several observers.** What observers of the same letter see is nested: the
letter itself, or something made of it (a broadcast, the final model). Whoever sees all
of it together sees what the closest of them sees, so a letter costs a person no more
than it costs that observer: the largest cost, not the sum. Costs that are of different
kinds, so that neither is the larger, are added. Letters of other rounds, phases or runs
are other releases, and compose.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from tacita.privacy.accounting.curve import Curve, GaussianCurve, LossCurve, compose
from tacita.privacy.accounting.words import curve_of, words_of
from tacita.privacy.ledger.rows import Row
from tacita.privacy.scope import Person


class Cost(NamedTuple):
    """The columns of a cost: Gaussian parts as mu^2, the rest in words."""

    mu_squared: float = 0.0
    loss: str | None = None


def cost_of(curve: Curve) -> Cost:
    """What a release with this curve costs."""
    if isinstance(curve, GaussianCurve):
        return Cost(curve.mu**2)
    if isinstance(curve, LossCurve):
        rest = LossCurve(curve.releases, rest=curve.rest)
        return Cost(curve.mu**2, words_of(rest))
    return Cost(loss=words_of(curve))


@dataclass(frozen=True)
class Sum:
    """Costs that add up: mu^2 of the Gaussian parts, and how often each other one."""

    mu_squared: float = 0.0
    losses: Counter[str] = field(default_factory=Counter)

    def plus(self, cost: Cost, times: int = 1) -> Sum:
        """One cost more, or several of it."""
        losses = self.losses
        if cost.loss is not None:
            losses = losses + Counter({cost.loss: times})
        return Sum(self.mu_squared + times * cost.mu_squared, losses)

    def within(self, other: Sum) -> bool:
        """Nothing is in here that is not in the other one."""
        return self.mu_squared <= other.mu_squared and self.losses <= other.losses

    def curve(self) -> Curve:
        """The composed curve: exact if every release was Gaussian."""
        rest = [curve_of(loss).repeat(count) for loss, count in self.losses.items()]
        return compose(GaussianCurve(math.sqrt(self.mu_squared)), *rest)


@dataclass
class Seen:
    """What a person has seen of an agent, up to and including row `through`.

    Attributes:
        person: Who looks.
        total: What that costs.
        letters: Of every letter, and kind of cost, the Gaussian part that is counted.
        through: The last row that was looked at.
    """

    person: Person
    total: Sum = Sum()
    letters: dict[tuple, float] = field(default_factory=dict)
    through: int = 0
    _fits: tuple[int, Sum] = (0, Sum())

    def add(self, row: Row) -> None:
        """Look at the next release."""
        self.through = row.id
        if row.observer not in self.person.observers:
            return
        letter = (row.run, row.round, row.phase, row.content, row.loss)
        now, counted = row.mu_squared or 0.0, self.letters.get(letter)
        if counted is None:
            self.letters[letter] = now
            self.total = self.total.plus(Cost(now, row.loss))
        elif now > counted:
            self.letters[letter] = now
            self.total = self.total.plus(Cost(now - counted))

    def overspent(self, cost: Cost, budget: Row) -> float | None:
        """The epsilon spent if that is too much, else None.

        Loss distributions take long to convolve. So the total is looked at in advance,
        for as many releases of this cost again as there were letters so far, or as fit:
        fewer releases than a number that fits fit too.
        """
        allowed, delta = budget.epsilon or 0.0, budget.delta or 0.0

        def epsilon(more: int) -> float:
            return self.total.plus(cost, more).curve().epsilon(delta)

        if self._fits[0] == budget.id and self.total.within(self._fits[1]):
            return None
        spent = epsilon(0)
        # Written so that a spend which is not a number is refused too.
        if not spent <= allowed:
            return spent
        more = len(self.letters)
        if not epsilon(more) <= allowed:
            few = range(more)
            more = bisect_left(few, True, lo=1, key=lambda k: not epsilon(k) <= allowed)
            more -= 1
        self._fits = (budget.id, self.total.plus(cost, more))
        return None
