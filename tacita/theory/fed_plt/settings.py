"""What the theorems are told: curvatures, penalty, steps."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacita.check import count, positive, refuse

SOLVERS = ("gradient", "accelerated")

# A number or an array of numbers: the functions broadcast like NumPy's own.
Reals = Any


def reals(check: Any = positive, **named: Reals) -> NDArray[np.float64]:
    """A number or several as float64, refused where they do not pass the check."""
    ((name, value),) = named.items()
    # An unknown modulus arrives as None, which the checks let pass.
    if value is None:
        refuse(f"expected {name} a number, got {name}=None; the theory needs it")
    return np.asarray(check(**named), np.float64)


def moduli_of(
    strong_convexity: Reals, smoothness: Reals, rho: Reals
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Smallest and largest curvature, and rho."""
    low, high = reals(strong_convexity=strong_convexity), reals(smoothness=smoothness)
    if np.any(high < low):
        refuse(
            f"expected smoothness >= strong_convexity, got smoothness={smoothness} "
            f"and strong_convexity={strong_convexity}"
        )
    return low, high, reals(rho=rho)


def whole_steps(local_steps: Reals) -> NDArray[np.int64]:
    """Numbers of local steps."""
    if np.ndim(local_steps) == 0:
        return np.asarray(count(local_steps=local_steps))
    whole = np.asarray(positive(local_steps=local_steps))
    if np.any(whole != np.rint(whole)):
        refuse(f"expected local_steps whole numbers, got local_steps={local_steps}")
    return whole.astype(np.int64)


def gradient_step(
    low: Reals, high: Reals, rho: Reals, step_size: Reals | None
) -> Reals:
    """The step of local gradient descent: the best one, or one that contracts."""
    if step_size is None:
        return 2 / (low + high + 2 / rho)
    step = reals(step_size=step_size)
    limit = 2 / (high + 1 / rho)
    if np.any(step >= limit):
        refuse(
            f"expected step_size < 2/(smoothness + 1/rho) = {np.min(limit):g}, "
            f"got step_size={step_size}"
        )
    return step
