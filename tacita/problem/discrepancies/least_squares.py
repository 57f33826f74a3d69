"""Two tests of whether two nodes have one linear model.

With G_i = X_i'X_i, own least-squares fits w_i and their residuals R_i, fitting i and j
together costs

    R_ij - R_i - R_j = (w_i - w_j)' (G_i^-1 + G_j^-1)^-1 (w_i - w_j)

more than fitting them apart. *Wald* divides it by d s^2, with s^2 the residual variance
of all nodes: 1 on average between nodes of one model, whatever their features and row
counts. *Chow* (G. C. Chow, Econometrica 28(3), 1960) divides by the two nodes' own:
F = ((R_ij - R_i - R_j)/d) / ((R_i + R_j)/(m_i + m_j - 2d)).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacita import check
from tacita.problem.model.linear import Linear
from tacita.problem.problem import Problem

#: Numbers in a block of pairs that is worked on at once.
_BLOCK = 2**24
#: Beyond this condition number a node's rows leave a direction open.
_SINGULAR = 1e12


class _Fits(NamedTuple):
    """Everybody's own least-squares fit, without l2."""

    models: np.ndarray  # w_i, (N, d)
    inverses: np.ndarray  # (X_i'X_i)^-1, (N, d, d)
    residuals: np.ndarray  # R_i, (N,)
    spare: np.ndarray  # m_i - d, (N,)


def wald(problem: Problem) -> np.ndarray:
    """d_ij with d_ij^2 = (w_i - w_j)'(S_i + S_j)^-1 (w_i - w_j)/d, (N, N)."""
    fits = _fits(problem)
    variance = fits.residuals.sum() / fits.spare.sum()
    if not variance > 0:
        check.refuse("all rows are fitted exactly, so wald has no unit; use another")
    return np.sqrt(_excess(fits) / (variance * problem.dim))


def chow_p_values(problem: Problem) -> np.ndarray:
    """The p-value of Chow's test for every pair, (N, N); 1 on the diagonal."""
    return np.exp(-chow(problem))


def chow(problem: Problem) -> np.ndarray:
    """Minus the logarithms of the p-values: a discrepancy that is zero at p = 1."""
    from scipy import stats  # slow to import

    fits = _fits(problem)
    spare = fits.spare[:, None] + fits.spare
    noise = (fits.residuals[:, None] + fits.residuals) / spare
    if not noise.min() > 0:
        check.refuse("two nodes are fitted exactly, so chow has no unit; use another")
    found = -stats.f.logsf(_excess(fits) / problem.dim / noise, problem.dim, spare)
    np.fill_diagonal(found, 0.0)
    return np.minimum(found, np.finfo(float).max)  # beyond all numbers: far apart


def _fits(problem: Problem) -> _Fits:
    if not isinstance(problem.model, Linear):
        check.refuse(
            "wald and chow compare least-squares fits; this model is not linear, so "
            "use 'parameters' or 'cross_loss'"
        )
    x, y, counts = problem.stacked()
    x, y = x.astype(float), y.astype(float)
    gram = x.mT @ x
    poor = (counts <= problem.dim) | (np.linalg.cond(gram) > _SINGULAR)
    if poor.any():
        node = problem.ids[int(np.argmax(poor))]
        check.refuse(
            f"node {node!r} has too few or too like rows for a fit of its own with "
            f"{problem.dim} parameters; use 'parameters' with l2 > 0, or 'gradient'"
        )
    inverses = np.linalg.inv(gram)
    models = np.einsum("nde,nme,nm->nd", inverses, x, y)
    gaps = y - np.einsum("nmd,nd->nm", x, models)  # padding rows are zero
    return _Fits(models, inverses, (gaps**2).sum(axis=1), counts - problem.dim)


def _excess(fits: _Fits) -> np.ndarray:
    """What fitting two nodes together costs, for all pairs, block by block."""
    n, d = fits.models.shape
    rows = max(1, _BLOCK // (n * d * d))
    found = np.zeros((n, n))
    for first in range(0, n, rows):
        block = slice(first, first + rows)
        gaps = fits.models[block, None] - fits.models
        both = fits.inverses[block, None] + fits.inverses
        solved = np.linalg.solve(both, gaps[..., None])[..., 0]
        found[block] = np.einsum("ijd,ijd->ij", gaps, solved)
    found = np.maximum((found + found.T) / 2, 0)  # alike to the last digit
    np.fill_diagonal(found, 0.0)
    return found
