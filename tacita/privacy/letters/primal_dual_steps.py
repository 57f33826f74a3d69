"""FedSPD-DP: the public-state variant that is private, and the printed claims.

Y. Li et al., *Federated Stochastic Primal-dual Learning with Differential Privacy*:
Lemma 2, eqs (19) to (21), Theorem 1. With a = gamma/(rho + gamma), per-record
gradients of norm at most G, batches of b, Q inner steps:

    printed Lemma 2        4 Q G / ((Q-1)(rho+gamma))              false
    one round, equal start (4 G/rho)(1 - a (1-a^Q)/(Q (1-a)))      tight, whole batch
    public state           (4 G/(b Q rho))(1 - a^Q)                sound, replace-one

Lemma 2 pushes the average over Q into the recursion, and takes the local state
(u_i, lambda_i) for equal on neighbouring data although it is never released and
remembers the record without noise. The public-state variant rebuilds the local state
from the released letter, so that every round starts equal given the transcript.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacita import check
from tacita.privacy import inputs
from tacita.privacy.accounting.guarantee import (
    PaperClaim,
)

C0 = 3.04  # the paper's unexplained constant of (21) and (36)


def printed_sensitivity(
    *, gamma: Any, rho: float, inner_steps: int, gradient_bound: float
) -> Any:
    """Lemma 2 as printed, for reproduction only: false from Q = 3 on."""
    gamma, rho, steps, bound = _checked(gamma, rho, inner_steps, gradient_bound)
    return 4 * steps * bound / (max(steps - 1, 1) * (rho + gamma))


def one_round_sensitivity(
    *, gamma: Any, rho: float, inner_steps: int, gradient_bound: float
) -> Any:
    """The true one-round sensitivity under the paper's own (39): 2G at every step."""
    gamma, rho, steps, bound = _checked(gamma, rho, inner_steps, gradient_bound)
    a = gamma / (rho + gamma)
    return 4 * bound / rho * (1 - a * (1 - a**steps) / (steps * (1 - a)))


def public_state_sensitivity(
    *, gamma: Any, rho: float, inner_steps: int, gradient_bound: float, batch: int
) -> Any:
    """The sound sensitivity of a public-state letter; at most 4G/(b(rho+gamma)).

    >>> round(public_state_sensitivity(gamma=795.0, rho=20.0, inner_steps=1,
    ...     gradient_bound=1.0, batch=10), 12)
    0.000490797546
    """
    gamma, rho, steps, bound = _checked(gamma, rho, inner_steps, gradient_bound)
    a = gamma / (rho + gamma)
    return 4 * bound / (inputs.whole(batch=batch) * steps * rho) * (1 - a**steps)


def hidden_state_sensitivities(
    *,
    gamma: Any,
    rho: float,
    inner_steps: int,
    gradient_bound: float,
    batch: int,
    hits: Any = None,
) -> np.ndarray:
    """How far each letter of the algorithm as printed moves, given the transcript.

    The local state carries the record from round to round:

        du <- a_t du + c_t (dl + 2 G n_r/b);  dx = mean_r du
        s_t = 2 dx + dl/rho;                  dl <- dl + rho dx

    Args:
        gamma: gamma_t of the rounds in which the client is active.
        rho: The penalty.
        inner_steps: Q.
        gradient_bound: G.
        batch: b.
        hits: n_r per round and step (how often the record is in that batch); None
            takes, for every letter on its own, the worst of one hit a round.
    """
    gamma, rho, steps, bound = _checked(gamma, rho, inner_steps, gradient_bound)
    gamma = np.atleast_1d(gamma)
    kick = 2 * bound / inputs.whole(batch=batch)
    if hits is None:
        # Unit impulses, one for every (round, step) at which the record may be used;
        # the recursion is linear with coefficients >= 0, so the worst sum is the sum
        # over rounds of the worst step.
        impulses = np.eye(len(gamma) * steps).reshape(-1, len(gamma), steps)
        letters = _letters(impulses * kick, gamma, rho)
        by_hit = letters.reshape(len(gamma), steps, len(gamma))
        return by_hit.max(axis=1).sum(axis=0)
    hits = np.asarray(hits, dtype=float)
    check.shape((len(gamma), steps), hits=hits)
    check.not_negative(hits=hits)
    return _letters(hits[None] * kick, gamma, rho)[0]


def _letters(
    kicks: np.ndarray, gamma: np.ndarray, rho: float, gamma_high: Any = None
) -> np.ndarray:
    """The recursion for many schedules at once: (schedule, round, step) -> s_t.

    With `gamma_high`, a bound over any gamma_t between the two: one step is monotone
    in gamma, so one of the ends is worst, and it grows with du and dl.
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
        letters = _letters(kicks, low, rho, high)[0]
    elif np.ptp(low) == 0 and np.ptp(high) == 0:
        # Nothing changes from round to round: a hit acts alike, only later.
        kicks = kick * np.eye(steps)[:, None, :] * (np.arange(rounds) == 0)[:, None]
        letters = np.cumsum(_letters(kicks, low, rho, high).max(axis=0))
    else:
        kicks = kick * np.eye(rounds * steps).reshape(-1, rounds, steps)
        by_hit = _letters(kicks, low, rho, high).reshape(rounds, steps, rounds)
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


def _checked(
    gamma: Any, rho: float, inner_steps: int, gradient_bound: float
) -> tuple[Any, float, int, float]:
    gammas = inputs.positive_array(gamma=gamma)
    return (
        gammas if gammas.ndim else float(gammas),
        inputs.positive(rho=rho),
        inputs.whole(inner_steps=inner_steps),
        inputs.positive(gradient_bound=gradient_bound),
    )
