"""From a privacy profile to a loss distribution that can be composed.

A profile delta(eps) bounds the hockey-stick divergence of a release between any two
neighbours, in either order. Where it is convex in e^eps, together with its mirror
image delta(-eps) = 1 - e^-eps (1 - delta(eps)), it is itself the profile of a pair of
distributions, which dominates the release, so that the pair's privacy loss composes
in its place (Zhu, Dong, Wang 2022, Theorem 10). Batches have such profiles: B. Balle,
G. Barthe, M. Gaboardi, "Privacy Amplification by Subsampling", NeurIPS 2018. With eta
the chance that a batch holds the record that differs,

    delta(log(1 + eta (e^eps - 1))) <= sum_{k >= 1} p_k delta_k(eps)

where k counts how often it does, with probability p_k, and delta_k is the profile of a
Gaussian release k times as sensitive. Batches of fixed size hold it once: p_1 = eta
(Theorem 9; the proof is in `docs/proof-batches.md`). Independent draws hold it
a binomial number of times (Theorem 10). Renyi divergences are of no use for these: at
the orders that matter they are ruled by the rare batches that hold a record often.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import special

from tacita.privacy.accounting.renyi import ORDERS, RenyiCurve
from tacita.privacy.accounting.subsampling import WithoutReplacement, WithReplacement

#: Losses rarer than this, and numbers of hits, count as no privacy at all.
_RARE = 1e-15
#: Where to look for the end of a profile.
_PLACES = np.geomspace(1e-7, 600.0, 600)
#: Points of a profile that was made of Renyi divergences.
_POINTS = 4000

Profile = Callable[[np.ndarray], np.ndarray]


@lru_cache(maxsize=512)
def batch_profile(
    multiplier: float, sampling: WithoutReplacement | WithReplacement
) -> Profile:
    """A bound on delta at epsilon >= 0; noise relative to the change by one hit.

    >>> one = batch_profile(1.0, WithReplacement(1, 1))
    >>> ten = batch_profile(1.0, WithoutReplacement(1, 10))
    >>> one(np.zeros(1)).round(6), ten(np.zeros(1)).round(6)
    (array([0.382925]), array([0.038292]))
    """
    hits, share = _hits(sampling)
    usual = share >= _RARE
    rare = float(share[~usual].sum())
    rate = float(sampling.rate)

    def profile(epsilon: np.ndarray) -> np.ndarray:
        # e^outer = 1 + rate (e^inner - 1), solved for the inner epsilon
        inner = np.log1p(np.expm1(epsilon) / rate)
        found = np.full(inner.shape, rare)
        for p, mu in zip(share[usual], hits[usual] / multiplier, strict=True):
            found += p * gaussian_profile(inner, float(mu))
        return found

    return profile


def _hits(
    sampling: WithoutReplacement | WithReplacement,
) -> tuple[np.ndarray, np.ndarray]:
    """How often a batch may hold a record, and how likely that is."""
    if isinstance(sampling, WithoutReplacement):
        return np.ones(1), np.full(1, sampling.rate)
    from scipy import stats  # loads slowly, and is needed here only

    hits = np.arange(1, sampling.draws + 1)
    return hits, stats.binom.pmf(hits, sampling.draws, 1 / sampling.samples)


def gaussian_profile(epsilon: np.ndarray, mu: float) -> np.ndarray:
    """Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu), for many eps."""
    low, high = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    # phi(low) (R(low) - R(high)) with Mills ratios: nothing overflows for low > -5.
    near = np.maximum(low, -5.0)
    ratios = special.erfcx(near / math.sqrt(2)) - special.erfcx(high / math.sqrt(2))
    right = 0.5 * np.exp(-near * near / 2) * ratios
    left = special.ndtr(-low) - np.exp(epsilon + special.log_ndtr(-high))
    return np.maximum(np.where(low > -5.0, right, left), 0.0)


def poisson(mu: float, rate: float, step: float) -> Any:
    """The privacy loss of a Gaussian release of a Poisson batch, in either order.

    Between R = (1-q) N(0) + q N(mu), with the record, and N(0), without it,

        H_a(R, N(0)) = q delta(log(1 + (a-1)/q)),                 if a > 1 - q
        H_a(N(0), R) = (1 - a(1-q)) delta(log(aq/(1 - a(1-q)))),  if a(1-q) < 1

    and else max(1 - a, 0), with delta the profile without sampling (Zhu, Dong, Wang
    2022, Theorem 11).
    """
    silent = 1 - rate

    def removed(epsilon: np.ndarray) -> np.ndarray:
        more = np.expm1(epsilon) / rate
        seen = more > -1
        inner = np.log1p(np.where(seen, more, 0.0))
        return np.where(seen, rate * _gaussian(inner, mu), -np.expm1(epsilon))

    def added(epsilon: np.ndarray) -> np.ndarray:
        left = 1 - silent * np.exp(epsilon)
        seen = left > 0
        inner = epsilon + math.log(rate) - np.log(np.where(seen, left, 1.0))
        return np.where(seen, left * _gaussian(np.where(seen, inner, 0.0), mu), 0.0)

    ends = math.ceil(reach(removed) / step)
    points = np.arange(-ends, ends + 1)
    deltas = (np.clip(one(points * step), 0.0, 1.0) for one in (removed, added))
    return _connected(step, points, *map(np.minimum.accumulate, deltas))


def replaced_profile(mu: float, rate: float) -> Profile:
    """Poisson batches in which a record is replaced; mu is the change over the noise.

    With s = mu/2, what one record adds over the noise, no pair of neighbours is easier
    to tell apart than (1-q) N(0) + q N(s) and (1-q) N(0) + q N(-s), which mirror each
    other: `docs/proof-batches.md`. For a = e^eps >= 1 the first exceeds a times the
    second above z, where s z = eps/2 + arcsinh((1-q)/q e^{s^2/2} sinh(eps/2)), so that

        delta = q (Phi(s - z) - a Phi(-s - z)) - (1-q) (a - 1) Phi(-z).

    >>> all_of_them = replaced_profile(1.0, 1.0)(np.array([0.0, 2.0]))
    >>> bool(np.allclose(all_of_them, gaussian_profile(np.array([0.0, 2.0]), 1.0)))
    True
    """
    s, silent = mu / 2, 1 - rate

    def profile(epsilon: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):  # logarithms of 0: all or nothing
            half = np.log(-np.expm1(-epsilon) / 2) + epsilon / 2  # of sinh(eps/2)
            odds = np.log(silent) - math.log(rate) + s * s / 2 + half
        # arcsinh(e^odds), which is odds + log 2 where e^odds might overflow
        turned = np.where(
            odds > 20.0, odds + math.log(2), np.arcsinh(np.exp(np.minimum(odds, 20.0)))
        )
        z = (epsilon / 2 + turned) / s
        low, high = z - s, z + s
        # phi(z) (A (R(low) - R(z)) + B (R(z) - R(high))) with Mills ratios, A and B the
        # shares of the two Gaussians there: nothing cancels, nothing overflows.
        near = np.maximum(low, -5.0)
        at, there, beyond = (special.erfcx(v / math.sqrt(2)) for v in (near, z, high))
        first = np.exp(-near * near / 2) * (at - there)
        second = np.exp(epsilon - high * high / 2) * (there - beyond)
        right = 0.5 * rate * (first + second)
        both = special.ndtr(-low) - np.exp(epsilon + special.log_ndtr(-high))
        # (a - 1) Phi(-z)
        without = -np.expm1(-epsilon) * np.exp(epsilon + special.log_ndtr(-z))
        left = rate * both - silent * without
        return np.maximum(np.where(low > -5.0, right, left), 0.0)

    return profile


def _gaussian(epsilon: np.ndarray, mu: float) -> np.ndarray:
    """`gaussian_profile` for epsilons of any sign."""
    size = np.abs(epsilon)
    up = gaussian_profile(size, mu)
    return np.where(epsilon >= 0, up, 1 - np.exp(-size) * (1 - up))


def renyi_profile(bounds: RenyiCurve) -> Profile:
    """The best delta over the orders (Canonne, Kamath, Steinke 2020, Prop. 12)."""
    orders, divergences = np.asarray(ORDERS), bounds.totals()
    # delta <= e^{(a-1)(D_a - eps)} (1 - 1/a)^{a-1} / a, and sqrt(1 - e^-KL)
    factor = (orders - 1) * (divergences + np.log1p(-1 / orders)) - np.log(orders)
    always = math.sqrt(-math.expm1(-float(divergences.min())))

    def profile(epsilon: np.ndarray) -> np.ndarray:
        exponents = factor[:, None] - np.outer(orders - 1, epsilon)
        found = np.exp(np.minimum(exponents.min(axis=0), 0.0))
        return np.where(epsilon >= bounds.pure, 0.0, np.minimum(found, always))

    return profile


def reach(profile: Profile) -> float:
    """The epsilon beyond which the profile has all but vanished."""
    above = profile(_PLACES) > _RARE
    return float(_PLACES[min(int(above.sum()), len(_PLACES) - 1)])


def distribution(profile: Profile, step: float) -> Any:
    """The privacy loss on multiples of `step`, of the pair that has this profile."""
    ends = math.ceil(reach(profile) / step)
    return _connected(step, np.arange(-ends, ends + 1), _mirrored(profile, step, ends))


def enveloped(profile: Profile, step: float) -> Any:
    """The same for a bound that is not convex: by its convex envelope.

    True divergences are convex in e^eps, and below the bound at every point: so they
    are below the largest convex function that is.
    """
    ends = math.ceil(reach(profile) / step)
    points = np.arange(-ends, ends + 1)
    deltas = _mirrored(profile, step, ends)
    every = max(1, len(points) // _POINTS)
    kept = np.unique(np.concatenate([points[::every] + ends, [ends, 2 * ends]]))
    kept = kept[_lower_hull(np.exp(points[kept] * step), deltas[kept])]
    return _connected(step, points[kept], deltas[kept])


def _mirrored(profile: Profile, step: float, ends: int) -> np.ndarray:
    """The profile at -ends ... ends times step."""
    up = np.minimum.accumulate(profile(np.arange(ends + 1) * step))
    down = 1 - np.exp(-np.arange(1, ends + 1) * step) * (1 - up[1:])
    return np.concatenate([down[::-1], up])


def _connected(step: float, points: np.ndarray, *deltas: np.ndarray) -> Any:
    """The loss of a symmetric pair, or of one pair per order."""
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution

    dots = pld_pmf.create_pmf_pessimistic_connect_dots
    made = (dots(step, points, one) for one in deltas)
    return privacy_loss_distribution.PrivacyLossDistribution(*made)


def _lower_hull(x: np.ndarray, y: np.ndarray) -> list[int]:
    """The points of the convex envelope, by Andrew's monotone chain."""
    hull: list[int] = []
    for i in range(len(x)):
        while len(hull) > 1:
            a, b = hull[-2], hull[-1]
            if (y[b] - y[a]) * (x[i] - x[a]) < (y[i] - y[a]) * (x[b] - x[a]):
                break
            hull.pop()
        hull.append(i)
    return hull
