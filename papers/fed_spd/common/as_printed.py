"""FedSPD-DP with the numbers of its paper: for reproduction, not for protection.

Y. Li et al., *Federated Stochastic Primal-dual Learning with Differential Privacy*,
(20), (22), (26), (27), (35), (36). Lemma 2 and Theorem 1, on which they rest, are
refuted: the report of such a run says so and gives the sound number.
"""

from __future__ import annotations

import math
from typing import Any

from tacita.algorithm import FedSPD
from tacita.privacy import inputs
from tacita.privacy.accounting.subsampling import WithReplacement
from tacita.privacy.clipped import Clipped
from tacita.privacy.letters.primal_dual_steps import C0
from tacita.problem.oracles import Minibatch
from tacita.schedule import Polynomial


def printed_rate(
    *, local_steps: int, batch: int, samples: int, replacement: bool = False
) -> float:
    """q_i of (22): Q b/m without replacement, 1 - (1 - 1/m)^(Q b) with it."""
    used = inputs.whole(local_steps=local_steps) * inputs.whole(batch=batch)
    samples = inputs.whole(samples=samples)
    return WithReplacement(used, samples).rate if replacement else used / samples


def round_epsilon(
    *, epsilon: float, rate: float, participation: float, rounds: int
) -> float:
    """(36): the epsilon of a round for a total of `epsilon`, as printed.

    >>> round(round_epsilon(epsilon=1.0, rate=50 / 325, participation=0.2,
    ...                     rounds=100), 4)
    0.4398
    """
    taken = inputs.fraction(participation=participation) * inputs.whole(rounds=rounds)
    epsilon, rate = inputs.positive(epsilon=epsilon), inputs.inside_unit(rate=rate)
    return epsilon * math.sqrt(1 - rate) / (C0 * rate * math.sqrt(taken))


def printed_noise(
    *, epsilon: float, delta: float, local_steps: int, gradient_bound: float = 1.0
) -> float:
    """(20) as noise in a gradient: 2 Q G sqrt(2 ln(1.25/delta))/((Q-1) epsilon)."""
    steps = inputs.whole(local_steps=local_steps)
    tail = math.sqrt(2 * math.log(1.25 / inputs.inside_unit(delta=delta)))
    epsilon = inputs.positive(epsilon=epsilon)
    return 2 * steps * gradient_bound * tail / (max(steps - 1, 1) * epsilon)


def printed_gamma(
    *,
    epsilon: float,
    delta: float,
    local_steps: int,
    participation: float,
    batch: int,
    dim: int,
    rho: float,
    gradient_bound: float = 1.0,
    factor_restored: bool = False,
) -> float:
    """gamma_1 of (26) and (27), with d_X = d_lambda = phi = 1 as in (35).

    Args:
        epsilon: Of one round.
        delta: Of one round.
        local_steps: Q.
        participation: p.
        batch: b.
        dim: d.
        rho: The penalty.
        gradient_bound: G.
        factor_restored: Put back the factor Q^2 that (69) lost.

    >>> round(printed_gamma(epsilon=0.4398, delta=1e-4, local_steps=5,
    ...     participation=0.2, batch=10, dim=162, rho=20.0))
    795
    """
    steps, bound = inputs.whole(local_steps=local_steps), float(gradient_bound)
    lost = steps**2 if factor_restored else 1
    spread = 16 * rho * dim * bound**2 * math.log(1.25 / delta) * lost
    spread /= (max(steps - 1, 1) * epsilon) ** 2
    constant = bound**2 + 2 + 2 / batch + spread
    return 2 * math.sqrt(steps * participation * constant)


def fed_spd_as_printed(
    *,
    epsilon: float,
    delta: float,
    rounds: int,
    participation: float,
    samples: int,
    dim: int,
    local_steps: int = 5,
    batch: int = 10,
    rho: float = 20.0,
    gradient_bound: float = 1.0,
    replacement: bool = False,
    factor_restored: bool = False,
    per_round: bool = False,
) -> FedSPD:
    """FedSPD-DP with the paper's gamma and noise for a claimed total epsilon.

    Args:
        epsilon: The total claimed by (21); with `per_round`, that of one round.
        delta: Its delta.
        rounds: T.
        participation: p = K/N.
        samples: m, records of every client.
        dim: d, length of the model.
        local_steps: Q.
        batch: b.
        rho: The penalty; 20 in the paper.
        gradient_bound: G, here enforced by clipping; 1 in the paper.
        replacement: Draw batches with replacement.
        factor_restored: Put back the factor Q^2 that (69) lost.
        per_round: `epsilon` is that of one round.

    >>> made = fed_spd_as_printed(epsilon=1.0, delta=1e-4, rounds=100,
    ...                           participation=0.2, samples=325, dim=162)
    >>> gamma = made.gamma.start
    >>> made.state, round(gamma), round(2 * made.noise_std / (20 + gamma), 4)
    ('hidden', 795, 0.0606)
    """
    sizes: dict[str, Any] = {"local_steps": local_steps, "batch": batch}
    if not per_round:
        rate = printed_rate(samples=samples, replacement=replacement, **sizes)
        epsilon = round_epsilon(
            epsilon=epsilon, rate=rate, participation=participation, rounds=rounds
        )
    each = {"epsilon": epsilon, "delta": delta, "gradient_bound": gradient_bound}
    sampling = "with_replacement" if replacement else "permutation"
    gamma = printed_gamma(
        participation=participation,
        dim=dim,
        rho=rho,
        factor_restored=factor_restored,
        **each,
        **sizes,
    )
    return FedSPD(
        rho=rho,
        gamma=Polynomial(start=gamma, power=-0.5),
        local_steps=local_steps,
        state="hidden",
        paper_noise=True,
        noise_std=printed_noise(local_steps=local_steps, **each),
        oracle=Clipped(
            norm=gradient_bound, oracle=Minibatch(size=batch, sampling=sampling)
        ),
    )
