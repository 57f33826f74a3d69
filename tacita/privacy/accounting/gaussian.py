"""The Gaussian mechanism, exactly: epsilon, delta and sigma of each other.

B. Balle and Y.-X. Wang, *Improving the Gaussian Mechanism for Differential Privacy*
(ICML 2018), Theorem 8. With mu = sensitivity / sigma the mechanism is
(epsilon, delta)-private exactly when

    delta >= Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu).

The difference cancels badly where mu is small, so it is computed through the Mills
ratio R(x) = (1 - Phi(x)) / phi(x): since e^epsilon phi(b) = phi(a),

    delta = phi(a) (R(a) - R(b)),   a = epsilon/mu - mu/2,   b = epsilon/mu + mu/2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from tacita.privacy import inputs
from tacita.privacy.accounting.renyi import order_above_one

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)
# Root finding in relative precision: the absolute tolerance must never bind.
_TINY, _RELATIVE = 1e-300, 1e-14
# Beyond this mu the exact formula cancels; the tail bound is within 1e-4 there.
_HUGE = 1e5


def _mills(x: np.ndarray | float) -> np.ndarray:
    """The Mills ratio R(x) = (1 - Phi(x)) / phi(x)."""
    return math.sqrt(math.pi / 2) * special.erfcx(np.asarray(x) / math.sqrt(2))


def _mills_slope(x: np.ndarray) -> np.ndarray:
    """-R'(x) = 1 - x R(x), by its asymptotic series where that cancels."""
    near, far = np.minimum(x, 50.0), np.maximum(x, 50.0) ** -2.0
    series = far * (1 - 3 * far + 15 * far**2 - 105 * far**3)
    return np.where(x > 50.0, series, 1.0 - near * _mills(near))


def log_delta(epsilon: float, mu: float) -> float:
    """The logarithm of the smallest delta of a mu-Gaussian mechanism at epsilon."""
    low, high = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if mu < 0.5:
        # R(a) - R(b) = integral of -R' over [a, b]: nothing cancels.
        x = low + mu * (_NODES + 1) / 2
        difference = mu / 2 * float(np.dot(_WEIGHTS, _mills_slope(x)))
    elif low > 0.0:
        difference = float(_mills(low) - _mills(high))
    else:
        # R overflows far to the left; there delta is large and Phi is accurate.
        upper = float(special.log_ndtr(-low))
        lower = epsilon + float(special.log_ndtr(-high))
        return upper + math.log(-math.expm1(lower - upper))
    if difference <= 0.0:
        return -math.inf
    return -low * low / 2 - _LOG_ROOT_TWO_PI + math.log(difference)


def root(
    function: Callable[[float], float],
    low: float,
    high: float,
    *,
    xtol: float = _TINY,
) -> float:
    """Where a continuous function changes sign between `low` and `high`."""
    from scipy.optimize import brentq

    found: Any = brentq(function, low, high, xtol=xtol, rtol=np.float64(_RELATIVE))
    return float(found)


def epsilon_of_mu(mu: float, delta: float) -> float:
    """The smallest epsilon of a mu-Gaussian mechanism at delta (0 if it is free)."""
    target = math.log(delta)
    if mu == 0.0 or log_delta(0.0, mu) <= target:
        return 0.0
    # The tail bound of the Gaussian privacy loss brackets the root from above.
    above = mu * mu / 2 + mu * math.sqrt(-2 * target)
    if mu > _HUGE:
        return above

    def excess(epsilon: float) -> float:
        return log_delta(epsilon, mu) - target

    return root(excess, 0.0, above)


def mu_of_epsilon(epsilon: float, delta: float) -> float:
    """The largest mu whose Gaussian mechanism is (epsilon, delta)-private."""
    target = math.log(delta)
    tail = math.sqrt(-2 * target)
    # The tail bound again, solved for mu: private there, so the root lies above.
    below = 2 * epsilon / (tail + math.sqrt(tail * tail + 2 * epsilon))
    above = 2 * below
    while log_delta(epsilon, above) < target:
        above *= 2

    def excess(mu: float) -> float:
        return log_delta(epsilon, mu) - target

    return root(excess, below, above)


def gaussian_sigma(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    """The smallest noise that makes one Gaussian release (epsilon, delta)-private.

    Valid for every epsilon > 0, unlike the classical sqrt(2 ln(1.25/delta)) formula.

    Args:
        epsilon: The privacy loss to allow, > 0.
        delta: The probability of exceeding it, in (0, 1).
        sensitivity: The largest l2 change of the released vector between neighbours,
            under whichever neighbouring relation the guarantee is meant.

    Returns:
        The standard deviation of the noise per coordinate.

    >>> round(gaussian_sigma(1.0, 1e-5), 9)
    3.730631635
    """
    epsilon = inputs.positive(epsilon=epsilon)
    delta = inputs.inside_unit(delta=delta)
    sensitivity = inputs.positive(sensitivity=sensitivity)
    return sensitivity / mu_of_epsilon(epsilon, delta)


def gaussian_epsilon(sigma: float, delta: float, sensitivity: float = 1.0) -> float:
    """The exact epsilon at delta of one Gaussian release with noise sigma.

    >>> round(gaussian_epsilon(2.0, 1e-5), 9)
    1.993091404
    """
    sigma = inputs.positive(sigma=sigma)
    delta = inputs.inside_unit(delta=delta)
    sensitivity = inputs.positive(sensitivity=sensitivity)
    return epsilon_of_mu(sensitivity / sigma, delta)


def gaussian_delta(sigma: float, epsilon: float, sensitivity: float = 1.0) -> float:
    """The exact delta at epsilon (>= 0) of one Gaussian release with noise sigma."""
    sigma = inputs.positive(sigma=sigma)
    epsilon = inputs.not_negative(epsilon=epsilon)
    sensitivity = inputs.positive(sensitivity=sensitivity)
    return math.exp(log_delta(epsilon, sensitivity / sigma))


def classical_gaussian_sigma(
    epsilon: float, delta: float, sensitivity: float = 1.0
) -> float:
    """sqrt(2 ln(1.25/delta)) sensitivity / epsilon: for reproducing papers only.

    Proved for epsilon < 1. Above about 8 (at delta = 1e-4) it adds too little noise:
    the true epsilon exceeds the one asked for. Use `gaussian_sigma` to be private.
    """
    epsilon = inputs.positive(epsilon=epsilon)
    delta = inputs.inside_unit(delta=delta)
    sensitivity = inputs.positive(sensitivity=sensitivity)
    return math.sqrt(2 * math.log(1.25 / delta)) * sensitivity / epsilon


@dataclass(frozen=True)
class GaussianCurve:
    """A release as hard to tell from its neighbour as N(0, 1) from N(mu, 1)."""

    mu: float

    def __post_init__(self) -> None:
        inputs.not_negative(mu=self.mu)

    def epsilon(self, delta: float) -> float:
        """The exact epsilon at delta."""
        return epsilon_of_mu(self.mu, inputs.inside_unit(delta=delta))

    def delta(self, epsilon: float) -> float:
        """The exact delta at epsilon."""
        epsilon = inputs.not_negative(epsilon=epsilon)
        return math.exp(log_delta(epsilon, self.mu)) if self.mu else 0.0

    def rdp(self, order: float) -> float:
        """The Renyi divergence order * mu^2 / 2."""
        return order_above_one(order) * self.mu**2 / 2

    def repeat(self, times: int) -> GaussianCurve:
        """The curve of `times` independent releases."""
        return GaussianCurve(self.mu * math.sqrt(times))
