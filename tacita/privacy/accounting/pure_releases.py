"""Releases whose privacy loss never passes an epsilon: Laplace noise, random labels."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from tacita.privacy import inputs
from tacita.privacy.accounting import profiles
from tacita.privacy.accounting.renyi import ORDERS, RenyiCurve


@dataclass(frozen=True)
class _Pure:
    """A release whose losses lie between -epsilon and epsilon, most at either end."""

    epsilon: float

    def __post_init__(self) -> None:
        inputs.positive(epsilon=self.epsilon)

    @property
    def spread(self) -> float:
        """Most losses are as large as any."""
        return self.epsilon

    @property
    def reach(self) -> float:
        """That is all."""
        return self.epsilon

    @property
    def pure(self) -> float:
        """Pure privacy."""
        return self.epsilon

    @property
    def kind(self) -> Any:
        """All but its noise."""
        return self.at(1.0)

    @property
    def level(self) -> float:
        """One over epsilon."""
        return 1 / self.epsilon

    def at(self, level: float) -> Self:
        """The same with another epsilon."""
        return replace(self, epsilon=1 / level)


@dataclass(frozen=True)
class Laplace(_Pure):
    """Laplace noise; `epsilon` is the l1 sensitivity over its scale."""

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
class RandomisedResponse(_Pure):
    """One of `classes` labels, true with e^epsilon times another one's probability."""

    classes: int

    def __post_init__(self) -> None:
        super().__post_init__()
        inputs.whole(2, classes=self.classes)

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
