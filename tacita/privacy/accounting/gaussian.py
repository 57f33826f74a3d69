"""The Gaussian mechanism: sigma, epsilon and delta of each other, and its curve.

The numbers are exact: `tacita.theory.gaussian`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tacita.privacy import inputs
from tacita.privacy.accounting.renyi import order_above_one
from tacita.theory.gaussian import epsilon_of_mu, log_delta, mu_of_epsilon


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
        """The exact epsilon at delta; infinite at 0, unless nothing was released."""
        delta = inputs.below_one(delta=delta)
        if delta == 0:
            return math.inf if self.mu else 0.0
        return epsilon_of_mu(self.mu, delta)

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
