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
from typing import Any, Protocol

import numpy as np

from tacita.privacy import inputs
from tacita.privacy.accounting import profiles
from tacita.privacy.accounting.renyi import ORDERS, RenyiCurve
from tacita.privacy.accounting.subsampling import (
    Poisson,
    Sampling,
    WithReplacement,
    sampled_rdp,
)

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
    def _mu(self) -> float:
        # Draws with replacement hold a record twice often enough to reckon with it.
        twice = isinstance(self.sampling, WithReplacement) and self.sampling.draws > 1
        return (2 if twice else 1) / self.multiplier

    def loss(self, step: float) -> Any:
        """By the library for Poisson batches, else by the profile."""
        if isinstance(self.sampling, Poisson):
            return gaussian_loss(1 / self.multiplier, step, self.sampling.rate)
        profile = profiles.batch_profile(self.multiplier, self.sampling)
        return profiles.distribution(profile, step)

    def renyi(self) -> RenyiCurve | None:
        """By the library, which does not know draws with replacement."""
        if isinstance(self.sampling, WithReplacement):
            return None
        return RenyiCurve(sampled_rdp(self.multiplier, self.sampling))


@dataclass(frozen=True)
class Laplace:
    """Laplace noise; `epsilon` is the l1 sensitivity over its scale."""

    epsilon: float

    def __post_init__(self) -> None:
        inputs.positive(epsilon=self.epsilon)

    @property
    def spread(self) -> float:
        """Most losses lie at either end."""
        return self.epsilon

    @property
    def reach(self) -> float:
        """That is all."""
        return self.epsilon

    @property
    def pure(self) -> float:
        """Pure privacy."""
        return self.epsilon

    def loss(self, step: float) -> Any:
        """By the library."""
        from dp_accounting.pld import privacy_loss_distribution as pld

        return pld.from_laplace_mechanism(
            1 / self.epsilon, value_discretization_interval=step
        )

    def renyi(self) -> RenyiCurve:
        """Mironov 2017, Proposition 6."""
        order, loss = np.asarray(ORDERS), self.epsilon
        # eps + log(1 + (a-1)(e^{(1-2a) eps} - 1)/(2a-1)) / (a-1)
        shrink = (order - 1) * np.expm1((1 - 2 * order) * loss) / (2 * order - 1)
        values = np.clip(loss + np.log1p(shrink) / (order - 1), 0.0, loss)
        return RenyiCurve(tuple(values.tolist()), pure=loss)


@dataclass(frozen=True)
class RandomisedResponse:
    """One of `classes` labels, true with e^epsilon times another one's probability."""

    epsilon: float
    classes: int

    def __post_init__(self) -> None:
        inputs.positive(epsilon=self.epsilon)
        inputs.whole(2, classes=self.classes)

    @property
    def spread(self) -> float:
        """Most losses lie at either end, or at 0."""
        return self.epsilon

    @property
    def reach(self) -> float:
        """That is all."""
        return self.epsilon

    @property
    def pure(self) -> float:
        """Pure privacy."""
        return self.epsilon

    def loss(self, step: float) -> Any:
        """By the profile p - e^eps q = p (1 - e^{eps - epsilon}), p the true label's.

        The library rounds these losses up, which adds up over many labels.
        """
        keep = 1 / (1 + (self.classes - 1) * math.exp(-self.epsilon))

        def profile(epsilon: np.ndarray) -> np.ndarray:
            return -keep * np.expm1(np.minimum(epsilon - self.epsilon, 0.0))

        return profiles.distribution(profile, step)

    def renyi(self) -> RenyiCurve:
        """Between the answers to two labels: keep p = e^eps q, every other q."""
        order, epsilon = np.asarray(ORDERS), self.epsilon
        other = -np.logaddexp(epsilon, math.log(self.classes - 1))
        either = np.logaddexp(order * epsilon, (1 - order) * epsilon)
        rest = math.log(self.classes - 2) if self.classes > 2 else -math.inf
        moments = other + np.logaddexp(either, rest)
        values = np.clip(moments / (order - 1), 0.0, epsilon)
        return RenyiCurve(tuple(values.tolist()), pure=epsilon)


def gaussian_reach(mu: float) -> float:
    """Nearly the largest loss of N(mu, 1) against N(0, 1)."""
    return mu * mu / 2 + NORMAL_REACH * mu


@lru_cache(maxsize=128)
def gaussian_loss(mu: float, step: float, rate: float = 1.0) -> Any:
    """The loss distribution of Gaussian noise, on all records or on a Poisson batch."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    return pld.from_gaussian_mechanism(
        1 / mu, value_discretization_interval=step, sampling_prob=rate
    )


@lru_cache(maxsize=128)
def loss_of(release: Release, step: float) -> Any:
    """The loss distribution of one release; those of many rounds start from it."""
    return release.loss(step)
