"""Renyi divergences: upper bounds at a fixed grid of orders, which compose by adding.

`dp_accounting` takes a second to import, so it is imported when a number is first
asked for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacita import check
from tacita.privacy import inputs

# One grid for every Renyi curve, so that curves (and ledger rows) add up entry by
# entry. Fractions serve large epsilon, the high orders small epsilon.
ORDERS: tuple[float, ...] = (
    *(1 + tenth / 10 for tenth in range(1, 100)),
    *(float(order) for order in range(11, 65)),
    *(float(order) for order in (72, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384)),
    *(float(order) for order in (512, 768, 1024, 2048, 4096, 8192)),
)


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

        delta = inputs.below_one(delta=delta)
        if delta == 0:
            return self.pure
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
        order = order_above_one(order)
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

    def with_chance(self, chance: float) -> RenyiCurve:
        """Of a release that is made with a probability, and is seen to be made or not.

        The moments e^{(order - 1) D_order} are mixed with those of no release, 1.
        """
        exponents = (np.asarray(ORDERS) - 1) * self.totals()
        values = _mixed_with_one(exponents, chance) / (np.asarray(ORDERS) - 1)
        return RenyiCurve(tuple(values.tolist()), pure=self.pure)


def _mixed_with_one(exponents: np.ndarray, chance: float) -> np.ndarray:
    """log(1 - p + p e^x) of x >= 0, with all digits of small ones: they add up."""
    small = np.log1p(chance * np.expm1(np.minimum(exponents, 1.0)))
    with np.errstate(divide="ignore"):
        large = np.logaddexp(np.log1p(-chance), np.log(chance) + exponents)
    return np.where(exponents < 1.0, small, np.maximum(large, 0.0))


def order_above_one(order: float) -> float:
    """Refuse what is no order of a Renyi divergence."""
    order = inputs.positive(order=order)
    if order <= 1.0:
        check.refuse(f"expected order > 1, got order={order}")
    return order
