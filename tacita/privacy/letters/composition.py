"""Guarantees by composition: every noisy gradient is a Gaussian release."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacita import check
from tacita.privacy.accounting.guarantee import Guarantee, enforced
from tacita.privacy.accounting.subsampling import (
    Poisson,
    PoissonReplaced,
    Sampling,
    WithoutReplacement,
    WithReplacement,
)
from tacita.privacy.clipped import Clipped, schedule_of
from tacita.privacy.letters.on_grid import Release, has_integers
from tacita.privacy.letters.over_rounds import scheduled, until_the_last_model
from tacita.privacy.letters.question import (
    Increment,
    Question,
    clipped_before_noise,
    clipped_oracle,
    number_of,
    present_noise,
    public_smoothness,
)
from tacita.privacy.letters.steering import (
    kept_of_a_difference,
    noise_of_a_mean,
    shown_in_a_mean,
)
from tacita.privacy.scope import Relation, Scope, Unit
from tacita.problem.problem import Problem
from tacita.problem.stream import Stream, stream_of
from tacita.trees import replace


def by_composition(
    algorithm: Any,
    problem: Problem,
    question: Question,
    mixed: Any = None,
    descends: Any = None,
) -> Guarantee:
    """Every noisy gradient of every round is a Gaussian release: they compose.

    Needs clipping only, no convexity; an observer is assumed to see every local step.
    `mixed` and `descends` are those of `Letters`.
    """
    one = one_round(algorithm, problem, question, mixed)
    schedule = schedule_of(algorithm.oracle)
    stream = stream_of(algorithm.oracle)
    if stream is not None and question.scope.unit == Unit.RECORD:
        return _once_a_pass(algorithm, stream, problem, question, one)
    # With others in it, a mean by rows weighs a letter otherwise: what is left of a
    # round in which it weighed much is not hidden as a change of the next one is.
    everybody = question.active == problem.n_agents
    steady = everybody or algorithm.weights == "uniform"
    plain = descends is not None and schedule is None and not has_integers(algorithm)
    if not (plain and steady):
        return scheduled(one, schedule, question)
    return until_the_last_model(
        one.at(), question, kept_of_a_difference(problem, descends)
    )


def _once_a_pass(
    algorithm: Any,
    stream: Stream,
    problem: Problem,
    question: Question,
    one: Round,
) -> Guarantee:
    """A record of a stream is in few rounds, mostly in one: all others are free.

    Given the letters before, those of a round without the record are the same for
    neighbouring rows. Which round has it is known: no draw is counted on.
    """
    samples = int(problem.counts[question.agent])
    algorithm.refuse_second_draws()
    steps = sum(noisy_gradients(algorithm))
    total = max(question.rounds, question.total or 0)
    rounds = min(question.rounds, stream.uses(samples, total * steps))
    used = scheduled(
        one, schedule_of(algorithm.oracle), replace(question, rounds=rounds)
    )
    return used.noting(
        enforced(f"every record is in the gradients of at most {rounds} rounds"),
        after="; rounds of a stream use other records (parallel composition)",
    )


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
    if algorithm.uses_losses and algorithm.loss_bound is None:
        check.refuse(
            f"letters of {type(algorithm).__name__} depend on losses that nothing "
            "bounds; give loss_bound=, a number chosen without looking at private data"
        )
    return asked


@dataclass(frozen=True, kw_only=True)
class Round:
    """One round in which the agent takes part: releases of noisy gradients.

    Attributes:
        question: Whose, against whom.
        release: One of them.
        own: The noise in it.
        seen: What hides as much as all noise in a broadcast; None of single letters.
        times: How many releases may hold the record.
        change: Of one of them by the record.
        sampling: How records are drawn for it.
    """

    question: Question
    release: Release
    own: float
    seen: float | None
    times: int
    change: float
    sampling: Sampling | None

    def noise(self, multiples: Any) -> Any:
        """What hides the record in one release, with so many times all noise."""
        if self.seen is not None:
            return multiples * self.seen
        return self.release.hidden_by(multiples * self.own)

    def at(self, multiple: float = 1.0) -> Guarantee:
        """What the round costs with so many times all noise."""
        noise = float(self.noise(multiple))
        one = self.question.releases(noise, self.change, self.times, self.sampling)
        if self.seen is not None:
            return shown_in_a_mean(one)
        return self.release.noted(one, multiple * self.own)


def one_round(
    algorithm: Any, problem: Problem, question: Question, mixed: Any
) -> Round:
    """One round in which the agent takes part.

    Of mixed letters a broadcast carries the noise of them all; `mixed` is what a
    gradient is multiplied by in a letter, None for letters that are not.
    """
    asked, oracle = (
        noisy_gradients(algorithm),
        clipped_oracle(algorithm, question.agent),
    )
    scope, samples = question.scope, int(problem.counts[question.agent])
    sampling, releases = _sampling(oracle, samples, asked, scope)
    change = oracle.sensitivity(
        scope.relation, samples, unit=scope.unit, model=problem.model
    )
    seen, steps = None, sum(asked)
    replaced = isinstance(sampling, PoissonReplaced)
    release = Release(
        has_integers(algorithm),
        # On a grid, what one record adds is rounded, then what the other one does.
        change / 2 if replaced else change,
        problem.dim,
        rows_rounded(oracle, samples),
        Relation.ADD_REMOVE if replaced else scope.relation,
    )
    # Of several steps, all must use the record: batches are accounted one by one.
    alike = steps == 1 or (sampling is None and releases == steps)
    if mixed is not None and alike and not release.integers:
        seen = noise_of_a_mean(
            algorithm,
            problem,
            question,
            factor=mixed,
            std=algorithm.oracle.std,
            steps=steps,
            smoothness=public_smoothness(problem),
        )
    return Round(
        question=question,
        release=release,
        own=number_of(algorithm.oracle.std, question.agent),
        seen=seen,
        times=releases,
        change=change,
        sampling=sampling,
    )


def gradient_increment(
    algorithm: Any, factor: Any, problem: Problem, question: Question
) -> Increment:
    """Of a clipped gradient times a factor, one a round."""
    asked, agent, scope = algorithm.gradients(), question.agent, question.scope
    if isinstance(asked, str) or sum(asked) != 1:
        check.refuse(
            f"the noise of a secure sum covers one gradient a round, and "
            f"{type(algorithm).__name__} takes more; use local_steps=1, or DPFedAvg"
        )
    oracle = clipped_before_noise(algorithm, agent)
    samples = int(problem.counts[agent])
    sampling, _ = _sampling(oracle, samples, asked, scope)
    used, how = oracle.drawn(samples)
    change = oracle.sensitivity(
        scope.relation, samples, unit=scope.unit, model=problem.model
    )
    step = number_of(factor, agent)
    if not math.isfinite(step):
        check.refuse(
            "steps that grow for ever have no secure sum, whose noise is for the "
            "longest one; use a schedule that shrinks"
        )
    # A Poisson batch may be all rows, each with the weight of a batch.
    fullest = samples / used if how == "poisson" else 1.0
    return Increment(
        change=step * change,
        entry=step * oracle.norm * fullest,
        rows=rows_rounded(oracle, samples),
        sampling=sampling,
    )


def rows_rounded(oracle: Clipped, samples: int) -> int:
    """Rows in the mean that floating point rounds; a Poisson batch may be all rows."""
    used, how = oracle.drawn(samples)
    return samples if how == "poisson" else used


def gradient_changes(algorithm: Any, problem: Problem, scope: Scope) -> np.ndarray:
    """By how much one unit can change a gradient of each agent."""
    oracle = clipped_oracle(algorithm)
    unit_norm = replace(oracle, norm=1.0)  # the norm itself may differ between agents
    sizes, where = np.unique(problem.counts, return_inverse=True)
    about = {"unit": scope.unit, "model": problem.model}
    changes = [unit_norm.sensitivity(scope.relation, m, **about) for m in sizes]
    return np.array(changes)[where.ravel()] * np.asarray(oracle.norm)


def _sampling(
    oracle: Clipped, samples: int, asked: tuple[int, ...], scope: Scope
) -> tuple[Sampling | None, int]:
    """How records are drawn for a gradient, and in how many gradients one may be."""
    steps, (size, sampling) = sum(asked), oracle.drawn(samples)
    if sampling == "all" or scope.unit == Unit.CLIENT:
        return None, steps
    if sampling == "without_replacement":
        return WithoutReplacement(size, samples), steps
    if sampling == "poisson":
        added = scope.relation == Poisson.relation
        return (Poisson if added else PoissonReplaced)(size / samples), steps
    if sampling == "stream":
        assert isinstance(oracle.oracle, Stream)
        return None, sum(oracle.oracle.uses(samples, steps) for steps in asked)
    if sampling == "permutation":
        # Batches of one epoch are disjoint: a record is in at most one of them. Every
        # call of `draws` shuffles anew.
        replaced = scope.relation == WithoutReplacement.relation
        if replaced and len(asked) == 1 and steps * size < samples:
            # One draw of all their records, and of which one stands where.
            return WithoutReplacement(steps * size, samples), 1
        epoch = samples // size
        return None, sum(math.ceil(steps / epoch) for steps in asked)
    return WithReplacement(size, samples), steps
