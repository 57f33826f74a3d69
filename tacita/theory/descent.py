"""Gradient descent: step sizes and contraction for strongly convex, smooth losses."""

from __future__ import annotations

import functools
import math
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from tacita import check
from tacita.schedule import largest

if TYPE_CHECKING:
    from tacita.problem.problem import Problem


#: Curvature below this share of the largest is a rounding error.
_FLAT = 1e-12


def best_step_size(strong_convexity: float, smoothness: float) -> float:
    """2 / (mu + L): the step whose worst-case contraction is smallest (Jung, (83)).

    Without strong convexity 1 / L: there 2 / L would swing for ever in the direction
    of largest curvature.

    >>> best_step_size(1.0, 3.0), best_step_size(0.0, 4.0)
    (0.5, 0.25)
    """
    check.positive(smoothness=smoothness)
    if not strong_convexity <= smoothness * (1 + 1e-9):  # both may be rounded
        check.refuse(
            "expected strong_convexity <= smoothness, got "
            f"strong_convexity={strong_convexity}, smoothness={smoothness}"
        )
    if strong_convexity <= _FLAT * smoothness:
        return 1.0 / smoothness
    return 2.0 / (strong_convexity + smoothness)


def contraction(step_size: float, strong_convexity: float, smoothness: float) -> float:
    """max(|1 - eta mu|, |1 - eta L|), the factor of one step (Jung, (81)).

    >>> contraction(0.5, 1.0, 3.0)
    0.5
    """
    return max(abs(1 - step_size * strong_convexity), abs(1 - step_size * smoothness))


def steps_needed(contraction: float, start: float, accuracy: float) -> int:
    """How many steps bring the distance from `start` to `accuracy` or below, (82).

    Curvatures that are all alike have a contraction of 0: one step arrives.

    >>> steps_needed(0.5, 1.0, 0.25), steps_needed(0.5, 1.0, 2.0)
    (2, 0)
    """
    check.below_one(contraction=contraction)
    check.not_negative(start=start)
    if start <= check.positive(accuracy=accuracy):
        return 0
    if contraction == 0:
        return 1
    # Two logarithms: the quotient of the numbers may be infinite.
    fall = math.log(start) - math.log(accuracy)
    guess = math.ceil(fall / -math.log(contraction))
    # The logarithms are rounded: whole quotients may come out a hair above.
    left = contraction ** (guess - 1)
    if left < sys.float_info.min:  # of which no digits are left
        half = (guess - 1) // 2
        return guess - (
            start * contraction**half * contraction ** (guess - 1 - half) <= accuracy
        )
    return guess - (start * left <= accuracy)


def perturbed_error(contraction: float, start: float, errors: Any) -> float:
    """(88) mended: how far descent is off after steps with these errors, at most.

    kappa^t e_0 + sum_{s=1..t} kappa^(s-1) ||error of step t - s||. The book prints
    kappa^s, with which one step from the optimum, off by 1, would be off by kappa.

    Args:
        contraction: kappa, the factor of a step without error.
        start: e_0, the distance from the optimum before the first step.
        errors: How far each step was off, the first one first.

    >>> perturbed_error(0.5, 0.0, [1.0]), perturbed_error(0.5, 2.0, [1.0, 0.5, 0.25])
    (1.0, 1.0)
    """
    check.not_negative(contraction=contraction)
    found = float(check.not_negative(start=start))
    for error in np.ravel(check.not_negative(errors=np.asarray(errors, float))):
        found = contraction * found + float(error)
    return found


