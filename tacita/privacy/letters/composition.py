"""Guarantees by composition: every noisy gradient is a Gaussian release."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np

from tacita import check
from tacita.privacy.accounting.curve import GaussianCurve, compose, take_part
from tacita.privacy.accounting.guarantee import Guarantee, believed, enforced
from tacita.privacy.accounting.subsampling import (
    Poisson,
    Sampling,
    WithoutReplacement,
    WithReplacement,
)
from tacita.privacy.clipped import Clipped, schedule_of
from tacita.privacy.letters.question import (
    BROADCAST_ONLY,
    Question,
    clipped_oracle,
    number_of,
    present_noise,
)
from tacita.privacy.noise_schedule import NoiseSchedule
from tacita.privacy.scope import Observer, Scope, Unit
from tacita.problem.problem import Problem
from tacita.trees import replace

#: At least what single precision leaves of a multiple of the noise.
_ROUNDED = 1 - 1e-6


def by_composition(
    algorithm: Any, problem: Problem, question: Question, mixed: Any = None
) -> Guarantee:
    """Every noisy gradient of every round is a Gaussian release: they compose.

    Needs clipping only, no convexity; an observer is assumed to see every local step.
    """
    one = partial(one_round, algorithm, problem, question, mixed)
    return scheduled(one, schedule_of(algorithm.oracle), question)


def noisy_gradients(algorithm: Any) -> tuple[int, ...]:
    """The noisy, clipped gradients of an agent in a round, by call of `draws`."""
    asked = algorithm.gradients()
    if isinstance(asked, str):
        check.refuse(
            f"nothing bounds what the letters of {type(algorithm).__name__} say: "
            f"{asked}"
        )
    wrap = "wrap its oracle: oracle=tacita.Noisy(std=..., oracle=...)"
    present_noise(algorithm, algorithm.oracle.std, wrap)
    clipped_oracle(algorithm)
    return asked


def one_round(
    algorithm: Any,
    problem: Problem,
    question: Question,
    mixed: Any,
    multiple: float = 1.0,
) -> Guarantee:
    """The guarantee of one round in which the agent takes part.

    Of mixed letters a broadcast carries the noise of them all; `mixed` is what a
    gradient is multiplied by in a letter, None for letters that are not. All noise is
    `multiple` times what the oracle says.
    """
    asked, oracle = (
        noisy_gradients(algorithm),
        clipped_oracle(algorithm, question.agent),
    )
    scope, samples = question.scope, int(problem.counts[question.agent])
    sampling, releases = _sampling(oracle, samples, asked, scope.unit)
    change = oracle.sensitivity(
        scope.relation, samples, unit=scope.unit, model=problem.model
    )
    own = number_of(algorithm.oracle.std, question.agent)
    seen = None
    if mixed is not None:
        seen = _mixed_noise(algorithm, problem, question, mixed)
    if seen is None:
        return question.releases(multiple * own, change, releases, sampling)
    return question.releases(multiple * seen, change, releases, sampling).noting(
        believed("others' letters and noise stay secret"),
        after="; a broadcast carries the noise of all its letters",
    )


def gradient_changes(algorithm: Any, problem: Problem, scope: Scope) -> np.ndarray:
    """By how much one unit can change a gradient of each agent."""
    oracle = clipped_oracle(algorithm)
    unit_norm = replace(oracle, norm=1.0)  # the norm itself may differ between agents
    sizes, where = np.unique(problem.counts, return_inverse=True)
    about = {"unit": scope.unit, "model": problem.model}
    changes = [unit_norm.sensitivity(scope.relation, m, **about) for m in sizes]
    return np.array(changes)[where.ravel()] * np.asarray(oracle.norm)


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
    curve = take_part(one.curve, question.participation)
    return replace(one, curve=curve.repeat(question.rounds)).noting(
        believed("participation is drawn independently of the data"),
        after="; participation mixture",
    )


def _sampling(
    oracle: Clipped, samples: int, asked: tuple[int, ...], unit: Unit
) -> tuple[Sampling | None, int]:
    """How records are drawn for a gradient, and in how many gradients one may be."""
    steps, (size, sampling) = sum(asked), oracle.drawn(samples)
    if sampling == "all" or unit == Unit.CLIENT:
        return None, steps
    if sampling == "without_replacement":
        return WithoutReplacement(size, samples), steps
    if sampling == "poisson":
        return Poisson(size / samples), steps
    if sampling == "permutation":
        # Batches of one epoch are disjoint: a record is in at most one of them. Every
        # call of `draws` shuffles anew.
        epoch = samples // size
        return None, sum(math.ceil(steps / epoch) for steps in asked)
    return WithReplacement(size, samples), steps


def _mixed_noise(
    algorithm: Any, problem: Problem, question: Question, factor: Any
) -> float | None:
    """The noise of a mean letter, in units of the agent's own gradient; None if unseen.

    With weights a_j and letters c_j g_j the mean moves by a_i c_i g_i / sum a and
    carries noise of standard deviation sqrt(sum_j (a_j c_j s_j)^2) / sum a. A neighbour
    knows the noise of one of the letters, its own. Of the letters of a varying cohort
    the least noisy count.
    """
    observer = question.scope.observer
    if observer not in BROADCAST_ONLY or question.active is None:
        return None
    if not question.aggregation.additive:
        return None  # a rule may pass on a single letter
    counts = np.asarray(problem.counts, dtype=float)
    weights = counts if algorithm.weights == "samples" else np.ones_like(counts)
    share = weights * np.asarray(factor, dtype=float)
    spread = share * np.asarray(algorithm.oracle.std, dtype=float)
    known = 1 if observer == Observer.NEIGHBOUR else 0
    helpers = max(question.active - 1 - known, 0)
    others = np.sort(np.delete(spread, question.agent))
    total = math.hypot(spread[question.agent], *others[:helpers])
    return total / float(share[question.agent])
