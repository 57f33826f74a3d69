"""FedSPD-DP as printed: what its hidden state remembers, and what its paper claims.

Y. Li et al., *Federated Stochastic Primal-dual Learning with Differential Privacy*:
Lemma 2, eqs (19) to (21), Theorem 1. Lemma 2, 4 Q G / ((Q-1)(rho+gamma)) with Q inner
steps and per-record gradients of norm at most G, pushes the average over Q into the
recursion, and takes the local state (u_i, lambda_i) for equal on neighbouring data
although it is never released and remembers the record without noise. The public-state
variant rebuilds the local state from the released letter, so that every round starts
equal given the transcript.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacita.privacy import inputs
from tacita.privacy.accounting.guarantee import PaperClaim

C0 = 3.04  # the paper's unexplained constant of (21) and (36)


def letter_moves(
    kicks: np.ndarray, gamma: np.ndarray, rho: float, gamma_high: Any = None
) -> np.ndarray:
    """How far each letter moves, given the transcript: (schedule, round, step) -> s_t.

    The local state carries the record from round to round; a step at which it is used
    changes the gradient by a kick:

        du <- a_t du + c_t (dl + kick);  dx = mean_r du
        s_t = 2 dx + dl/rho;             dl <- dl + rho dx

    with a_t = gamma_t/(rho + gamma_t), c_t = 1/(rho + gamma_t). With `gamma_high`, a
    bound over any gamma_t between the two: one step is monotone in gamma, so one of
    the ends is worst, and it grows with du and dl.
    """
    schedules, rounds, steps = kicks.shape
    ends = (gamma,) if gamma_high is None else (gamma, gamma_high)
    du, dl = np.zeros(schedules), np.zeros(schedules)
    letters = np.zeros((schedules, rounds))
    for t in range(rounds):
        total = np.zeros(schedules)
        for r in range(steps):
            push = dl + kicks[:, t, r]
            steps_to = [(g[t] * du + push) / (rho + g[t]) for g in ends]
            du = np.max(steps_to, axis=0)
            total += du
        dx = total / steps
        letters[:, t] = 2 * dx + dl / rho
        dl = dl + rho * dx
    return letters


def hidden_state_norm(
    *,
    low: np.ndarray,
    high: np.ndarray,
    rho: float,
    inner_steps: int,
    kick: float,
    every_step: bool,
    noise_std: float,
) -> float:
    """The mu of all letters of a hidden state, with noise 2 noise_std/(rho + gamma_t).

    Args:
        low: The smallest gamma_t of each active round; with `high` the same, exact.
        high: The largest.
        rho: The penalty.
        inner_steps: Q.
        kick: The change of one gradient by one use of the record.
        every_step: Whether the record is used in every step, else in one a round.
        noise_std: Of the noise in a gradient.
    """
    rounds, steps = len(low), inner_steps
    if every_step:
        kicks = np.full((1, rounds, steps), kick)
        letters = letter_moves(kicks, low, rho, high)[0]
    elif np.ptp(low) == 0 and np.ptp(high) == 0:
        # Nothing changes from round to round: a hit acts alike, only later.
        kicks = kick * np.eye(steps)[:, None, :] * (np.arange(rounds) == 0)[:, None]
        letters = np.cumsum(letter_moves(kicks, low, rho, high).max(axis=0))
    else:
        kicks = kick * np.eye(rounds * steps).reshape(-1, rounds, steps)
        by_hit = letter_moves(kicks, low, rho, high).reshape(rounds, steps, rounds)
        letters = by_hit.max(axis=1).sum(axis=0)
    return float(np.linalg.norm(letters * (rho + high) / (2 * noise_std)))


def printed_epsilon(
    *, epsilon: float, rate: float, participation: float, rounds: int
) -> float:
    """Theorem 1 as printed, c0 q eps sqrt(p T/(1-q)): refuted, for reproduction."""
    epsilon = inputs.positive(epsilon=epsilon)
    rate = inputs.inside_unit(rate=rate)
    taken = inputs.fraction(participation=participation) * inputs.whole(rounds=rounds)
    return C0 * rate * epsilon * math.sqrt(taken / (1 - rate))


def printed_claim(
    *,
    noise_std: float,
    inner_steps: int,
    gradient_bound: float,
    rate: float,
    participation: float,
    rounds: int,
) -> PaperClaim | None:
    """Theorem 1 as printed, for letters with noise 2 noise_std/(rho + gamma_t).

    None where the rate is 1: (21) then claims nothing.
    """
    if rate >= 1.0:
        return None
    # Lemma 2 over the noise; rho + gamma_t cancels.
    ratio = 2 * inner_steps * gradient_bound / (max(inner_steps - 1, 1) * noise_std)

    def epsilon_at(delta: float) -> float:
        # (20) solved for the epsilon of a round, then (21)
        epsilon = ratio * math.sqrt(2 * math.log(1.25 / delta))
        return printed_epsilon(
            epsilon=epsilon, rate=rate, participation=participation, rounds=rounds
        )

    return PaperClaim(
        source="FedSPD-DP, Theorem 1",
        status="refuted",
        reason=(
            "Lemma 2 is false and the local state remembers records without noise; an "
            "audit of a claimed epsilon of 0.1 measured at least 3.07"
        ),
        epsilon_at=epsilon_at,
    )
