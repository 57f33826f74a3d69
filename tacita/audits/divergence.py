"""How far two observers' views are apart: Gaussians exactly, mixtures from below.

A view is slope z + mean with z ~ N(0, I). On neighbouring data the mean is another one
and, where gradients of the changed rows do not depend on the model, the slope is the
same. Divided by the slope, the two views are N(0, I) and N(shift, I): the divergence
is that of N(0, 1) and N(mu, 1) with mu = |shift|, and infinite if the means differ
where there is no noise. With batches both are mixtures over draws.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import svd
from scipy.special import logsumexp

from tacita.audits.statistics import clopper_pearson

#: Singular values below this, of the largest, are no noise at all.
_NO_NOISE = 1e-10
#: A part of a difference that noise must not be missing in, relative to all of it, and
#: to the noise elsewhere: less is rounding.
_SEEN, _ROUNDED = 1e-6, 1e-9
#: How sure to be of the lower bound for mixtures: thousands are compared.
_ERROR = 1e-6


def shifts(slope: np.ndarray, *differences: np.ndarray) -> list[np.ndarray] | None:
    """Differences of means in units of the noise; None if one shows without noise.

    Args:
        slope: What each draw of noise adds to the view, (draws, numbers).
        differences: Each (..., numbers).
    """
    values, rows = _singular(slope)
    largest = float(values.max(initial=0.0))
    noisy = values > _NO_NOISE * max(largest, 1e-300)
    values, rows = values[noisy], rows[noisy]
    found = []
    for difference in differences:
        inside = difference @ rows.T
        rest = np.linalg.norm(difference - inside @ rows, axis=-1)
        bare = rest > _SEEN * np.linalg.norm(difference, axis=-1)
        if np.any(bare & (rest > _ROUNDED * largest)):
            return None
        found.append(inside / values)
    return found


def _singular(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Singular values and their rows, by iterations that do converge.

    Divide and conquer, numpy's choice, has failed on maps of runs.
    """
    _, values, rows = svd(matrix, full_matrices=False, lapack_driver="gesvd")
    return values, rows


class Mixture(NamedTuple):
    """N(centre, I) with a random centre."""

    centres: np.ndarray  # those that occur, (kinds, numbers)
    weights: np.ndarray  # how often each does

    def log_density(self, points: np.ndarray) -> np.ndarray:
        """Up to what all mixtures share."""
        apart = points @ self.centres.T - np.sum(self.centres**2, axis=1) / 2
        return np.asarray(logsumexp(apart + np.log(self.weights), axis=1))


def mixture(drawn: np.ndarray) -> Mixture:
    """The mixture of these centres, (draws, numbers), equal ones put together."""
    kinds, counts = np.unique(np.round(drawn, 9), axis=0, return_counts=True)
    return Mixture(kinds, counts / len(drawn))


def mixture_epsilon(
    drawn: np.ndarray, other: np.ndarray, delta: float, rng: np.random.Generator
) -> float:
    """A lower bound on epsilon at delta between two mixtures of N(centre, I).

    Half of the draws make the score, the likelihood ratio; the other half, with noise,
    is counted. Sure but for one in a million.
    """
    # Noise where no centre differs tells nothing.
    values, rows = _singular(np.concatenate([drawn, other]))
    rows = rows[values > 1e-9 * max(values.max(initial=0.0), 1e-300)]
    if not len(rows):
        return 0.0
    half = len(drawn) // 2
    sides = [drawn @ rows.T, other @ rows.T]
    known = [mixture(side[:half]) for side in sides]
    ratios = []
    for side in sides:
        points = side[half:] + rng.standard_normal(side[half:].shape)
        ratios.append(known[0].log_density(points) - known[1].log_density(points))
    return max(
        _lower_bound(ratios[0], ratios[1], delta),
        _lower_bound(-ratios[1], -ratios[0], delta),
    )


def _lower_bound(ratio: np.ndarray, other: np.ndarray, delta: float) -> float:
    """The largest epsilon of a grid that the events {ratio > epsilon} refute."""
    grid = np.linspace(0.0, max(float(ratio.max()), 1e-3), 60)
    ordered, others = np.sort(ratio), np.sort(other)
    hits = len(ratio) - np.searchsorted(ordered, grid)
    false = len(other) - np.searchsorted(others, grid)
    error = _ERROR / (2 * len(grid))
    low, _ = clopper_pearson(hits, len(ratio), error)
    _, high = clopper_pearson(false, len(other), error)
    gained = np.maximum(low - delta, 0.0)
    with np.errstate(divide="ignore"):
        bounds = np.where(gained > 0, np.log(gained) - np.log(high), 0.0)
    return max(float(bounds.max()), 0.0)


def gaussian_mu(slope: np.ndarray, difference: np.ndarray) -> float:
    """The mu of two views with the same noise; infinite where noise is missing."""
    found = shifts(slope, difference)
    return math.inf if found is None else float(np.linalg.norm(found[0]))
