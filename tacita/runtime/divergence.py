"""Whether a run went astray: numbers that are none, or a loss far above the start."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tacita.problem.problem import Problem

#: A loss so many times that of the start is no longer on its way anywhere.
FAR = 10.0


def diverged(
    problem: Problem,
    params: np.ndarray,
    losses: np.ndarray | None,
    at_start: Callable[[], np.ndarray],
) -> np.ndarray:
    """Whether a run went astray, of every lane.

    Args:
        problem: What was to be solved.
        params: The shared model at the end, (d,) or (lanes, d).
        losses: The recorded losses, (records,) or (lanes, records); None where none
            were recorded, or where they must not be looked at: those of private rows
            have no noise, and whether a run diverged is told to everybody.
        at_start: Measures the loss before the first round, of every lane.
    """
    astray = ~np.all(np.isfinite(params), axis=-1)
    if losses is None or not losses.size:
        return astray
    last = losses[..., -1]
    astray |= ~np.isfinite(last)
    if np.all(astray | (last <= _of_guessing(problem))):
        return astray
    first = at_start()
    # A start without a loss says nothing of what is far.
    return astray | ((first > 0) & (last > FAR * first))


def _of_guessing(problem: Problem) -> float:
    """The loss of a model that takes all classes for equally likely; 0 if none are.

    What is no worse has not diverged: that need not be measured.
    """
    classes = problem.model.classes
    return 0.0 if classes is None else math.log(classes) * float(problem.weights.sum())
