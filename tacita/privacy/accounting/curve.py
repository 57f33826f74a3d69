"""Privacy curves: three exact or upper-bounding descriptions of one privacy loss.

* `GaussianCurve`: mu-GDP (Dong, Roth and Su, *Gaussian Differential Privacy*, 2022),
  exact for Gaussian releases, composes as mu^2 = mu_1^2 + mu_2^2.
* `RenyiCurve`: Renyi divergences at a fixed grid of orders, compose by adding.
* `LossCurve`: releases and how often each was made, with their privacy loss
  distributions convolved when a number is asked for; tightest for sampled releases.

Any two compose. All answer `epsilon(delta)`, `delta(epsilon)` and `rdp(order)` (the
last one is infinite where a description does not know it). At delta = 0 epsilon is that
of pure privacy, infinite for Gaussian releases.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, reduce
from typing import Any

import numpy as np

from tacita import check
from tacita.privacy import inputs
from tacita.privacy.accounting import profiles
from tacita.privacy.accounting.gaussian import GaussianCurve
from tacita.privacy.accounting.releases import (
    NORMAL_REACH,
    Counted,
    gaussian_loss,
    gaussian_reach,
    levelled,
    loss_of,
)
from tacita.privacy.accounting.renyi import ORDERS, RenyiCurve, order_above_one

#: Step of the grid of losses over the spread of one release: rounding to it adds less
#: than a thousandth to the total spread.
_FINENESS = 1 / 16
#: Points of the grid up to the largest loss; fewer are only looser.
_FEWEST_POINTS, _MOST_POINTS = 2**11, 2**16
#: Losses beyond this are left to Renyi divergences.
_WIDEST = 500.0
#: What Fourier transforms may lose of a probability.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class LossCurve:
    """Releases whose privacy loss distributions are convolved.

    Attributes:
        releases: What was released, and how often.
        mu: That of all Gaussian releases among them.
        rest: Those of which Renyi divergences are all that is known.
    """

    releases: Counted
    mu: float = 0.0
    rest: RenyiCurve | None = None

    def epsilon(self, delta: float) -> float:
        """The smallest epsilon at delta, up to the grid's rounding up."""
        delta = inputs.below_one(delta=delta)
        if delta == 0:
            return self.pure
        found = math.inf
        if delta > 2 * _ROUNDING and self.reach < _WIDEST:
            found = self._distribution.get_epsilon_for_delta(delta - _ROUNDING)
        found = min(float(found), self.pure)
        bounds = None if math.isfinite(found) else renyi_bounds(self)
        return found if bounds is None else bounds.epsilon(delta)

    def delta(self, epsilon: float) -> float:
        """The smallest delta at epsilon, up to the grid's rounding up."""
        epsilon = inputs.not_negative(epsilon=epsilon)
        if epsilon >= self.pure:
            return 0.0
        if self.reach < _WIDEST:
            found = float(self._distribution.get_delta_for_epsilon(epsilon))
            return min(max(found, 0.0) + _ROUNDING, 1.0)
        bounds = renyi_bounds(self)
        return 1.0 if bounds is None else bounds.delta(epsilon)

    def rdp(self, order: float) -> float:
        """What is known of the Renyi divergence of this order."""
        order, bounds = order_above_one(order), renyi_bounds(self)
        return math.inf if bounds is None else bounds.rdp(order)

    def repeat(self, times: int) -> LossCurve:
        """The curve of `times` independent releases."""
        releases = tuple((one, times * count) for one, count in self.releases)
        rest = self.rest and self.rest.repeat(times)
        return LossCurve(releases, self.mu * math.sqrt(times), rest)

    @property
    def spread(self) -> float:
        """Roughly the standard deviation of the whole loss."""
        return math.hypot(*(math.sqrt(n) * spread for spread, _, n in self._sizes()))

    @property
    def reach(self) -> float:
        """Roughly its largest loss."""
        normal = self.spread**2 / 2 + NORMAL_REACH * self.spread
        return max(normal, *(reach for _, reach, _ in self._sizes()))

    @property
    def pure(self) -> float:
        """A loss that is never passed; infinite where there is none."""
        rest = 0.0 if self.rest is None else self.rest.pure
        parts = sum((count * one.pure for one, count in self.releases), rest)
        return math.inf if self.mu else parts

    def loss(self, step: float) -> Any:
        """The loss distribution on multiples of `step`."""
        some = levelled(self.releases)
        parts = [loss_of(one, step, count) for one, count in some]
        if self.mu:
            parts.append(gaussian_loss(self.mu, step))
        if self.rest is not None:
            parts.append(profiles.enveloped(profiles.renyi_profile(self.rest), step))
        return reduce(lambda one, other: one.compose(other), parts)

    def renyi(self) -> RenyiCurve | None:
        """Bounds on the Renyi divergences; None where some are not known."""
        known = [(one.renyi(), count) for one, count in levelled(self.releases)]
        if any(one is None for one, _ in known):
            return None
        parts = [one.repeat(count) for one, count in known if one is not None]
        parts += [RenyiCurve.linear(self.mu**2 / 2)] if self.mu else []
        parts += [] if self.rest is None else [self.rest]
        return reduce(_add, parts)

    @property
    def _distribution(self) -> Any:
        many = sum(count for _, _, count in self._sizes())
        smooth = _FINENESS * self.spread / math.sqrt(many)
        # Powers of two, so that the same releases meet on the same grid again.
        points = min(max(self.reach / smooth, _FEWEST_POINTS), _MOST_POINTS)
        return _convolved(self, 2.0 ** math.floor(math.log2(self.reach / points)))

    def _sizes(self) -> Iterator[tuple[float, float, int]]:
        """Spread, reach and number of everything that is convolved."""
        for one, count in self.releases:
            yield one.spread, one.reach, count
        if self.mu:
            yield self.mu, gaussian_reach(self.mu), 1
        if self.rest is not None:
            # As much as the Gaussian release of the same divergence.
            mu = math.sqrt(2 * float(self.rest.totals()[0]) / ORDERS[0])
            yield mu, profiles.reach(profiles.renyi_profile(self.rest)), 1


