"""What the letters of each round of a run cost, told when it is asked."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from tacita.privacy import Guarantee, Question, Scope, guarantee
from tacita.privacy.clipped import schedule_of
from tacita.problem.problem import Problem
from tacita.trees import in_double_precision


class Prices(Mapping[int, Guarantee]):
    """From a round to what its letters cost together; the first round is 1.

    How many rounds a run has is for whoever offers it to say, and with a schedule of
    noise every one has another price: so each is computed when its letter is charged,
    and all together are one question.

    Args:
        algorithm: With its noise.
        problem: What its agent knows of it.
        asked: The question about one round.
        rounds: Of the run.
        scope: What prices are told as.
    """

    def __init__(
        self,
        algorithm: Any,
        problem: Problem,
        asked: Question,
        rounds: int,
        scope: Scope,
    ) -> None:
        self._algorithm, self._problem, self._asked = algorithm, problem, asked
        self._rounds, self._scope = rounds, scope
        self._alike = schedule_of(algorithm.oracle) is None
        self._known: dict[int, Guarantee] = {}

    def __getitem__(self, number: int) -> Guarantee:
        """What a round costs."""
        if not 1 <= number <= self._rounds:
            raise KeyError(number)
        number = 1 if self._alike else number
        if number not in self._known:
            self._known[number] = self._price((number,))
        return self._known[number]

    def __iter__(self) -> Iterator[int]:
        """The rounds."""
        return iter(range(1, self._rounds + 1))

    def __len__(self) -> int:
        """How many rounds."""
        return self._rounds

    def left(self, charged: Collection[int]) -> Guarantee | None:
        """What all rounds but these cost together; None if there is none."""
        numbers = tuple(number for number in self if number not in charged)
        if not numbers:
            return None
        return self[1].repeat(len(numbers)) if self._alike else self._price(numbers)

    @in_double_precision
    def _price(self, numbers: tuple[int, ...]) -> Guarantee:
        asked = replace(self._asked, rounds=len(numbers))
        if not self._alike:
            asked = replace(asked, number=numbers)
        found = guarantee(self._algorithm, self._problem, asked)
        return replace(found, scope=self._scope)
