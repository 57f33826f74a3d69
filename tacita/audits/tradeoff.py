"""Claims as curves, and tests of the whole curve.

A guarantee says more than one epsilon at one delta: for every event it bounds how
likely the event is on D (true positives) given how likely it is on D' (false ones).
Counted events that lie above the curve refute the claim, at the stated confidence, and
nothing is assumed of the shape of anything. At delta = 1e-5 the curve is where a few
thousand runs can see: around one half, not in tails that no run reaches.

How large epsilon is, at least, is another question. Without assumptions only
log((p - delta)/q) is known of an event. If the trade-off is Gaussian, N(0, 1) against
N(mu, 1), any event tells mu, and mu tells epsilon at every delta.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np
from scipy.special import ndtr, ndtri

from tacita.audits.statistics import (
    CAUTION,
    Event,
    clopper_pearson,
    epsilon_bound,
    parted,
    promising,
)
from tacita.privacy.accounting.guarantee import Guarantee, PaperClaim
from tacita.theory.gaussian import epsilon_of_mu

Claim = Guarantee | PaperClaim | float
#: From the rate of false positives to the largest rate of true ones.
Allowed = Callable[[np.ndarray], np.ndarray]
#: Of the runs, one in so many chooses events; the others are counted.
_CHOOSE = 4
_POINTS = 60


@dataclass(frozen=True)
class Finding:
    """What scores of runs on D and on D' say; each number at the same confidence.

    Attributes:
        lower_bound: epsilon is at least this, assuming nothing.
        gaussian_epsilon: epsilon is at least this, if the trade-off is Gaussian.
        mu: The mu that this epsilon comes from.
        refuted: Whether an event lies above the claimed curve; None without a claim.
        event: The event that was held against the claim, or that gave mu.
        rates: Its frequency on the likelier side and on the other.
    """

    lower_bound: float
    gaussian_epsilon: float
    mu: float
    refuted: bool | None
    event: Event
    rates: tuple[float, float]


def allowed_by(claim: Claim, delta: float) -> Allowed:
    """The most true positives that a claim allows at each rate of false ones.

    >>> float(allowed_by(0.0, 0.01)(np.array(0.5)).round(3))
    0.51
    """
    if isinstance(claim, Guarantee) and claim.mu is not None:
        mu = claim.mu
        return lambda false: ndtr(ndtri(false) + mu)
    if isinstance(claim, Guarantee):
        most = claim.epsilon(1e-9)
        epsilons = np.linspace(0.0, min(most, 500.0), _POINTS)
        deltas = np.array([min(claim.delta(float(e)), 1.0) for e in epsilons])
    elif isinstance(claim, PaperClaim):
        deltas = np.geomspace(1e-9, 0.5, _POINTS)
        epsilons = np.array([claim.claimed_epsilon(float(d)) for d in deltas])
    else:
        epsilons, deltas = np.array([float(claim)]), np.array([delta])

    def allowed(false: np.ndarray) -> np.ndarray:
        q = np.asarray(false)[..., None]
        # P(E) <= e^eps Q(E) + delta, and of what is not in E with P and Q exchanged.
        with np.errstate(over="ignore"):
            direct = np.exp(epsilons) * q + deltas
        rest = 1 - np.exp(-epsilons) * (1 - deltas - q)
        return np.minimum(np.minimum(direct, rest), 1.0).min(axis=-1)

    return allowed


def mu_bound(
    hits: Any, runs: Any, hits_other: Any, runs_other: Any, error: float
) -> np.ndarray:
    """The mu of N(mu, 1) against N(0, 1) from counts of one event, at least."""
    low, _ = clopper_pearson(hits, runs, error / 2)
    _, high = clopper_pearson(hits_other, runs_other, error / 2)
    with np.errstate(invalid="ignore"):
        found = ndtri(low) - ndtri(high)
    return np.nan_to_num(found, nan=-np.inf)


def excess(
    allowed: Allowed,
    hits: Any,
    runs: Any,
    hits_other: Any,
    runs_other: Any,
    error: float,
) -> np.ndarray:
    """By how much true positives exceed what is allowed, at least."""
    low, _ = clopper_pearson(hits, runs, error / 2)
    _, high = clopper_pearson(hits_other, runs_other, error / 2)
    return low - allowed(high)


def standing(
    allowed: Allowed, hits: Any, runs: Any, hits_other: Any, runs_other: Any
) -> np.ndarray:
    """By how many standard deviations true positives exceed what is allowed.

    For choosing: of all events the one that is most likely to refute. One hit and one
    miss are added to the counts, so that luck with a few does not look like much.
    """
    true, false = (hits + 1) / (runs + 2), (hits_other + 1) / (runs_other + 2)
    spread = np.sqrt(true * (1 - true) / runs)
    spread_other = np.sqrt(false * (1 - false) / runs_other)
    most = allowed(false)
    steep = allowed(np.minimum(false + spread_other, 1 - 1e-12)) - most
    return (true - most) / np.hypot(spread, steep)


def finding(
    scores: np.ndarray,
    others: np.ndarray,
    *,
    claim: Claim | None,
    delta: float,
    confidence: float,
    key: jax.Array,
    error: float | None = None,
) -> Finding:
    """Choose events on a quarter of the runs, count them on the others.

    Args:
        scores: One per run on D.
        others: One per run on D'.
        claim: What is put to the test, if anything.
        delta: Of all epsilons.
        confidence: Of either bound.
        key: A JAX random key, for parting the runs.
        error: Of the refutation; default 1 - confidence.
    """
    keys = jax.random.split(key)
    choose, count = parted(keys[0], _CHOOSE, 8, scores=scores)
    choose_other, count_other = parted(keys[1], _CHOOSE, 8, others=others)
    wrong = 1 - confidence

    def best(
        value: Callable[..., Any], error: float, worth: Callable[..., Any] | None = None
    ) -> tuple[float, Event]:
        worth = partial(value, error=error / CAUTION) if worth is None else worth
        (event,) = promising(choose, choose_other, worth)
        (hit, other), (runs, runs_other) = event.counts(count, count_other)
        return float(value(hit, runs, other, runs_other, error=error)), event

    plain, _ = best(partial(epsilon_bound, delta=delta), wrong)
    mu, event = best(mu_bound, wrong)
    mu, refuted = max(mu, 0.0), None
    if claim is not None:
        allowed = allowed_by(claim, delta)
        most, event = best(
            partial(excess, allowed),
            wrong if error is None else error,
            partial(standing, allowed),
        )
        refuted = most > 0
    hits, runs = event.counts(count, count_other)
    rates = (hits[0] / runs[0], hits[1] / runs[1])
    shaped = epsilon_of_mu(mu, delta) if mu > 0 else 0.0
    return Finding(plain, shaped, mu, refuted, event, rates)