@lru_cache(maxsize=32)
def _convolved(curve: LossCurve, step: float) -> Any:
    # Where a tail is all but empty the library finds no bound on it, and uses none.
    with np.errstate(over="ignore"):
        return curve.loss(step)


@lru_cache(maxsize=512)
def renyi_bounds(curve: LossCurve) -> RenyiCurve | None:
    """Bounds on Renyi divergences, which take long to compute."""
    return curve.renyi()


@dataclass(frozen=True)
class TookPart:
    """A round that happens with probability `chance`, and is seen to happen or not."""

    round: LossCurve
    chance: float

    def __post_init__(self) -> None:
        inputs.fraction(chance=self.chance)

    @property
    def spread(self) -> float:
        """Nothing is lost in a silent round."""
        return math.sqrt(self.chance) * self.round.spread

    @property
    def reach(self) -> float:
        """That of the round."""
        return self.round.reach

    @property
    def pure(self) -> float:
        """That of the round."""
        return self.round.pure

    @property
    def kind(self) -> Any:
        """All but the noise of the round, where that is one number."""
        releases, mu, rest = self.round.releases, self.round.mu, self.round.rest
        if mu and not (releases or rest):
            return self.chance, None
        if len(releases) != 1 or mu or rest:
            return self
        ((one, count),) = releases
        return self.chance, one.kind, count

    @property
    def level(self) -> float:
        """That of the one release in the round, or of its Gaussian noise."""
        if self.kind is self:
            return 1.0
        return 1 / self.round.mu if self.round.mu else self.round.releases[0][0].level

    def at(self, level: float) -> TookPart:
        """The same round with another noise."""
        if self.kind is self:
            return self
        if self.round.mu:
            return TookPart(LossCurve((), 1 / level), self.chance)
        ((one, count),) = self.round.releases
        return TookPart(LossCurve(((one.at(level), count),)), self.chance)

    def loss(self, step: float) -> Any:
        """Exactly: the loss is 0 in a silent round that is seen."""
        from dp_accounting.pld import privacy_loss_distribution as pld

        silent = pld.identity(value_discretization_interval=step)
        return self.round.loss(step).compute_mixture(silent, self.chance)

    def renyi(self) -> RenyiCurve | None:
        """The mixture of the moments."""
        bounds = renyi_bounds(self.round)
        return None if bounds is None else bounds.with_chance(self.chance)


Curve = GaussianCurve | RenyiCurve | LossCurve


def renyi(curve: Curve) -> RenyiCurve:
    """The same privacy loss as Renyi divergences, where these are known."""
    if isinstance(curve, GaussianCurve):
        return RenyiCurve.linear(curve.mu**2 / 2)
    if isinstance(curve, RenyiCurve):
        return curve
    bounds = renyi_bounds(curve)
    if bounds is None:
        check.refuse(
            "no Renyi divergences are known of batches drawn with replacement; use "
            "method='pld'"
        )
    return bounds


def _loss_curve(curve: Curve) -> LossCurve:
    if isinstance(curve, GaussianCurve):
        return LossCurve((), curve.mu)
    return LossCurve((), rest=curve) if isinstance(curve, RenyiCurve) else curve


def compose(*curves: Curve) -> Curve:
    """The curve of releases on the same data, each chosen when those before are known.

    Gaussian releases stay exact, and of Renyi divergences nothing more is known. All
    else is convolved; there Renyi divergences count as the worst pair that has them.

    >>> compose(GaussianCurve(3.0), GaussianCurve(4.0))
    GaussianCurve(mu=5.0)
    """
    told = [one for one in curves if one != GaussianCurve(0.0)]
    if len(told) == 1:
        return told[0]
    gaussian = [one.mu for one in told if isinstance(one, GaussianCurve)]
    if len(gaussian) == len(told):
        return GaussianCurve(math.hypot(*gaussian))
    if not any(isinstance(one, LossCurve) for one in told):
        return reduce(_add, map(renyi, told))
    parts, releases = [_loss_curve(one) for one in told], Counter()
    for release, count in (pair for one in parts for pair in one.releases):
        releases[release] += count
    known = [one.rest for one in parts if one.rest is not None]
    rest = reduce(_add, known) if known else None
    mu = math.hypot(*(one.mu for one in parts))
    return LossCurve(tuple(releases.items()), mu, rest)


def _add(one: RenyiCurve, other: RenyiCurve) -> RenyiCurve:
    values = tuple(a + b for a, b in zip(one.values, other.values, strict=True))
    return RenyiCurve(values, one.slope + other.slope, one.pure + other.pure)


def take_part(curve: Curve, participation: float) -> Curve:
    """One round that happens with probability p, and is seen to happen or not.

    The joint law of (took part, release) has the Renyi divergence
        log(1 - p + p e^{(alpha - 1) r_alpha}) / (alpha - 1).
    The expectation belongs outside the exponential: p r_alpha is *not* a bound. Its
    loss distribution is the mixture of the release's with a loss of 0.
    """
    participation = inputs.fraction(participation=participation)
    if participation == 1.0 or curve == GaussianCurve(0.0):
        return curve
    if isinstance(curve, RenyiCurve):
        return curve.with_chance(participation)
    return LossCurve(((TookPart(_loss_curve(curve), participation), 1),))
