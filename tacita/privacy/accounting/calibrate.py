"""The inverse questions: which noise, how many rounds, for this budget.

`calibrate_noise` and `affordable_rounds` invert any function that builds a
`Guarantee`; `noise_for`, `rounds_for` and `epsilon_for` ask them of `account`.
A returned noise never exceeds the budget: rounding goes towards more noise.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from typing import Any

from tacita import check
from tacita.privacy import inputs
from tacita.privacy.accounting.compose import account
from tacita.privacy.accounting.guarantee import Guarantee
from tacita.theory.gaussian import root

# What a bare calibration is asked about; any observer gives the same number.
_ANYBODY = {"observer": "coordinator", "unit": "record"}


def calibrate_noise(
    build: Callable[[float], Guarantee],
    *,
    epsilon: float,
    delta: float,
    tolerance: float = 1e-6,
) -> float:
    """The smallest noise (to `tolerance`, relative) that stays within the budget.

    Args:
        build: From a noise level to the guarantee of the whole run; epsilon must
            fall as the noise grows.
        epsilon: The budget.
        delta: The probability of exceeding it.
        tolerance: How much more noise than needed may be returned, relatively; a few
            times 1e-4 where loss distributions are on a grid.

    >>> from tacita.privacy import fed_plt
    >>> noise = calibrate_noise(lambda tau: fed_plt(
    ...     observer="coordinator", strong_convexity=0.5, smoothness=2.0, rho=1.0,
    ...     step_size=0.25, local_steps=5, noise_std=tau, lipschitz=1.0, samples=100,
    ...     rounds=100), epsilon=1.0, delta=1e-5)
    >>> round(noise, 4)
    0.2495
    """
    epsilon = inputs.positive(epsilon=epsilon)
    delta = inputs.inside_unit(delta=delta)
    tolerance = inputs.positive(tolerance=tolerance)

    def excess(log_noise: float) -> float:
        spent = build(math.exp(log_noise)).epsilon(delta)
        return math.log(min(max(spent, 1e-300), 1e300) / epsilon)

    low, high = 0.0, 0.0
    while excess(high) > 0.0:
        low, high = high, high + 1.0
        if high > 80.0:
            check.refuse(f"no noise reaches epsilon={epsilon} at delta={delta}")
    while excess(low) <= 0.0:
        low, high = low - 1.0, low
        if low < -80.0:
            check.refuse(f"epsilon={epsilon} at delta={delta} needs no noise at all")
    noise, more = math.exp(root(excess, low, high, xtol=tolerance / 4)), tolerance / 2
    # Where a loss distribution changes its grid epsilon jumps a little.
    while build(noise).epsilon(delta) > epsilon:
        noise, more = noise * (1 + more), 2 * more
    return noise


def affordable_rounds(
    build: Callable[[int], Guarantee],
    *,
    epsilon: float,
    delta: float,
    at_most: int = 10_000_000,
) -> int:
    """The largest number of rounds within the budget; 0 if not even one is.

    Args:
        build: From a number of rounds to the guarantee of that run.
        epsilon: The budget.
        delta: The probability of exceeding it.
        at_most: Where to stop asking; returned if the budget is never reached.
    """
    epsilon = inputs.positive(epsilon=epsilon)
    delta = inputs.inside_unit(delta=delta)
    at_most = inputs.whole(at_most=at_most)

    def fits(rounds: int) -> bool:
        return build(rounds).epsilon(delta) <= epsilon

    low, high = 0, 1
    while fits(high):
        low = high
        if high == at_most:
            return at_most
        high = min(2 * high, at_most)
    within = range(low, high)
    return low + bisect_left(within, True, lo=1, key=lambda k: not fits(k)) - 1


def noise_for(
    *, epsilon: float, delta: float, tolerance: float = 1e-6, **releases: Any
) -> float:
    """Which noise for this budget; `releases` as in `account`, without `noise_std`.

    >>> round(noise_for(epsilon=1.0, delta=1e-5, relation="replace_one",
    ...                 sensitivity=1.0, rounds=100), 3)
    37.306
    """

    def build(noise_std: float) -> Guarantee:
        return account(noise_std=noise_std, **{**_ANYBODY, **releases})

    return calibrate_noise(build, epsilon=epsilon, delta=delta, tolerance=tolerance)


def rounds_for(
    *, epsilon: float, delta: float, at_most: int = 10_000_000, **releases: Any
) -> int:
    """How many rounds for this budget; `releases` as in `account`, without `rounds`.

    >>> rounds_for(epsilon=1.0, delta=1e-5, relation="replace_one", sensitivity=1.0,
    ...            noise_std=37.307)
    100
    """

    def build(rounds: int) -> Guarantee:
        return account(rounds=rounds, **{**_ANYBODY, **releases})

    return affordable_rounds(build, epsilon=epsilon, delta=delta, at_most=at_most)


def epsilon_for(*, delta: float, **releases: Any) -> float:
    """Which epsilon for this noise; `releases` as in `account`."""
    return account(**{**_ANYBODY, **releases}).epsilon(delta)
