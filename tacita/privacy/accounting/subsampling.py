"""How records are drawn for a release, and the Renyi divergence that follows.

The divergences come from `dp_accounting`, which does not know sampling with
replacement, nor Poisson sampling of records that are replaced (see `profiles`). Callers
give the noise relative to the sensitivity under the relation that goes with the
sampling: add/remove for `Poisson`, replace-one for all others. Every kind names its
`relation`, and its `theorems` by the method that accounts with it, the usual one first.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

import numpy as np

from tacita import check
from tacita.privacy import inputs
from tacita.privacy.accounting.renyi import ORDERS, RenyiCurve
from tacita.privacy.scope import Relation


@dataclass(frozen=True)
class Poisson:
    """Every record enters a batch independently with probability `rate`."""

    words = "Poisson sampling"
    relation = Relation.ADD_REMOVE
    theorems = MappingProxyType(
        {
            "pld": "Poisson-sampled Gaussian (Zhu, Dong, Wang 2022, Theorem 11)",
            "rdp": "Poisson-sampled Gaussian (Mironov, Talwar, Zhang 2019)",
        }
    )

    rate: float

    def __post_init__(self) -> None:
        inputs.fraction(rate=self.rate)


@dataclass(frozen=True)
class PoissonReplaced:
    """Poisson sampling, where neighbours differ in what one of the records is.

    The sensitivity is twice what one record adds to a batch, as much as the change from
    one record to another.
    """

    words = "Poisson sampling with a record replaced"
    relation = Relation.REPLACE_ONE
    theorems = MappingProxyType(
        {"pld": "Poisson-sampled Gaussian with a record replaced (proof-batches.md)"}
    )

    rate: float

    def __post_init__(self) -> None:
        inputs.fraction(rate=self.rate)


@dataclass(frozen=True)
class WithoutReplacement:
    """A uniformly random `batch` of the `samples` records, drawn anew every round."""

    words = "sampling without replacement"
    relation = Relation.REPLACE_ONE
    theorems = MappingProxyType(
        {
            "pld": "Gaussian sampled without replacement "
            "(Balle, Barthe, Gaboardi 2018, Theorem 9)",
            "rdp": "Gaussian sampled without replacement "
            "(Wang, Balle, Kasiviswanathan 2019, Theorem 27)",
        }
    )

    batch: int
    samples: int

    def __post_init__(self) -> None:
        inputs.whole(batch=self.batch)
        inputs.whole(samples=self.samples)
        if self.batch > self.samples:
            check.refuse(
                f"expected batch <= samples, got batch={self.batch}, "
                f"samples={self.samples}"
            )

    @property
    def rate(self) -> float:
        """The chance that a record is in a batch."""
        return self.batch / self.samples


@dataclass(frozen=True)
class WithReplacement:
    """`draws` independent draws out of the `samples` records, anew every round.

    A record may be drawn several times; the sensitivity is the change by one of them.
    """

    words = "sampling with replacement"
    relation = Relation.REPLACE_ONE
    theorems = MappingProxyType(
        {
            "pld": "Gaussian sampled with replacement "
            "(Balle, Barthe, Gaboardi 2018, Theorem 10)",
        }
    )

    draws: int
    samples: int

    def __post_init__(self) -> None:
        inputs.whole(draws=self.draws)
        inputs.whole(samples=self.samples)

    @property
    def rate(self) -> float:
        """The chance that a record is drawn at all: (22) of FedSPD-DP.

        >>> round(WithReplacement(50, 325).rate, 6)
        0.142799
        """
        if self.samples == 1:
            return 1.0
        return -math.expm1(self.draws * math.log1p(-1 / self.samples))


#: Noise over the change beyond which the library's digits do not do.
_QUIETEST = 1e4
#: What rounding of its moments may take from a divergence, times order/(order - 1).
_ROUNDED = 1e-15


Sampling = Poisson | PoissonReplaced | WithoutReplacement | WithReplacement


@lru_cache(maxsize=512)
def sampled_rdp(
    multiplier: float, sampling: Poisson | WithoutReplacement
) -> tuple[float, ...]:
    """Renyi divergences of one sampled Gaussian release at `ORDERS`.

    Very small ones the library rounds to zero, which very many rounds are not: there
    those of a batch that is seen stand in for them.
    """
    seen = RenyiCurve.linear(multiplier**-2 / 2).with_chance(sampling.rate)
    if multiplier > _QUIETEST:
        return seen.values
    found = _by_library(multiplier, sampling)
    return tuple(np.minimum(found, seen.values).tolist())


def _by_library(
    multiplier: float, sampling: Poisson | WithoutReplacement
) -> np.ndarray:
    import dp_accounting as dpa

    if isinstance(sampling, Poisson):
        relation = dpa.NeighboringRelation.ADD_OR_REMOVE_ONE
        event = dpa.PoissonSampledDpEvent(
            sampling.rate, dpa.GaussianDpEvent(multiplier)
        )
    else:
        relation = dpa.NeighboringRelation.REPLACE_ONE
        scaled = dpa.GaussianDpEvent(multiplier * library_scale())
        event = dpa.SampledWithoutReplacementDpEvent(
            sampling.samples, sampling.batch, scaled
        )
    accountant = dpa.rdp.RdpAccountant(ORDERS, relation)
    with _without_convergence_warnings():
        accountant.compose(event)
    orders = np.asarray(ORDERS)
    rounded = _ROUNDED * orders / (orders - 1)
    return _tightened(np.asarray(accountant.rdp, dtype=float) + rounded)


def _tightened(bounds: np.ndarray) -> np.ndarray:
    """Repair fractional orders, where the library gives up or overestimates.

    Two facts turn bounds at whole orders into bounds everywhere: (order - 1) D_order
    is convex in the order and 0 at 1, so a chord is a bound; and D_order grows with
    the order, so a bound at a higher order is one.
    """
    orders = np.asarray(ORDERS)
    whole = (orders == np.floor(orders)) & np.isfinite(bounds)
    ends = np.concatenate([[1.0], orders[whole]])
    moments = np.concatenate([[0.0], (bounds * (orders - 1))[whole]])
    chord = np.interp(orders, ends, moments, right=np.inf) / (orders - 1)
    best = np.minimum(bounds, chord)
    return np.minimum.accumulate(best[::-1])[::-1]


@contextmanager
def _without_convergence_warnings() -> Iterator[None]:
    """Hide the library's notes on single orders: `_tightened` deals with them."""

    def wanted(record: logging.LogRecord) -> bool:
        return "failed to converge" not in record.getMessage()

    logger = logging.getLogger("absl")
    logger.addFilter(wanted)
    try:
        yield
    finally:
        logger.removeFilter(wanted)


@lru_cache(maxsize=1)
def library_scale() -> float:
    """What turns sigma/(replace-one sensitivity) into the library's multiplier.

    Without sampling the divergence of order 2 at multiplier 1 is 1 if the library
    reads the multiplier against the replace-one sensitivity, and 4 if it reads it
    against the norm of one record (which may move by twice that norm).
    """
    import dp_accounting as dpa

    accountant = dpa.rdp.RdpAccountant([2.0], dpa.NeighboringRelation.REPLACE_ONE)
    whole = dpa.SampledWithoutReplacementDpEvent(1, 1, dpa.GaussianDpEvent(1.0))
    divergence = float(accountant.compose(whole).rdp[0])
    for scale in (1.0, 2.0):
        if abs(divergence - scale**2) < 1e-9:
            return scale
    check.refuse(
        "this version of dp-accounting reads noise multipliers in a way Tacita does "
        f"not know (divergence {divergence}); install dp-accounting 0.6"
    )
