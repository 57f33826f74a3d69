"""Guarantees by composition: every noisy gradient is a Gaussian release."""

from __future__ import annotations

import dataclasses
import math
from functools import singledispatch
from typing import Any

import numpy as np

from tacita.privacy.accounting.compose import account, take_part, take_part_in_losses
from tacita.privacy.accounting.curve import GaussianCurve, LossCurve, renyi
from tacita.privacy.accounting.guarantee import Guarantee, believed
from tacita.privacy.accounting.subsampling import (
    Poisson,
    Sampling,
    WithoutReplacement,
    WithReplacement,
)
from tacita.privacy.clipped import Clipped
from tacita.privacy.letters.question import (
    ALWAYS_BELIEVED,
    BROADCAST_ONLY,
    Question,
    clipped_oracle,
    mixes_letters,
    noisy_gradients,
    number_of,
)
from tacita.problem.oracles import Full, Minibatch
from tacita.problem.problem import Problem


@singledispatch
def guarantee(algorithm: Any, problem: Problem, question: Question) -> Guarantee:
    """What one agent's data is guaranteed, by composition over noisy gradients."""
    return by_composition(algorithm, problem, question)


def by_composition(algorithm: Any, problem: Problem, question: Question) -> Guarantee:
    """Every noisy gradient of every round is a Gaussian release: they compose.

    Needs clipping only, no convexity; an observer is assumed to see every local step.
    """
    return over_rounds(one_round(algorithm, problem, question), question)


def one_round(algorithm: Any, problem: Problem, question: Question) -> Guarantee:
    """The guarantee of one round in which the agent takes part."""
    steps, noise = noisy_gradients(algorithm)
    oracle = clipped_oracle(algorithm)
    samples = int(problem.counts[question.agent])
    sampling, releases = _sampling(oracle, samples, steps, question.unit)
    change = oracle.sensitivity(
        question.relation,
        samples,
        unit=question.unit,
        norm=number_of(oracle.norm, question.agent),
    )
    own = number_of(noise, question.agent)
    mixed = _mixed_noise(algorithm, problem, question, noise)
    one = account(
        observer=question.observer,
        unit=question.unit,
        relation=question.relation,
        noise_std=own if mixed is None else mixed,
        sensitivity=change,
        rounds=releases,
        sampling=sampling,
        clipped=True,
    )
    told = "" if mixed is None else "; a broadcast carries the noise of all its letters"
    trust = (
        () if mixed is None else (believed("others' letters and noise stay secret"),)
    )
    return dataclasses.replace(
        one,
        theorem=one.theorem + told,
        assumptions=(*one.assumptions, *trust, *ALWAYS_BELIEVED),
    )


def over_rounds(one: Guarantee, question: Question) -> Guarantee:
    """From one round in which the agent takes part to all rounds of the question."""
    if question.rounds == 0:
        return dataclasses.replace(one, curve=GaussianCurve(0.0))
    if question.participation == 1.0:
        return one.repeat(question.rounds)
    if isinstance(one.curve, LossCurve):
        curve = take_part_in_losses(one.curve, question.participation)
    else:
        curve = take_part(renyi(one.curve), question.participation)
    drawn = believed("participation is drawn independently of the data")
    return dataclasses.replace(
        one,
        curve=curve.repeat(question.rounds),
        theorem=f"{one.theorem}; participation mixture",
        assumptions=(*one.assumptions, drawn),
    )


def _sampling(
    oracle: Clipped, samples: int, steps: int, unit: str
) -> tuple[Sampling | None, int]:
    """How records are drawn for a gradient, and in how many gradients one may be."""
    inner = oracle.oracle
    if isinstance(inner, Full) or unit == "client":
        return None, steps
    assert isinstance(inner, Minibatch)
    if inner.sampling == "without_replacement":
        return WithoutReplacement(inner.size, samples), steps
    if inner.sampling == "poisson":
        return Poisson(inner.size / samples), steps
    if inner.sampling == "permutation":
        # Batches of one epoch are disjoint: a record is in at most one of them.
        return None, math.ceil(steps / (samples // inner.size))
    return WithReplacement(inner.size, samples), steps


def _mixed_noise(
    algorithm: Any, problem: Problem, question: Question, noise: Any
) -> float | None:
    """The noise of a mean letter, in units of the agent's own letter; None if unseen.

    With weights a_j the mean moves by a_i g_i / sum a and carries noise of standard
    deviation sqrt(sum_j a_j^2 s_j^2) / sum a. A neighbour knows the noise of one of
    the letters, its own. Of the letters of a varying cohort the least noisy count.
    """
    if question.observer not in BROADCAST_ONLY or not mixes_letters(algorithm):
        return None
    if question.active is None:
        return None
    counts = np.asarray(problem.counts, dtype=float)
    weighted = getattr(algorithm, "weights", "uniform") == "samples"
    weights = counts if weighted else np.ones_like(counts)
    spread = weights * np.broadcast_to(np.asarray(noise, dtype=float), counts.shape)
    known = 1 if question.observer == "neighbour" else 0
    helpers = max(question.active - 1 - known, 0)
    others = np.sort(np.delete(spread, question.agent))
    total = math.hypot(spread[question.agent], *others[:helpers])
    return total / float(weights[question.agent])
