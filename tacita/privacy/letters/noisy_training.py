"""Fed-PLT with noisy local gradients: what holds, and what Proposition 4 claims.

N. Bastianello, C. Liu, K. H. Johansson, *Enhancing Privacy in Federated Learning
through Local Training*, eq. (13) and Proposition 4. Each local step adds
sqrt(2 gamma) tau N(0, I).

What the coordinator receives determines every local model
(x_{k+1} = y_{k+1} + (z_{k+1} - z_k) / 2), so rounds compose and only the steps within
a round are hidden. A round is noisy gradient descent with a contraction c:

    c = max(|1 - gamma (lambda + 1/rho)|, |1 - gamma (Lambda + 1/rho)|) < 1
    mu_round^2 = gamma L^2 / (2 tau^2 q^2) * (1+c)(1-c^Ne) / ((1-c)(1+c^Ne))
    mu^2       = K_i mu_round^2

(J. Bok, W. Su, J. Altschuler, arXiv 2403.00278, strongly convex noisy gradient
descent). Seeing less, the final model only, costs at most as much.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tacita import check
from tacita.privacy import inputs
from tacita.privacy.accounting.curve import GaussianCurve, RenyiCurve, take_part
from tacita.privacy.accounting.guarantee import (
    Guarantee,
    PaperClaim,
    believed,
    enforced,
)
from tacita.privacy.scope import Observer, Scope
from tacita.theory import descent

_THEOREM = (
    "K_i-fold Gaussian composition of the strongly convex noisy-gradient-descent bound "
    "(Bok, Su and Altschuler 2024) for one round"
)
_ALWAYS_BELIEVED = (
    believed("local steps are plain noisy gradient steps on all q records"),
    believed("inner iterates and noise stay with the agent"),
)
_POST_PROCESSING = "; a final model is a function of the letters"


def gradient_noise(tau: Any, step_size: Any) -> Any:
    """The `std` of a `Noisy` oracle with which a step adds sqrt(2 gamma) tau N(0, I).

    A step moves by gamma times the gradient, so that is tau sqrt(2/gamma).

    >>> gradient_noise(tau=0.3, step_size=0.5)
    0.6
    """
    std = tau * np.sqrt(2 / np.asarray(step_size))
    return std if np.ndim(std) else float(std)


def step_noise(std: float, step_size: float) -> float:
    """Tau of (13) for noise in a gradient: the inverse of `gradient_noise`."""
    return std * math.sqrt(step_size / 2)


def contraction(
    *, strong_convexity: float, smoothness: float, rho: float, step_size: float
) -> float:
    """How much one local step brings two models together; refused unless < 1.

    >>> round(contraction(strong_convexity=0.5, smoothness=2.0, rho=1.0,
    ...                   step_size=0.25), 12)
    0.625
    """
    strong_convexity = inputs.not_negative(strong_convexity=strong_convexity)
    smoothness = inputs.positive(smoothness=smoothness)
    rho = inputs.positive(rho=rho)
    step_size = inputs.positive(step_size=step_size)
    if strong_convexity > smoothness:
        check.refuse(
            "expected strong_convexity <= smoothness, got "
            f"strong_convexity={strong_convexity}, smoothness={smoothness}"
        )
    factor = descent.contraction(
        step_size, strong_convexity + 1 / rho, smoothness + 1 / rho
    )
    if factor >= 1.0:
        check.refuse(
            f"local steps do not contract (factor {factor:g} >= 1 at "
            f"step_size={step_size}); take step_size < {2 / (smoothness + 1 / rho):g}"
        )
    return factor


def mu_of_a_round(
    *,
    contraction: float,
    step_size: float,
    local_steps: int,
    noise_std: float,
    lipschitz: float,
    samples: int,
) -> float:
    """The mu of one round given all earlier letters."""
    step_size = inputs.positive(step_size=step_size)
    local_steps = inputs.whole(local_steps=local_steps)
    tau = inputs.positive(noise_std=noise_std)
    gradient_change = inputs.positive(lipschitz=lipschitz) / inputs.whole(
        samples=samples
    )
    faded = contraction**local_steps
    accumulated = (1 + contraction) * (1 - faded) / ((1 - contraction) * (1 + faded))
    return gradient_change / tau * math.sqrt(step_size / 2 * accumulated)


def fed_plt(
    *,
    observer: str,
    strong_convexity: float,
    smoothness: float,
    rho: float,
    step_size: float,
    local_steps: int,
    noise_std: float,
    lipschitz: float,
    samples: int,
    rounds: int,
    participation: float = 1.0,
    clipped: bool = False,
    bounded: bool = False,
) -> Guarantee:
    """The guarantee of Fed-PLT for one record of one agent (replace-one).

    Args:
        observer: Who looks; there is no default, for the answer depends on it.
        strong_convexity: lambda of the local losses (0 is allowed: 1/rho contracts).
        smoothness: Lambda of the local losses.
        rho: The penalty of Fed-PLT.
        step_size: gamma of the local steps.
        local_steps: Ne, noisy full-gradient steps a round.
        noise_std: tau of eq. (13); each step adds sqrt(2 gamma) tau N(0, I). For the
            noise in a gradient that does so see `gradient_noise`.
        lipschitz: L of Assumption 3: replacing one record changes the local gradient
            by at most L / samples. Clipping every record's gradient to L/2 enforces it.
        samples: q, records of the agent.
        rounds: K_i: the rounds in which the agent took part, or, with a
            `participation` below 1, all rounds of the run.
        participation: Probability of taking part in a round.
        clipped: Per-record gradients are clipped to lipschitz / 2.
        bounded: Rows are clipped to a bound from which the moduli follow.

    >>> run = fed_plt(observer="coordinator", strong_convexity=0.5, smoothness=2.0,
    ...     rho=1.0, step_size=0.25, local_steps=20, noise_std=1.0, lipschitz=1.0,
    ...     samples=100, rounds=100)
    >>> round(run.mu, 10), round(run.epsilon(1e-5), 7)
    (0.0735919196, 0.2439339)
    """
    rounds = inputs.whole(rounds=rounds)
    factor = contraction(
        strong_convexity=strong_convexity,
        smoothness=smoothness,
        rho=rho,
        step_size=step_size,
    )
    mu = mu_of_a_round(
        contraction=factor,
        step_size=step_size,
        local_steps=local_steps,
        noise_std=noise_std,
        lipschitz=lipschitz,
        samples=samples,
    )
    moduli = (
        f"local losses are {strong_convexity:g}-strongly convex and "
        f"{smoothness:g}-smooth"
    )
    change = f"replacing a record changes the local gradient by at most {lipschitz:g}/q"
    return Guarantee(
        curve=take_part(GaussianCurve(mu), participation).repeat(rounds),
        scope=Scope(observer),
        theorem=_THEOREM + (_POST_PROCESSING if observer == "final_model" else ""),
        assumptions=(
            enforced(f"local steps contract by {factor:g} for the moduli given"),
            enforced(moduli) if bounded else believed(moduli),
            enforced(change) if clipped else believed(change),
            *_ALWAYS_BELIEVED,
        ),
        paper_claim=_claim(
            observer,
            strong_convexity,
            change=lipschitz / (noise_std * samples),
            horizon=step_size * rounds * local_steps / 2,
        ),
    )


def _claim(
    observer: str, strong_convexity: float, change: float, horizon: float
) -> PaperClaim:
    """Prop. 4 beside the sound number: refuted by letters, unproven without them.

    The Renyi divergence divided by the order is claimed to be

        L^2 / (lambda tau^2 q^2) (1 - exp(-lambda gamma K Ne / 2)),

    with `change` L / (tau q) and `horizon` gamma K Ne / 2.
    """
    if strong_convexity > 0:
        horizon = -math.expm1(-strong_convexity * horizon) / strong_convexity
    claimed = RenyiCurve.linear(change**2 * horizon)
    if observer in (Observer.COORDINATOR, Observer.EAVESDROPPER):
        status = "refuted"
        reason = (
            "one letter z_{i,K} alone can cost 22.8 times the claim: letters determine "
            "every x_{i,k}, so no state is hidden across rounds"
        )
    else:
        status = "unproven"
        reason = (
            "no counterexample is known for the final model, but the proof conditions "
            "on v_{i,k} and keeps the unconditioned law of the start; it also needs "
            "x_{i,0} ~ N(0, 2 tau^2 I / lambda)"
        )
    return PaperClaim(
        source="Fed-PLT, Proposition 4",
        status=status,
        reason=reason,
        epsilon_at=claimed.epsilon,
        rdp_at=claimed.rdp,
    )