def best_bits(contraction: float, steps: int, total: float) -> np.ndarray:
    """How to share bits between steps with quantised gradients: exercise 4.6.

    With b bits a step is off by an amount that halves with every bit, and (88) counts
    the error of step s with kappa^(t - s): the least sum has

        b_s = level + s log2(1/kappa),  none below zero,

    so early steps may be coarse, and the last one needs most.

    Args:
        contraction: kappa, the factor of a step without error.
        steps: How many steps there are.
        total: How many bits there are for one number, over all steps.

    >>> best_bits(0.5, 3, 9.0).tolist(), best_bits(0.5, 3, 1.0).tolist()
    ([2.0, 3.0, 4.0], [0.0, 0.0, 1.0])
    """
    check.inside_unit(contraction=contraction)
    check.not_negative(total=total)
    rising = np.arange(check.count(steps=steps)) * -math.log2(contraction)
    # With bits from step s on only, the level that uses up all of them; the first s
    # that has some left is where they begin.
    left = np.arange(steps, 0, -1)
    levels = (total - np.cumsum(rising[::-1])[::-1]) / left
    first = int(np.argmax(levels + rising >= 0))
    return np.maximum(levels[first] + rising, 0) * (left <= steps - first)


def step_size(problem: Problem) -> float:
    """2 / (mu + L) of the mean (1/N) sum_i f_i, whose moduli are the agents' mean."""
    moduli = problem.moduli
    return best_step_size(
        float(moduli.strong_convexity.mean()), float(moduli.smoothness.mean())
    )


def in_batches(problem: Problem, oracle: Any) -> bool:
    """Whether an oracle's gradients are steeper than the mean loss for some agent."""
    return bool(np.any(oracle.shares(problem.counts)[1] > 0))


def smoothness_of_batches(problem: Problem, oracle: Any) -> np.ndarray:
    """The L_i with E|g_i(w) - g_i(w*)|^2 <= 2 L_i (f_i(w) - f_i(w*)) for batches.

    With batches of b of m rows without replacement it lies between the smoothness of
    the mean loss, b = m, and that of the steepest row, b = 1, by the share
    (m - b) / (b (m - 1)) of the latter: R. M. Gower et al., "SGD: General Analysis and
    Improved Rates", Prop. 3.8. With a public bound on rows it is that of any row.
    """
    own = problem.moduli.smoothness
    if problem.bound is not None:
        return own
    mean, steepest = oracle.shares(problem.counts)
    if not steepest.any():
        return own
    return mean * own + steepest * np.maximum(problem.steepest, own)


class _Drawn:
    """A problem whose losses are as smooth as their batches are, once that is asked."""

    def __init__(self, problem: Problem, oracle: Any) -> None:
        self._problem, self._oracle = problem, oracle

    def __getattr__(self, name: str) -> Any:
        return getattr(self._problem, name)

    @functools.cached_property
    def moduli(self) -> Any:
        steep = smoothness_of_batches(self._problem, self._oracle)
        return self._problem.moduli._replace(smoothness=steep)


def as_drawn(problem: Problem, oracle: Any) -> Problem:
    """The problem as steps by an oracle's gradients meet it, for theory to look at.

    Nothing is computed of the rows before theory asks for it.
    """
    if problem.bound is not None or not in_batches(problem, oracle):
        return problem
    seen: Any = _Drawn(problem, oracle)
    return seen


def smoothness(problem: Problem, algorithm: Any) -> float:
    """L, the largest of all agents', of batches where gradients are of batches."""
    return float(smoothness_of_batches(problem, algorithm.oracle).max())


def safe_step_size(problem: Problem, algorithm: Any) -> float:
    """1 / max_i L_i: a step with which no agent's own descent overshoots.

    With batches L_i is `smoothness_of_batches`: steps for all rows overshoot on some.
    """
    return 1.0 / smoothness(problem, algorithm)


def step_size_of_round(problem: Problem, algorithm: Any) -> float:
    """1 / (L K): K local steps move no further than one step of size 1/L."""
    return safe_step_size(problem, algorithm) / algorithm.local_steps


def inverse_step_size(problem: Problem, algorithm: Any) -> Any:
    """1 / step_size: the smoothness that a step size, the largest, stands for."""
    return 1.0 / largest(algorithm.step_size)


def strong_convexity(problem: Problem) -> float:
    """mu, the smallest of all agents'."""
    return problem.moduli.smallest
