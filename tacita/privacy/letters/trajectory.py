"""DP-Norm: how far one record moves a node's model, and the noise that hides it.

T. Fukami, T. Murata, K. Niwa, I. Tyou, *DP-Norm*: Lemma 1, Theorem 1, eq. (8). Letters
are functions of w + n with n ~ N(0, sigma^2 I) and of what was received, so given the
transcript one round is one Gaussian release of w, and R rounds compose as mu^2 =
R (Delta / sigma)^2.

    eta = 1/(mu E K)    gamma = 1 + alpha eta    c = 1 + 2 (gamma + 1)
    Lemma 1:  Delta_2 = 2 c mu G (K/d + 1/B),   needs mu <= 1/(c K L)

For convex losses every step is non-expansive (mu <= 2/L) and the same trajectories
obey D <- r (D + 2 mu G n_k / B) with r = gamma/(gamma + 1/K), which is 5 to 7 times
smaller: `trajectory_sensitivity`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from tacita import check
from tacita.privacy import inputs
from tacita.privacy.accounting.gaussian import gaussian_sigma


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


def trajectory_sensitivity(
    *,
    shrinkage: float,
    step_size: float,
    local_steps: int,
    batch: int,
    samples: int,
    gradient_bound: float,
    any_step: bool = False,
) -> float:
    """The tight bound for convex losses and one fresh permutation a round.

    A record is used once in every m = d/B steps, at worst in the last one. Where m
    divides K this is (2 mu G/B) r/(1 - r^m), the same for every round.

    Args:
        shrinkage: r, from `step_shrinkage`.
        step_size: mu.
        local_steps: K inner steps a round.
        batch: B; must divide `samples`.
        samples: d, records of the node.
        gradient_bound: G, the largest norm of one record's gradient.
        any_step: Letters may leave after any inner step, not only after the last.

    >>> round(trajectory_sensitivity(shrinkage=40/43, step_size=0.03, local_steps=10,
    ...     batch=2000, samples=4000, gradient_bound=1.0), 8)
    0.00020723
    """
    shrinkage = inputs.inside_unit(shrinkage=shrinkage)
    kick = 2 * inputs.positive(step_size=step_size)
    kick *= inputs.positive(gradient_bound=gradient_bound) / inputs.whole(batch=batch)
    local_steps = inputs.whole(local_steps=local_steps)
    period, rest = divmod(inputs.whole(samples=samples), batch)
    if rest:
        check.refuse(
            "the tight bound needs batch to divide samples, got "
            f"batch={batch}, samples={samples}; use bound='lemma_1'"
        )

    def within_the_round(steps: int) -> float:
        # Worst ages of the hits after `steps` steps: the running epoch's hit is the
        # last step, each complete epoch's hit its own last step.
        start = steps % period
        ages = [] if start == 0 else [0]
        ages += range(start, steps, period)
        return kick * sum(shrinkage ** (age + 1) for age in ages)

    carried = within_the_round(local_steps) / (1 - shrinkage**local_steps)
    if not any_step:
        return carried
    return max(
        within_the_round(steps) + shrinkage**steps * carried
        for steps in range(1, local_steps + 1)
    )


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
