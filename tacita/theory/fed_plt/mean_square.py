"""Silent agents and errors, in mean square: Lemma 4, Prop. 2, Corollary 1."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacita.check import between, count, not_negative, positive, refuse
from tacita.theory.fed_plt.one_round import (
    is_stable,
    solver_contraction,
    transition_matrix,
)
from tacita.theory.fed_plt.settings import Reals, gradient_step, moduli_of, reals


def mean_square_rate(full_rate: Reals, participation: Reals = 1.0) -> Reals:
    """Prop. 2: sigma = sqrt(1 - p + p r^2), p the least active agent's probability.

    E|s_k - s*| <= sqrt(p_max/p_min) sigma^k |s_0 - s*|, s = (x, z), in the norm of
    `norm_weight`; the same holds for the root mean square. Corrected: print puts |S|
    for r, with the wrong constant in S (unsound for rho < 1) and often with |S| >= 1
    where S is stable (void). Pass `rate(S)` or `quadratic_rate(...)` for r. Only the
    probabilities count, not independence: K of N at random has p = K/N.

    Args:
        full_rate: Contraction r of a round in which everyone is active.
        participation: Probability of being active, one number or one per agent.
    """
    least = np.min(between(0.0, 1.0)(participation=participation))
    positive(participation=float(least))
    full_rate = reals(not_negative, full_rate=full_rate)
    return np.sqrt(1 - least + least * full_rate**2)


def mean_bound(
    rounds: Reals, full_rate: Reals, start: float, error: float, participation: Reals
) -> Reals:
    """Prop. 2 with errors: how far (x, z) is from its fixed point after k rounds.

    E|s_k - s*| <= sqrt(p_max) ( sigma^k |s_0 - s*| / sqrt(p_min) + (1 - sigma^k) nu /
    (1 - sigma) ), with sigma of `mean_square_rate`. Errors are whatever keeps a round
    from its exact answer: stochastic gradients, noise, a prox of h that is computed
    roughly. Print has sqrt(p_max/p_min) before both terms; errors of silent agents do
    not enter, which saves the second root. The same holds for root mean squares.

    Args:
        rounds: k.
        full_rate: Contraction r of a round in which everyone is active.
        start: |s_0 - s*|, in the norm of `norm_weight`.
        error: nu, the mean length of a round's error in s, were all active. One of e in
            every x_i is one of 2 e in z_i.
        participation: Probability of being active, one number or one per agent.

    >>> float(mean_bound(1, 0.5, start=2.0, error=0.25, participation=1.0))
    1.25
    """
    rate = mean_square_rate(full_rate, participation)
    chances = np.asarray(participation, float)
    not_negative(start=start)
    not_negative(error=error)
    left = rate ** np.asarray(rounds)
    # 1 + sigma + ... + sigma^(k-1), also where sigma is 1
    slow = np.asarray(rate) >= 1
    times = np.where(slow, rounds, (1 - left) / np.where(slow, 1.0, 1 - rate))
    begun = left * start / np.sqrt(chances.min())
    return np.sqrt(chances.max()) * (begun + times * error)


class Accuracy(NamedTuple):
    """Bounds on the root mean square distance from the fixed point, all agents' sum."""

    x: float
    z: float


def accuracy_bound(
    strong_convexity: float,
    smoothness: float,
    rho: float,
    local_steps: int,
    *,
    tau: float,
    dimension: int,
    agents: int,
    step_size: float | None = None,
) -> Accuracy:
    """Corollary 1: where noisy gradient descent (13) stops, sqrt(E|x - x*|^2) and z's.

    Every local step adds sqrt(2 gamma) tau N(0, I). Corrected: print bounds E|(x, z)|
    by tau sqrt(10 n N gamma) (1 - chi^Ne)/(1 - chi) / (1 - |S|), void when |S| >= 1
    and unsound for rho < 1 (see `transition_matrix`). Here S acts on the two root mean
    squares, which gives (I - S)^-1 (1, 2) nu for every stable S; and independent noise
    adds in squares, nu^2 = 2 gamma tau^2 n N (1 - chi^(2 Ne))/(1 - chi^2).

    Print asks for Assumption 2 (partial participation) but names no probability; this
    bound does hold for any probability common to all agents, since r^2 <= (1 - p) r^2
    + p (S r + nu)^2 in the limit, whatever p.
    """
    setting = strong_convexity, smoothness, rho
    matrix = transition_matrix(*setting, local_steps, step_size=step_size)
    if not is_stable(matrix):
        refuse(f"local_steps={local_steps} do not make S stable; raise local_steps")
    gamma = gradient_step(*moduli_of(*setting), step_size)
    chi2 = solver_contraction(*setting, 1, step_size=step_size) ** 2
    size = count(dimension=dimension) * count(agents=agents)
    growth = np.sum(chi2 ** np.arange(local_steps))
    noise = not_negative(tau=tau) * np.sqrt(2 * gamma * size * growth)
    x, z = np.linalg.solve(np.eye(2) - matrix, noise * np.array([1.0, 2.0]))
    return Accuracy(float(x), float(z))
