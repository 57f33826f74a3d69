"""The Gaussian mechanism, exactly: epsilon, delta and mu of each other.

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
from typing import Any

import numpy as np
from scipy import special

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
