"""More rows from those that are there: what a penalty is worth in rows.

A. Jung, "Federated Learning: From Theory to Practice", section 2.5 and exercises 2.3 to
2.5. A ridge penalty is the same as noisy copies of every row, (23), or as one further
row per feature, (26); a pull towards a reference model as rows labelled by it, (27).

An epsilon for one record is then one for one of these rows: who gave a row that became
many is promised less. docs/sharp-edges.md
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tacita import check


def _table(x: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    features = np.asarray(check.finite(x=x), float)
    check.shape((None, None), x=features)
    labels = np.asarray(check.finite(y=y), float)
    return features, np.asarray(check.shape((len(features),), y=labels))


def noisy_copies(
    x: Any, y: Any, variance: float, copies: int, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Copies (x + n, y) of every row with n ~ N(0, variance I), (23).

    The more copies, the nearer is least squares on them to ridge regression, (22), with
    alpha = variance.

    Args:
        x: Features, (m, d).
        y: Labels, (m,).
        variance: Of the noise in every feature.
        copies: Of every row.
        seed: Of the noise.

    >>> more, labels = noisy_copies([[1.0], [2.0]], [3.0, 4.0], variance=0.0, copies=2)
    >>> more.ravel().tolist(), labels.tolist()
    ([1.0, 1.0, 2.0, 2.0], [3.0, 3.0, 4.0, 4.0])
    """
    x, y = _table(x, y)
    spread = np.sqrt(check.not_negative(variance=variance))
    check.count(copies=copies)
    x = np.repeat(x, copies, axis=0)
    dice = np.random.default_rng(check.count(0, seed=seed))
    return x + spread * dice.normal(size=x.shape), np.repeat(y, copies)


def ridge_rows(
    x: Any, y: Any, alpha: float, centre: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose mean squared error is that of ridge regression, (26) and (27).

    d rows are added, sqrt(m' alpha) e_j with label sqrt(m' alpha) centre_j, and the m
    given ones are scaled by sqrt(m'/m), m' = m + d: the mean over m' rows is the old
    mean plus alpha ||w - centre||^2, for every w.

    Args:
        x: Features, (m, d).
        y: Labels, (m,).
        alpha: Weight of the penalty.
        centre: The reference model; None is zero, (26).
    """
    x, y = _table(x, y)
    m, d = x.shape
    check.not_negative(alpha=alpha)
    middle = (
        np.zeros(d)
        if centre is None
        else np.asarray(check.finite(centre=centre), float)
    )
    check.shape((d,), centre=middle)
    scale, pull = np.sqrt((m + d) / m), np.sqrt((m + d) * alpha)
    rows = np.concatenate([scale * x, pull * np.eye(d)])
    return rows, np.concatenate([scale * y, pull * middle])


def between_pairs(x: Any, y: Any, steps: int = 100) -> tuple[np.ndarray, np.ndarray]:
    """Points z + (z' - z) r/steps, r < steps, of all pairs of rows: exercise 2.4.

    >>> more, labels = between_pairs([[0.0], [2.0]], [0.0, 4.0], steps=2)
    >>> more.ravel().tolist(), labels.tolist()
    ([0.0, 1.0, 2.0, 1.0], [0.0, 2.0, 4.0, 2.0])
    """
    x, y = _table(x, y)
    check.count(steps=steps)
    first, second = np.nonzero(~np.eye(len(x), dtype=bool))
    share = np.tile(np.arange(steps) / steps, len(first))
    a, b = np.repeat(first, steps), np.repeat(second, steps)
    return x[a] + (x[b] - x[a]) * share[:, None], y[a] + (y[b] - y[a]) * share
