"""Batches drawn with replacement: what a Gaussian release of one reveals.

B. Balle, G. Barthe, M. Gaboardi, "Privacy Amplification by Subsampling", NeurIPS 2018,
Theorem 10. Of n independent draws from m records, k show the record that differs, with
the binomial probability p_k, and the release moves by at most k times what one hit
does. With eta = 1 - (1 - 1/m)^n, the rate of (22) of FedSPD-DP, the privacy profile is

    delta(log(1 + eta (e^eps - 1))) <= sum_{k >= 1} p_k delta_k(eps)

with delta_k the profile of a Gaussian release of sensitivity k. The bound is symmetric
and convex in e^eps, so it is itself the profile of a pair of distributions, whose
privacy loss `dp_accounting` composes. Renyi divergences are of no use here: at the
orders that matter they are ruled by the rare batches that hold a record many times.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import special

from tacita.privacy.accounting.curve import LossCurve

#: Step of the grid of epsilons, that of the library; numbers of hits rarer than
#: _RARE, and epsilons at which less than that is left, count as no privacy at all.
_STEP, _RARE, _LAST = 1e-4, 1e-14, 40.0


def profile(epsilon: Any, multiplier: float, draws: int, samples: int) -> np.ndarray:
    """A bound on delta at epsilon >= 0; noise relative to the change by one hit.

    >>> profile(0.0, 1.0, 1, 1).round(6), profile(0.0, 1.0, 1, 10).round(6)
    (array([0.382925]), array([0.038292]))
    """
    from scipy import stats  # loads slowly, and is needed here only

    rate = 1.0 if samples == 1 else -math.expm1(draws * math.log1p(-1 / samples))
    # e^outer = 1 + rate (e^inner - 1), solved for the inner epsilon
    inner = np.log1p(np.expm1(np.atleast_1d(epsilon)) / rate)
    hits = np.arange(1, draws + 1)
    share = stats.binom.pmf(hits, draws, 1 / samples)
    usual = share >= _RARE
    found = np.full(inner.shape, float(share[~usual].sum()))
    for p, mu in zip(share[usual], hits[usual] / multiplier, strict=True):
        found += p * _gaussian(inner, float(mu))
    return found


@lru_cache(maxsize=128)
def with_replacement(multiplier: float, draws: int, samples: int) -> LossCurve:
    """One Gaussian release of a batch drawn with replacement (replace-one)."""
    from dp_accounting.pld import pld_pmf, privacy_loss_distribution

    # Where the profile has all but vanished; looked for on a coarse grid.
    coarse = np.arange(1, 801) * (_LAST / 800)
    above = profile(coarse, multiplier, draws, samples) > 10 * _RARE
    ends = int(coarse[min(int(above.sum()), len(coarse) - 1)] / _STEP)
    up = np.minimum.accumulate(
        profile(np.arange(ends + 1) * _STEP, multiplier, draws, samples)
    )
    # A symmetric pair: delta(-eps) = 1 - e^-eps + e^-eps delta(eps).
    fall = np.exp(-np.arange(1, ends + 1) * _STEP)
    down = 1 - fall * (1 - up[1:])
    made = pld_pmf.create_pmf_pessimistic_connect_dots(
        _STEP, np.arange(-ends, ends + 1), np.concatenate([down[::-1], up])
    )
    return LossCurve(privacy_loss_distribution.PrivacyLossDistribution(made))


def _gaussian(epsilon: np.ndarray, mu: float) -> np.ndarray:
    """Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu), for many eps."""
    low, high = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    # phi(low) (R(low) - R(high)) with Mills ratios: nothing overflows for low > -5.
    near = np.maximum(low, -5.0)
    ratios = special.erfcx(near / math.sqrt(2)) - special.erfcx(high / math.sqrt(2))
    right = 0.5 * np.exp(-near * near / 2) * ratios
    left = special.ndtr(-low) - np.exp(epsilon + special.log_ndtr(-high))
    return np.maximum(np.where(low > -5.0, right, left), 0.0)
