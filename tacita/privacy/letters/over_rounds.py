"""From one round to all rounds of a question: alike, by a schedule, or contracting."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

import numpy as np

from tacita.privacy.accounting.curve import GaussianCurve, compose, take_part
from tacita.privacy.accounting.guarantee import Guarantee, believed, enforced
from tacita.privacy.letters.question import Question
from tacita.privacy.letters.steering import settled
from tacita.privacy.noise_schedule import NoiseSchedule
from tacita.privacy.scope import Observer
from tacita.trees import replace

#: At least what single precision leaves of a multiple of the noise.
_ROUNDED = 1 - 1e-6


def scheduled(
    one: Callable[..., Guarantee], schedule: NoiseSchedule | None, question: Question
) -> Guarantee:
    """All rounds of the question, of which `one` tells the cost of each.

    Given the multiple of the usual noise that a round has. In which rounds an agent
    took part is not asked: those with the least noise count.
    """
    if schedule is None or question.rounds == 0:
        return over_rounds(one(), question)
    if question.number is None:
        rounds = max(question.rounds, question.total or 0)
        noise = schedule.least(question.rounds, rounds)
    else:
        noise = schedule.multiples(question.number)[-1:]
    found = [
        over_rounds(
            one(multiple=value * _ROUNDED), replace(question, rounds=int(times))
        )
        for value, times in zip(*np.unique(noise, return_counts=True), strict=True)
    ]
    curve = reduce(compose, (each.curve for each in found))
    spent = f"the first half of {schedule.rounds} rounds spends {schedule.early:.0%}"
    return replace(found[0], curve=curve).noting(
        enforced(f"noise follows a schedule set before the run: {spent} of mu^2")
    )


def over_rounds(one: Guarantee, question: Question) -> Guarantee:
    """From one round in which the agent takes part to all rounds of the question."""
    if question.rounds == 0:
        return replace(one, curve=GaussianCurve(0.0))
    if question.participation == 1.0:
        return one.repeat(question.rounds)
    # Which rounds are forced follows from the draws, which know no rows; no more than
    # these are, and one that is forced costs more than one that may be drawn.
    forced = min(question.forced, question.rounds)
    drawn, curve = question.rounds - forced, GaussianCurve(0.0)
    if forced:
        curve = one.curve.repeat(forced)
    if drawn:
        some = take_part(one.curve, question.participation)
        curve = compose(curve, some.repeat(drawn))
    return replace(one, curve=curve).noting(
        believed("participation is drawn independently of the data"),
        after="; participation mixture",
    )


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
