"""DP-Norm's noise by its paper: Lemma 1, Theorem 1, and what a step keeps.

T. Fukami, T. Murata, K. Niwa, I. Tyou, *DP-Norm*: Lemma 1, Theorem 1, eq. (8).

    eta = 1/(mu E K)    gamma = 1 + alpha eta    c = 1 + 2 (gamma + 1)
    Lemma 1:  Delta_2 = 2 c mu G (K/d + 1/B),   needs mu <= 1/(c K L)

Both hold for synchronous rounds; the package accounts by the tighter trajectory
(`tacita.privacy.letters.trajectory`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from tacita import check
from tacita.privacy import gaussian_sigma, inputs


def gamma_of(*, step_size: float, local_steps: int, degree: int, alpha: float) -> float:
    """The damping gamma = 1 + alpha eta with eta = 1/(mu E K)."""
    step_size = inputs.positive(step_size=step_size)
    local_steps = inputs.whole(local_steps=local_steps)
    degree = inputs.whole(degree=degree)
    alpha = inputs.not_negative(alpha=alpha)
    return 1 + alpha / (step_size * degree * local_steps)


def lemma_1_sensitivity(
    *,
    step_size: float,
    local_steps: int,
    batch: int,
    samples: int,
    gradient_bound: float,
    smoothness: float,
    degree: int,
    alpha: float,
) -> float:
    """Lemma 1: Delta_2 = 2 c mu G (K/d + 1/B); refused where its step is too long.

    >>> lemma_1_sensitivity(step_size=0.03, local_steps=10, batch=2000, samples=4000,
    ...     gradient_bound=1.0, smoothness=0.5, degree=2, alpha=0.2)
    0.00102
    """
    gamma = gamma_of(
        step_size=step_size, local_steps=local_steps, degree=degree, alpha=alpha
    )
    batch, samples = inputs.whole(batch=batch), inputs.whole(samples=samples)
    bound = inputs.positive(gradient_bound=gradient_bound)
    c = 1 + 2 * (gamma + 1)
    longest = 1 / (c * local_steps * inputs.positive(smoothness=smoothness))
    if step_size > longest:
        check.refuse(
            f"Lemma 1 of DP-Norm needs step_size <= 1/(c K L) = {longest:g}, got "
            f"step_size={step_size}"
        )
    return 2 * c * step_size * bound * (local_steps / samples + 1 / batch)


def step_shrinkage(
    *,
    step_size: float,
    local_steps: int,
    degree: int,
    alpha: float,
    neighbour_degrees: Sequence[int] | None = None,
) -> float:
    """How much of a difference one step keeps: r = 1/(1 + mu sum_j eta_ij/gamma_ij).

    Equal to gamma/(gamma + 1/K) where all degrees are equal.

    With `neighbour_degrees` each edge has eta_ij = 1/(mu K max(E_i, E_j)), the choice
    that keeps the optimum of irregular graphs.
    """
    degrees = [degree] * degree if neighbour_degrees is None else neighbour_degrees
    check.shape((degree,), neighbour_degrees=degrees)
    pull = 0.0
    for other in degrees:
        larger = max(degree, inputs.whole(neighbour_degrees=other))
        gamma = gamma_of(
            step_size=step_size, local_steps=local_steps, degree=larger, alpha=alpha
        )
        pull += 1 / (local_steps * larger * gamma)
    return 1 / (1 + pull)


def theorem_1_factor(epsilon: float, delta: float, rounds: int) -> float:
    """J of Theorem 1 in the form of (8): sound, 1.2 to 1.5 times more than needed.

    The printed theorem has epsilon inside the root; (8) is the one that holds.

    >>> round(theorem_1_factor(1.0, 1e-3, 2000), 9)
    167.69700165
    """
    epsilon = inputs.positive(epsilon=epsilon)
    delta = inputs.inside_unit(delta=delta)
    rounds = inputs.whole(rounds=rounds)
    h = theorem_1_h(epsilon, delta)
    spread = math.log(math.e + epsilon / (math.sqrt(2 * h) * delta))
    first = math.sqrt(2 * h * rounds * spread) / epsilon
    return max(first, math.sqrt(rounds / (2 * epsilon)))


def theorem_1_h(epsilon: float, delta: float) -> float:
    """The h of Theorem 1: (1 + sqrt(1 + eps/l))^2 / 4."""
    root = (1 + math.sqrt(1 + epsilon)) * delta
    spread = math.log(math.e + math.sqrt(2) * epsilon / root)
    return (1 + math.sqrt(1 + epsilon / spread)) ** 2 / 4


def tight_factor(epsilon: float, delta: float, rounds: int) -> float:
    """The smallest sigma / Delta for R rounds: sqrt(R) times the analytic Gaussian."""
    return math.sqrt(inputs.whole(rounds=rounds)) * gaussian_sigma(epsilon, delta)


def dp_norm_sigma(
    epsilon: float,
    delta: float,
    rounds: int,
    sensitivity: float,
    method: Literal["analytic", "paper"] = "analytic",
) -> float:
    """The noise of DP-Norm for a budget; both methods are private, `paper` noisier."""
    check.one_of(("analytic", "paper"), method=method)
    factor = tight_factor if method == "analytic" else theorem_1_factor
    return factor(epsilon, delta, rounds) * inputs.positive(sensitivity=sensitivity)
