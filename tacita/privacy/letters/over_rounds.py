"""From one round to all rounds of a question: alike, by a schedule, or contracting."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from tacita.privacy.accounting.curve import (
    Curve,
    GaussianCurve,
    LossCurve,
    compose,
    take_part,
)
from tacita.privacy.accounting.guarantee import Guarantee, believed, enforced
from tacita.privacy.letters.question import Question
from tacita.privacy.letters.steering import settled
from tacita.privacy.noise_schedule import NoiseSchedule
from tacita.privacy.scope import Observer
from tacita.trees import replace

#: At least what single precision leaves of a multiple of the noise.
_ROUNDED = 1 - 1e-6


class OneRound(Protocol):
    """What is known of one round in which the agent takes part."""

    def at(self, multiple: float = 1.0) -> Guarantee:
        """What it costs with so many times the usual noise."""
        ...

    def noise(self, multiples: Any) -> Any:
        """What hides the agent, up to a factor, with so many times the usual noise."""
        ...


def scheduled(
    one: OneRound,
    schedule: NoiseSchedule | None,
    question: Question,
    beside: Guarantee | None = None,
) -> Guarantee:
    """All rounds of the question, of which `one` tells the cost of each.

    In which rounds an agent took part is not asked: those with the least noise count.
    What is told `beside` has the same noise in every round.
    """
    if schedule is None or question.rounds == 0:
        return over_rounds(_with(one.at(), beside), question)
    if question.number is None:
        rounds = max(question.rounds, question.total or 0)
        noise = schedule.least(question.rounds, rounds)
    else:
        noise = schedule.of_rounds(np.atleast_1d(question.number))
    levels, times = np.unique(noise, return_counts=True)
    first = one.at(float(levels[0]) * _ROUNDED)
    hidden = np.asarray(one.noise(levels * _ROUNDED), float)
    extra = GaussianCurve(0.0) if beside is None else beside.curve
    curve = _at_levels(first.curve, extra, hidden / hidden[0], times, question)
    told = over_rounds(_with(first, beside), question)
    spent = f"the first half of {schedule.rounds} rounds spends {schedule.early:.0%}"
    return replace(told, curve=curve).noting(
        enforced(f"noise follows a schedule set before the run: {spent} of mu^2")
    )


def _with(one: Guarantee, beside: Guarantee | None) -> Guarantee:
    return one if beside is None else one.compose(beside)


def _at_levels(
    one: Curve, beside: Curve, levels: np.ndarray, times: np.ndarray, question: Question
) -> Curve:
    """Rounds that cost `one` with so many times its noise, each so often."""
    if isinstance(one, GaussianCurve) and isinstance(beside, GaussianCurve):
        if question.participation == 1.0:
            # There may be very many:
            # mu^2 = sum_k times_k ((mu/level_k)^2 + mu_beside^2)
            squares = np.dot(times, (one.mu / levels) ** 2 + beside.mu**2)
            return GaussianCurve(math.sqrt(float(squares)))
    each = (
        _over_rounds(
            compose(_with_noise(one, float(level)), beside),
            replace(question, rounds=int(many)),
        )
        for level, many in zip(levels, times, strict=True)
    )
    return compose(*each)


def _with_noise(one: Curve, multiple: float) -> Curve:
    """Of the same releases with so many times their noise."""
    if isinstance(one, GaussianCurve):
        return GaussianCurve(one.mu / multiple)
    assert isinstance(one, LossCurve) and one.rest is None
    releases = tuple((each.at(multiple * each.level), k) for each, k in one.releases)
    return LossCurve(releases, one.mu / multiple)


def over_rounds(one: Guarantee, question: Question) -> Guarantee:
    """From one round in which the agent takes part to all rounds of the question."""
    if question.rounds > 0 and question.participation == 1.0:
        return one.repeat(question.rounds)
    found = replace(one, curve=_over_rounds(one.curve, question))
    if question.rounds == 0:
        return found
    return found.noting(
        believed("participation is drawn independently of the data"),
        after="; participation mixture",
    )


def _over_rounds(one: Curve, question: Question) -> Curve:
    if question.rounds == 0:
        return GaussianCurve(0.0)
    if question.participation == 1.0:
        return one.repeat(question.rounds)
    # Which rounds are forced follows from the draws, which know no rows; no more than
    # these are, and one that is forced costs more than one that may be drawn.
    forced = min(question.forced, question.rounds)
    drawn, curve = question.rounds - forced, GaussianCurve(0.0)
    if forced:
        curve = one.repeat(forced)
    if drawn:
        some = take_part(one, question.participation)
        curve = compose(curve, some.repeat(drawn))
    return curve


def until_the_last_model(one: Guarantee, question: Question, kept: float) -> Guarantee:
    """All rounds of the question, each of which keeps so much of a difference.

    `one` is what a round costs against who sees the mean letter after it.
    """
    last = question.scope.observer == Observer.FINAL_MODEL
    always = question.rounds == question.total and question.participation == 1.0
    # An agent of a federation knows its own rows only, and counts on nobody else.
    together = (question.active or 1) > 1 and question.plain
    if not (last and always and together and kept < 1 and one.mu is not None):
        return over_rounds(one, question)
    curve = GaussianCurve(one.mu * math.sqrt(settled(kept, question.rounds)))
    return replace(one, curve=curve).noting(
        believed("models before the last one are not published"),
        after="; rounds that contract (privacy amplification by iteration)",
    )
