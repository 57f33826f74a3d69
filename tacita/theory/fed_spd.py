"""FedSPD's convergence theorem as functions of numbers, with its lost factor mended.

Y. Li, S. Wang, T.-H. Chang, C.-Y. Chi, "Federated Stochastic Primal-dual Learning with
Differential Privacy", Theorem 2. It bounds

    H = sum_i E[ F_i(x_i) - F_i(x*) ] + beta sum_i E||x_i - x_0||,            (25)

where x_i and x_0 are means over the T rounds. Two things are wrong in print, and both
are kept apart here: (69) lost a factor Q^2 of the noise (20), so the printed C, (27),
is too small and (32), (33) do not follow; and rho >= sqrt(gamma_t), which the proof
needs, is violated by the paper's own numbers (`is_covered` says so).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacita import check


@dataclass(frozen=True)
class Setting:
    """The numbers of Theorem 2, all public.

    Attributes:
        gradient_norm: G, what no gradient is longer than.
        dim: d, how many parameters there are.
        batch: b, rows in a batch.
        local_steps: Q, local steps in a round.
        participation: p, the chance that a client is active.
        rho: Penalty of the consensus constraint.
        epsilon: Of one round; None for no noise.
        delta: Of one round.
        diameter: d_X, of the set of models.
        dual_diameter: d_lambda, of the set of dual variables.
        gradient_std: phi, of a stochastic gradient.
        penalty_bound: G_R, what R_i is at most.
        as_printed: The C of (27) and (29), without Q^2.
    """

    gradient_norm: float
    dim: int
    batch: int
    local_steps: int
    participation: float
    rho: float
    epsilon: float | None = None
    delta: float = 1e-4
    diameter: float = 1.0
    dual_diameter: float = 1.0
    gradient_std: float = 1.0
    penalty_bound: float = 0.0
    as_printed: bool = False

    def __post_init__(self) -> None:
        for name in ("gradient_norm", "rho", "diameter"):
            check.positive(**{name: getattr(self, name)})
        for name in ("dual_diameter", "gradient_std", "penalty_bound"):
            check.not_negative(**{name: getattr(self, name)})
        for name in ("dim", "batch", "local_steps"):
            check.count(**{name: getattr(self, name)})
        check.fraction(participation=self.participation)
        check.positive(epsilon=self.epsilon)
        check.inside_unit(delta=self.delta)


def noise_constant(s: Setting) -> float:
    """C(Q, epsilon): (27), and (29) for one local step, mended unless `as_printed`.

    The noise of (20) has E||(rho + gamma) xi||^2 = 32 d Q^2 G^2 ln(1.25/delta) /
    ((Q - 1)^2 epsilon^2); C has rho/2 times that. For Q = 1 the Q - 1 and Q are 1.
    """
    plain = (
        s.gradient_norm**2 + 2 * s.dual_diameter**2 + 2 * s.gradient_std**2 / s.batch
    )
    if s.epsilon is None:
        return plain
    factor = 1.0
    if s.local_steps > 1:
        lost = 1 if s.as_printed else s.local_steps**2
        factor = lost / (s.local_steps - 1) ** 2
    wide = 16 * s.rho * s.dim * s.gradient_norm**2 * math.log(1.25 / s.delta)
    return plain + factor * wide / s.epsilon**2


def gamma(s: Setting, number: Any) -> Any:
    """gamma_t of round t, (26); (35) is this as printed, in the paper's setting.

    >>> paper = Setting(gradient_norm=1, dim=162, batch=10, local_steps=5, rho=20,
    ...                 participation=0.2, epsilon=0.4398, as_printed=True)
    >>> round(float(gamma(paper, 1)))
    795
    """
    scale = s.local_steps * s.participation * noise_constant(s)
    return 2 * math.sqrt(scale) / s.diameter * np.sqrt(number)


def is_covered(s: Setting, rounds: int) -> bool:
    """Whether rho >= sqrt(gamma_t) in every round, as Theorem 2 asks."""
    return bool(s.rho >= math.sqrt(gamma(s, check.count(rounds=rounds))))


def dominating_term(s: Setting, rounds: Any, clients: int) -> Any:
    """(31): sum_i 2 d_X sqrt(C) / sqrt(T Q p), the slow part of the bound."""
    root = np.sqrt(rounds * s.local_steps * s.participation)
    return clients * 2 * s.diameter * math.sqrt(noise_constant(s)) / root


def bound(s: Setting, rounds: Any, clients: int, start: float) -> Any:
    """Theorem 2, (28): what H is at most after T rounds.

    Args:
        s: The numbers of the theorem.
        rounds: T.
        clients: N.
        start: How far J, (24), falls in the run at most, summed over the clients.
    """
    q, p = s.local_steps, s.participation
    per_client = (
        s.rho * s.diameter**2 * (q + 1)
        + q * s.dual_diameter**2 / s.rho
        + 4 * s.penalty_bound
    ) / p
    fast = (check.not_negative(start=start) + clients * per_client / (2 * q)) / rounds
    return fast + dominating_term(s, rounds, clients)


def rounds_needed(s: Setting, accuracy: float, clients: int) -> int:
    """T that brings the dominating term below `accuracy`, (32).

    T grows as 1/accuracy^2. Print says 1/(Q^3 accuracy^2); with the lost factor C is
    nearly free of Q, and it is 1/(Q accuracy^2).
    """
    once = dominating_term(s, 1, clients)
    return math.ceil((once / check.positive(accuracy=accuracy)) ** 2)


def total_epsilon(s: Setting, accuracy: float, clients: int, rows: int) -> float:
    """(33): the total epsilon that (21) claims for that many rounds, without c_0.

    It is how the claim grows, not a guarantee: the total of the algorithm as printed is
    refuted (docs/explanation-fed-spd.md).
    """
    if s.epsilon is None:
        check.refuse("expected epsilon of one round, got epsilon=None")
    share = s.local_steps * s.batch / check.count(rows=rows)
    check.inside_unit(share=share)
    rounds = rounds_needed(s, accuracy, clients)
    return share * s.epsilon * math.sqrt(s.participation * rounds / (1 - share))
