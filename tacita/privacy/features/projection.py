"""Linear maps of features after which no linear reader finds a private attribute.

A. Jung, "Federated Learning: From Theory to Practice", (184), for several attributes S
with cross-covariance C = E{x s'}, of features that were centred and standardised:

    projection     F = I - C (C'C)^+ C'
    least change   F = I - C (C'M C)^+ C'M,   M the inverse of the covariance of x

Both have F C = 0, so that the best linear reader of F x does no better than the mean of
s; the second has the least E||F x - x||^2 (N. Belrose et al., "LEACE", NeurIPS 2023).
Readers that are not linear, and functions of s that are not linear, are another matter:
give the sine and the cosine of an hour, not its number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacita import check

#: Singular values below this share of the largest count as zero.
_RELATIVE = 1e-10
#: What of a feature may be rounding, relative to its mean and to the others' spread.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Projection:
    """z = F (x - centre) / scale.

    Attributes:
        matrix: F, (features, features).
        centre: Of every feature.
        scale: What every feature is divided by, after the centre was taken off.
        of_rows: Whether it was computed from rows without noise: it tells of them.
    """

    matrix: np.ndarray
    centre: np.ndarray
    scale: np.ndarray
    of_rows: bool = False

    def __call__(self, x: Any) -> np.ndarray:
        """The new features of rows, (rows, features)."""
        rows = np.asarray(x, float)
        check.shape((None, len(self.centre)), x=rows)
        return (rows - self.centre) / self.scale @ self.matrix.T


def private_projection(
    x: Any, s: Any, *, least_change: bool = False, standardise: bool = True
) -> Projection:
    """A linear map of features that hides attributes from linear readers, (184).

    It is computed from the rows and tells of them. Agents who share no rows take
    `projection_of_moments`.

    Args:
        x: Features, (rows, features).
        s: What is hidden: one number a row, or several in columns.
        least_change: Change the features as little as their covariance allows.
        standardise: Divide every feature by its standard deviation first, without
            which (184) depends on units.

    >>> x = np.array([[0.0, 1.0], [1.0, 1.0], [2.0, 4.0], [3.0, 2.0]])
    >>> hidden = private_projection(x, s=x[:, 0])
    >>> bool(linear_leak(hidden(x), x[:, 0]) < 1e-12)
    True
    """
    rows, hidden = _rows(x, s)
    joined = np.column_stack([rows, hidden])
    made = projection_of_moments(
        joined.mean(axis=0),
        np.cov(joined, rowvar=False, bias=True),
        attributes=range(rows.shape[1], joined.shape[1]),
        least_change=least_change,
        standardise=standardise,
    )
    return replace(made, of_rows=True)


def projection_of_moments(
    mean: Any,
    covariance: Any,
    attributes: Sequence[int] = (-1,),
    *,
    least_change: bool = False,
    standardise: bool = True,
) -> Projection:
    """The same from means and covariances, which may be noisy sums over agents.

    With noise it hides what the noisy covariance says, so that readers find the rest:
    about the noise over the standard deviations. Nothing here looks at rows.

    Args:
        mean: Of features and attributes together.
        covariance: Of features and attributes together.
        attributes: Which of them are hidden; all others are features.
        least_change: As in `private_projection`. Noise in the covariance enters its
            inverse: with little data (184) is the safer choice.
        standardise: As in `private_projection`.
    """
    middle, both = np.asarray(mean, float), np.asarray(covariance, float)
    check.shape((len(middle), len(middle)), covariance=both)
    check.finite(mean=middle)
    check.finite(covariance=both)
    try:
        hidden = np.unique(np.arange(len(middle))[list(attributes)])
    except (TypeError, IndexError):
        check.refuse(
            f"expected attributes a list of numbers below {len(middle)}, got "
            f"attributes={attributes!r}"
        )
    kept = np.setdiff1d(np.arange(len(middle)), hidden)
    if not len(hidden) or not len(kept):
        check.refuse(
            f"expected some attributes and some features of {len(middle)}, got "
            f"attributes={list(attributes)}"
        )
    variance = np.diag(both)[kept]
    if standardise and np.any(variance < 0):
        check.refuse(
            f"feature {int(kept[variance.argmin()])} has a variance below zero: the "
            "noise is larger than what it hides; take more rows or a larger epsilon"
        )
    # A feature that never changes says nothing, and stays as it is.
    scale = np.sqrt(np.where(variance > 0, variance, 1.0)) if standardise else 1.0
    scale = np.broadcast_to(scale, variance.shape)
    inside = both[np.ix_(kept, kept)] / np.outer(scale, scale)
    cross = both[np.ix_(kept, hidden)] / scale[:, None]
    return Projection(
        matrix=_oblique(cross, _inverse(inside)) if least_change else _oblique(cross),
        centre=middle[kept],
        scale=np.array(scale),
    )


def linear_leak(x: Any, s: Any) -> Any:
    """R^2 of the best linear reader of s in these very rows: 0 nothing, 1 all.

    Features that change by less than rounding are not read.

    Args:
        x: Features, (rows, features).
        s: One attribute, or several in columns: then one number each.

    >>> round(float(linear_leak([[1.0], [2.0], [3.0]], [1.0, 0.0, 2.0])), 9)
    0.25
    """
    rows, hidden = _rows(x, s)
    middle, hidden = rows.mean(axis=0), hidden - hidden.mean(axis=0)
    spread = rows.std(axis=0)
    changes = spread > _ROUNDING * np.maximum(np.abs(middle), spread.max())
    rows = (rows - middle) / np.where(changes, spread, np.inf)
    read = rows @ np.linalg.lstsq(rows, hidden, rcond=_RELATIVE)[0]
    found = np.sum(read**2, axis=0) / np.sum(hidden**2, axis=0)
    return float(found[0]) if np.ndim(s) == 1 else found


def _oblique(cross: np.ndarray, metric: np.ndarray | None = None) -> np.ndarray:
    """I - C (C'M C)^+ C'M; M is the identity if left out."""
    seen = cross.T if metric is None else cross.T @ metric
    removed = cross @ np.linalg.pinv(seen @ cross, rcond=_RELATIVE) @ seen
    return np.eye(len(cross)) - removed


def _inverse(covariance: np.ndarray) -> np.ndarray:
    """Of the part of a covariance that is one: noise can make others negative."""
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    real = values > _RELATIVE * values[-1]
    return vectors[:, real] / values[real] @ vectors[:, real].T


def _rows(x: Any, s: Any) -> tuple[np.ndarray, np.ndarray]:
    """Features and attributes as matrices with a row each, checked."""
    try:
        rows, hidden = np.asarray(x, float), np.asarray(s, float)
    except (TypeError, ValueError):
        check.refuse("expected x and s of numbers; give classes as columns of 0 and 1")
    if rows.ndim != 2:
        check.refuse(f"expected x with rows and columns, got shape {rows.shape}")
    hidden = hidden[:, None] if hidden.ndim == 1 else hidden
    check.shape((len(rows), None), s=hidden)
    check.finite(x=rows)
    check.finite(s=hidden)
    constant = np.ptp(hidden, axis=0) == 0
    if np.any(constant):
        check.refuse(
            f"attribute {int(constant.argmax())} is the same in all rows: there is "
            "nothing to hide; leave it out"
        )
    return rows, hidden
