"""Privacy curves: three exact or upper-bounding descriptions of one privacy loss.

* `GaussianCurve`: mu-GDP (Dong, Roth and Su, *Gaussian Differential Privacy*, 2022),
  exact for Gaussian releases, composes as mu^2 = mu_1^2 + mu_2^2.
* `RenyiCurve`: Renyi divergences at a fixed grid of orders, compose by adding.
* `LossCurve`: a discretised privacy loss distribution, tightest for sampled releases.

All answer `epsilon(delta)`, `delta(epsilon)` and `rdp(order)` (the last one is
infinite where a description does not know it). `dp_accounting` takes a second to
import, so it is imported when a number is first asked for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacita import check
from tacita.privacy import inputs
from tacita.privacy.accounting.gaussian import epsilon_of_mu, log_delta

# One grid for every Renyi curve, so that curves (and ledger rows) add up entry by
# entry. Fractions serve large epsilon, the high orders small epsilon.
ORDERS: tuple[float, ...] = (
    *(1 + tenth / 10 for tenth in range(1, 100)),
    *(float(order) for order in range(11, 65)),
    *(float(order) for order in (72, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384)),
    *(float(order) for order in (512, 768, 1024, 2048, 4096, 8192)),
)


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
        return _order(order) * self.mu**2 / 2

    def repeat(self, times: int) -> GaussianCurve:
        """The curve of `times` independent releases."""
        return GaussianCurve(self.mu * math.sqrt(times))


@dataclass(frozen=True)
class RenyiCurve:
    """Upper bounds on Renyi divergences.

    Attributes:
        values: A bound per entry of `ORDERS`, beside the linear part.
        slope: The linear part, slope * order, known at every order (Gaussian noise).
        pure: A bound at order infinity: pure epsilon-privacy, where there is one.
    """

    values: tuple[float, ...]
    slope: float = 0.0
    pure: float = math.inf

    def __post_init__(self) -> None:
        array = np.asarray(self.values, dtype=float)
        if array.shape != (len(ORDERS),):
            check.refuse(
                f"expected values of length {len(ORDERS)} (one per entry of "
                f"tacita.privacy.accounting.curve.ORDERS), got shape {array.shape}"
            )
        # A negative or missing divergence would be taken for perfect privacy.
        for bound in (*self.values, self.slope, self.pure):
            if not bound >= 0.0:
                check.refuse(f"expected Renyi divergences >= 0, got {bound}")

    @classmethod
    def linear(cls, slope: float) -> RenyiCurve:
        """The curve slope * order, known at every order (zero-concentrated)."""
        return cls((0.0,) * len(ORDERS), slope)

    def totals(self) -> np.ndarray:
        """The divergence at every entry of `ORDERS`."""
        total = np.asarray(self.values) + self.slope * np.asarray(ORDERS)
        return np.minimum(total, self.pure)

    def epsilon(self, delta: float) -> float:
        """The best epsilon at delta over the orders (`dp_accounting`'s conversion)."""
        from dp_accounting.rdp.rdp_privacy_accountant import compute_epsilon

        delta = inputs.inside_unit(delta=delta)
        best, _ = compute_epsilon(ORDERS, self.totals().tolist(), delta)
        return min(float(best), self.pure)

    def delta(self, epsilon: float) -> float:
        """The best delta at epsilon over the orders."""
        from dp_accounting.rdp.rdp_privacy_accountant import compute_delta

        epsilon = inputs.not_negative(epsilon=epsilon)
        if epsilon >= self.pure:
            return 0.0
        return float(compute_delta(ORDERS, self.totals().tolist(), epsilon)[0])

    def rdp(self, order: float) -> float:
        """An upper bound at any order, exact at the entries of `ORDERS`.

        (order - 1) D_order is convex in the order and 0 at order 1, so the chord
        between two bounds is a bound (Wang, Balle, Kasiviswanathan 2019, Cor. 10).
        """
        order = _order(order)
        grid = np.array((1.0, *ORDERS))
        bounds = np.array((0.0, *self.values))
        if not any(self.values):
            rest = 0.0
        elif order > ORDERS[-1]:
            rest = math.inf
        elif np.isfinite(bounds).all():
            rest = float(np.interp(order, grid, bounds * (grid - 1))) / (order - 1)
        else:
            # No chord passes through an infinite bound; divergences grow with order.
            rest = float(bounds[np.searchsorted(grid, order)])
        return min(self.slope * order + rest, self.pure)

    def repeat(self, times: int) -> RenyiCurve:
        """The curve of `times` independent releases."""
        values = tuple(times * value for value in self.values)
        return RenyiCurve(values, times * self.slope, times * self.pure)


@dataclass(frozen=True, eq=False)
class LossCurve:
    """A privacy loss distribution of `dp_accounting` (pessimistic estimate)."""

    distribution: Any

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon at delta."""
        delta = inputs.inside_unit(delta=delta)
        return float(self.distribution.get_epsilon_for_delta(delta))

    def delta(self, epsilon: float) -> float:
        """The smallest delta at epsilon."""
        epsilon = inputs.not_negative(epsilon=epsilon)
        return float(self.distribution.get_delta_for_epsilon(epsilon))

    def rdp(self, order: float) -> float:
        """Unknown: a truncated loss distribution bounds no Renyi divergence."""
        _order(order)
        return math.inf

    def repeat(self, times: int) -> LossCurve:
        """The curve of `times` independent releases."""
        return LossCurve(self.distribution.self_compose(times))


Curve = GaussianCurve | RenyiCurve | LossCurve


def _order(order: float) -> float:
    order = inputs.positive(order=order)
    if order <= 1.0:
        check.refuse(f"expected order > 1, got order={order}")
    return order


def renyi(curve: Curve) -> RenyiCurve:
    """The same privacy loss as Renyi divergences, where that is known."""
    if isinstance(curve, GaussianCurve):
        return RenyiCurve.linear(curve.mu**2 / 2)
    if isinstance(curve, RenyiCurve):
        return curve
    check.refuse(
        "a privacy loss distribution has no Renyi curve; account with method='rdp' "
        "where the release is added to others or written to a ledger"
    )


def _loss(curve: Curve) -> LossCurve:
    if isinstance(curve, LossCurve):
        return curve
    if isinstance(curve, GaussianCurve):
        from dp_accounting.pld import privacy_loss_distribution

        make = privacy_loss_distribution.from_gaussian_mechanism
        return LossCurve(make(standard_deviation=1 / curve.mu))
    check.refuse(
        "a Renyi curve and a privacy loss distribution cannot be composed; account "
        "both with method='rdp'"
    )


def compose(first: Curve, second: Curve) -> Curve:
    """The curve of two releases on the same data, the second chosen adaptively.

    >>> compose(GaussianCurve(3.0), GaussianCurve(4.0))
    GaussianCurve(mu=5.0)
    """
    if isinstance(first, GaussianCurve) and isinstance(second, GaussianCurve):
        return GaussianCurve(math.hypot(first.mu, second.mu))
    if isinstance(first, LossCurve) or isinstance(second, LossCurve):
        for one, other in ((first, second), (second, first)):
            if one == GaussianCurve(0.0):
                return other
        return LossCurve(_loss(first).distribution.compose(_loss(second).distribution))
    one, other = renyi(first), renyi(second)
    values = tuple(a + b for a, b in zip(one.values, other.values, strict=True))
    return RenyiCurve(values, one.slope + other.slope, one.pure + other.pure)


def take_part(curve: Curve, participation: float) -> Curve:
    """One round that happens with probability p, and is seen to happen or not.

    The joint law of (took part, release) has the Renyi divergence
        log(1 - p + p e^{(alpha - 1) r_alpha}) / (alpha - 1).
    The expectation belongs outside the exponential: p r_alpha is *not* a bound.
    """
    participation = inputs.fraction(participation=participation)
    if participation == 1.0:
        return curve
    if isinstance(curve, LossCurve):
        from dp_accounting.pld import privacy_loss_distribution as pld

        # Exactly: the loss is 0 in a silent round that is seen.
        mixed = curve.distribution.compute_mixture(pld.identity(), participation)
        return LossCurve(mixed)
    bounds, orders = renyi(curve), np.asarray(ORDERS)
    active = np.log(participation) + (orders - 1) * bounds.totals()
    moments = np.logaddexp(np.log1p(-participation), active)
    values = tuple((np.maximum(moments, 0.0) / (orders - 1)).tolist())
    return RenyiCurve(values, pure=bounds.pure)
