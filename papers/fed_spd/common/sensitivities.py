"""How far a record moves FedSPD-DP's letters: as printed, and in truth.

Y. Li et al., *Federated Stochastic Primal-dual Learning with Differential Privacy*,
Lemma 2. With a = gamma/(rho + gamma), per-record gradients of norm at most G, batches
of b, Q inner steps:

    printed Lemma 2        4 Q G / ((Q-1)(rho+gamma))              false
    one round, equal start (4 G/rho)(1 - a (1-a^Q)/(Q (1-a)))      tight, whole batch
    public state           (4 G/(b Q rho))(1 - a^Q)                sound, replace-one

The package's account (`tacita.privacy.letters.local_steps`) is checked against these.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tacita import check
from tacita.privacy import inputs
from tacita.privacy.letters.primal_dual_steps import letter_moves


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

    The local state carries the record from round to round: `letter_moves` with kicks
    of 2 G n_r/b.

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
        letters = letter_moves(impulses * kick, gamma, rho)
        by_hit = letters.reshape(len(gamma), steps, len(gamma))
        return by_hit.max(axis=1).sum(axis=0)
    hits = np.asarray(hits, dtype=float)
    check.shape((len(gamma), steps), hits=hits)
    check.not_negative(hits=hits)
    return letter_moves(hits[None] * kick, gamma, rho)[0]


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
