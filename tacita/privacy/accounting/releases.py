"""Releases that are not plainly Gaussian: each by the few numbers that describe it.

A release knows its dominating pair: two distributions no easier to tell apart than
what it shows of two neighbours. From the pair follow a privacy loss distribution
(`loss`, the tight one) and, where they are known, Renyi divergences (`renyi`). The
numbers are all that a ledger stores: whoever reads them can do the sums again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, TypeAlias

import numpy as np

from tacita.privacy import inputs
from tacita.privacy.accounting import profiles
from tacita.privacy.accounting.renyi import RenyiCurve
from tacita.privacy.accounting.subsampling import (
    Poisson,
    PoissonReplaced,
    Sampling,
    WithReplacement,
    sampled_rdp,
)

Counted: TypeAlias = "tuple[tuple[Release, int], ...]"

#: Of very many levels of noise, between how many (in logarithms) one stands for all.
_LEVEL = math.log(2) / 32
#: How often a release is convolved with itself in one go.
_AT_ONCE = 10_000
#: Standard deviations after which less than 1e-15 of a normal distribution is left.
NORMAL_REACH = 8.0


class Release(Protocol):
    """What composition asks of a release."""

    @property
    def spread(self) -> float:
        """Roughly the standard deviation of its privacy loss: for the grid only."""
        ...

    @property
    def reach(self) -> float:
        """Roughly its largest loss: for the grid only."""
        ...

    @property
    def pure(self) -> float:
        """A loss that is never passed; infinite where there is none."""
        ...

    @property
    def kind(self) -> Any:
        """All but its noise."""
        ...

    @property
    def level(self) -> float:
        """Of its noise: of releases of one kind a higher one tells less."""
        ...

    def at(self, level: float) -> Release:
        """A release of the same kind with another noise."""
        ...

    def loss(self, step: float) -> Any:
        """Its loss distribution on multiples of `step`, never too small."""
        ...

    def renyi(self) -> RenyiCurve | None:
        """Bounds on its Renyi divergences; None where none are known."""
        ...


@dataclass(frozen=True)
class SampledGaussian:
    """Gaussian noise on a batch of records.

    Attributes:
        multiplier: The noise over the change by the record that differs.
        sampling: How batches are drawn.
    """

    multiplier: float
    sampling: Sampling

    def __post_init__(self) -> None:
        inputs.positive(multiplier=self.multiplier)

    @property
    def spread(self) -> float:
        """Of many small losses q sqrt(e^{mu^2} - 1), of few large ones sqrt(q) mu."""
        mu, rate = self._mu, self.sampling.rate
        small = rate * math.sqrt(math.expm1(min(mu * mu, 600.0)))
        if isinstance(self.sampling, PoissonReplaced):
            # Two records, each half the change away from none.
            small = 2 * rate * math.sqrt(math.sinh(min(mu * mu / 4, 600.0)))
        return min(small, math.sqrt(rate) * mu)

    @property
    def reach(self) -> float:
        """log(1 + q (e^loss - 1)) of the largest loss without sampling."""
        largest = gaussian_reach(self._mu)
        return float(np.logaddexp(0.0, math.log(self.sampling.rate) + largest))

    @property
    def pure(self) -> float:
        """Noise of any size may occur."""
        return math.inf

    @property
    def kind(self) -> Sampling:
        """How batches are drawn."""
        return self.sampling

    @property
    def level(self) -> float:
        """The multiplier."""
        return self.multiplier

    def at(self, level: float) -> SampledGaussian:
        """The same batches."""
        return SampledGaussian(level, self.sampling)

    @property
    def _mu(self) -> float:
        # Draws with replacement hold a record twice often enough to reckon with it.
        twice = isinstance(self.sampling, WithReplacement) and self.sampling.draws > 1
        return (2 if twice else 1) / self.multiplier

    def loss(self, step: float) -> Any:
        """By its privacy profile."""
        if isinstance(self.sampling, Poisson):
            return profiles.poisson(1 / self.multiplier, self.sampling.rate, step)
        if isinstance(self.sampling, PoissonReplaced):
            own = profiles.replaced_profile(1 / self.multiplier, self.sampling.rate)
            return profiles.distribution(own, step)
        profile = profiles.batch_profile(self.multiplier, self.sampling)
        return profiles.distribution(profile, step)

    def renyi(self) -> RenyiCurve | None:
        """By the library, where it knows the draws."""
        if isinstance(self.sampling, WithReplacement):
            return None
        if isinstance(self.sampling, PoissonReplaced):
            # No tighter than if the batch were seen.
            seen = RenyiCurve.linear(self._mu**2 / 2)
            return seen.with_chance(self.sampling.rate)
        return RenyiCurve(sampled_rdp(self.multiplier, self.sampling))


def gaussian_reach(mu: float) -> float:
    """Nearly the largest loss of N(mu, 1) against N(0, 1)."""
    return mu * mu / 2 + NORMAL_REACH * mu


@lru_cache(maxsize=128)
def gaussian_loss(mu: float, step: float) -> Any:
    """The loss distribution of Gaussian noise on all records, by the library."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    return pld.from_gaussian_mechanism(1 / mu, value_discretization_interval=step)


@lru_cache(maxsize=256)
def loss_of(release: Release, step: float, times: int = 1) -> Any:
    """The loss distribution of a release made so many times."""
    if times == 1:
        return release.loss(step)
    if times > _AT_ONCE:
        # The library computes points^times, which has millions of digits otherwise.
        many, left = divmod(times, _AT_ONCE)
        most = loss_of(release, step, _AT_ONCE).self_compose(many)
        return most.compose(loss_of(release, step, left)) if left else most
    return loss_of(release, step).self_compose(times)


def levelled(releases: Counted, most: int = 256) -> Counted:
    """The same releases, of each kind with not very many levels of noise.

    Where there are more, each is rounded down to a step above the lowest: never too
    small, and quicker to convolve.
    """
    kinds: dict[Any, list[tuple[Release, int]]] = {}
    for one in releases:
        kinds.setdefault(one[0].kind, []).append(one)
    found: list[tuple[Release, int]] = []
    for many in kinds.values():
        if len(many) <= most:
            found += many
            continue
        levels, counts = zip(*((one.level, count) for one, count in many), strict=True)
        lowest = min(levels)
        steps = np.floor(np.log(np.divide(levels, lowest)) / _LEVEL)
        for step in np.unique(steps):
            same = many[0][0].at(lowest * math.exp(step * _LEVEL) * (1 - 1e-12))
            found.append((same, int(np.dot(counts, steps == step))))
    return tuple(found)
