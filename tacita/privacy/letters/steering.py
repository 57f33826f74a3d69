"""Steering: who sees a mean only cannot tell a record from a change in the noise.

Run on one data set with the noise that it has; on its neighbour, let every draw of
noise be shifted so that the observer sees exactly the same. If draw t, with standard
deviation std_t, is shifted by at most s_t whatever came before, what the observer sees
is mu-GDP with

    mu^2 = sum_t (s_t / std_t)^2

for the shifted noise is an adaptive sequence of Gaussian releases, and the view is
computed from it. All agents' noises may be shifted, own ones first. The proof, and what
the formulas here follow from: docs/proof-steering.md.

In units of a local step's own change, T steps of agent i cost T. Let its model drift a
part c of the way in the last k of them: only 1 - c is undone by its own noise, and what
the drift bends its gradients by, at most step_size L times the drift (nothing where
steps of a convex loss do not expand: the drift just follows them). The mean, moved by
the drift, is led back by the noise of the others.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from tacita.privacy.accounting.guarantee import Guarantee, believed
from tacita.privacy.letters.question import (
    BROADCAST_ONLY,
    Question,
    keeps_together,
    public_smoothness,
)
from tacita.privacy.scope import Observer
from tacita.problem.model.linear import Linear, Logistic
from tacita.problem.problem import Problem
from tacita.theory.descent import contraction


def step_factors(problem: Problem, step_size: Any) -> np.ndarray:
    """By how much a gradient step multiplies a difference between models, at most.

    One number for each step size; infinite where nothing is known.
    """
    sizes, steep = (
        np.atleast_1d(np.asarray(step_size, float)),
        public_smoothness(problem),
    )
    if not isinstance(problem.model, Linear | Logistic) or not math.isfinite(steep):
        return 1 + sizes * steep  # clipping may take convexity away, not smoothness
    flat = float(problem.population.regulariser.weight)
    return np.array([contraction(float(size), flat, steep) for size in sizes])


def kept_of_a_difference(problem: Problem, step_size: Any, steps: int = 1) -> float:
    """What gradient steps leave of a difference between two models, at most.

    1 where nothing is known, or where steps, or what follows on them, may expand.
    """
    if not keeps_together(problem.h):
        return 1.0
    worst = float(step_factors(problem, np.unique(step_size)).max())
    return min(worst**steps, 1.0)


def settled(kept: float, rounds: int) -> float:
    """How many rounds' cost K rounds have for who sees the last model only.

    Noise of later rounds undoes what is left of earlier changes:
    (sum_k q^k)^2 / sum_k q^(2k), which stays below (1 + q)/(1 - q) for ever.

    >>> settled(1.0, 50), round(settled(0.9, 50), 3), round(settled(0.9, 5000), 3)
    (50.0, 18.805, 19.0)
    """
    if kept >= 1:
        return float(rounds)
    gone = kept**rounds
    return (1 + kept) / (1 - kept) * (1 - gone) / (1 + gone)


def shown_in_a_mean(one: Guarantee) -> Guarantee:
    """The same, saying that the noise of the others was counted on."""
    return one.noting(
        believed("others' letters and noise stay secret"),
        after="; a broadcast carries the noise of all its letters",
    )


def noise_of_a_mean(
    algorithm: Any,
    problem: Problem,
    question: Question,
    *,
    factor: Any,
    std: Any,
    steps: int = 1,
    smoothness: float = math.inf,
) -> float | None:
    """The noise in a gradient that would hide as much as a mean of letters does.

    None where letters are seen one by one. A letter is the broadcast minus `factor`
    times the sum of `steps` gradients, each with noise; a mean weighs letters by a_j.
    A neighbour knows the noise of one of them, its own. Of the letters of a varying
    cohort those that hide least count.

    Args:
        algorithm: Says how letters are weighed.
        problem: Whose agents.
        question: Who looks.
        factor: The step size, one number or one per agent.
        std: Of the noise in a gradient, one number or one per agent.
        steps: T, local steps in a round.
        smoothness: L: no gradient changes by more than L times the change of the
            model. Infinite where that is not known; the last step's noise counts then.
    """
    observer = question.scope.observer
    if observer not in BROADCAST_ONLY or question.active is None:
        return None
    if not question.aggregation.additive:
        return None  # a rule may pass on a single letter
    counts = np.asarray(problem.counts, dtype=float)
    weights = counts if algorithm.weights == "samples" else np.ones_like(counts)
    step = np.broadcast_to(np.asarray(factor, dtype=float), counts.shape)
    share = weights * step
    spread = share * np.asarray(std, dtype=float)  # of one step, in the mean
    known = 1 if observer == Observer.NEIGHBOUR else 0
    # Liars know their own noise, and may send none.
    helpers = max(question.active - 1 - known - question.liars, 0)
    reach = spread**2 / _effort(steps, step * smoothness)
    others = np.sort(np.delete(reach, question.agent))[:helpers].sum()
    own = spread[question.agent] ** 2
    bend = float(step[question.agent] * smoothness)
    if isinstance(problem.model, Linear | Logistic) and bend <= 2:
        bend = 0.0  # clipping keeps a loss with one score per record convex
    left = _left(steps, bend, own / others) if others > 0 else float(steps)
    # T steps with this noise cost as much as what is left of them with the own noise.
    return float(spread[question.agent] / share[question.agent]) * math.sqrt(
        steps / left
    )


def _effort(steps: int, bend: np.ndarray) -> np.ndarray:
    """What it takes to move letters by one, in units of a step's noise, squared.

    Moves d_s >= 0 with sum 1 in the last k steps, each against what was moved before:
    sum_s (d_s + bend sum_{r<s} d_r)^2, for the best k and moves.
    """
    kinds, which = np.unique(bend, return_inverse=True)
    return np.array([_least_effort(steps, float(b)) for b in kinds])[which]


@lru_cache(maxsize=4096)
def _least_effort(steps: int, bend: float) -> float:
    best = 1.0
    for k in range(2, steps + 1):
        if not math.isfinite(bend):
            break
        against = np.eye(k) + bend * np.tri(k, k=-1)
        moves = np.linalg.solve(against.T @ against, np.ones(k))
        if np.any(moves < 0):
            break
        best = min(best, 1 / float(moves.sum()))
    return best


def _left(steps: int, bend: float, ratio: float) -> float:
    """What T steps cost in all, where moving the mean back by one costs `ratio`.

    T - k + sum_{s<k} (1 - c + c bend s)^2 + ratio (k c)^2, for the best k and c.
    """
    found = [float(steps)]
    for k in range(1, steps + 1):
        if k > 1 and not math.isfinite(bend):
            break
        slope = 1 - (bend * np.arange(k) if k > 1 else np.zeros(1))
        curvature = np.sum(slope**2) + ratio * k**2
        c = min(max(float(np.sum(slope) / curvature), 0.0), 1.0)
        found.append(
            steps - k + float(np.sum((1 - c * slope) ** 2)) + ratio * (k * c) ** 2
        )
    return min(found)
