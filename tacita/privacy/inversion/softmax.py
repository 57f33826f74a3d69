"""Softmax regression with a bias: labels, and rows, from one gradient.

B. Zhao et al., "iDLG: improved deep leakage from gradients", 2020.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tacita import check


def softmax(grad_w: Any, grad_b: Any) -> tuple[np.ndarray, int]:
    """The row and the label behind one row's gradient of softmax with a bias.

    Args:
        grad_w: Of the weights, (classes, features).
        grad_b: Of the biases, (classes,): only the label's entry is negative.
    """
    g, bias = np.asarray(grad_w, float), np.asarray(grad_b, float)
    label = int(bias.argmin())
    return g[label] / bias[label], label


def label_counts(grad_b: Any, rows: int, mean_chance: Any) -> np.ndarray:
    """How often every label occurs in a batch of `rows`.

    m (mean chance - gradient of the bias), rounded so that they add up to m; a fresh
    model gives all classes the same chance.
    """
    share = np.asarray(mean_chance, float) - np.asarray(grad_b, float)
    return whole_counts(share, rows)


def whole_counts(shares: Any, rows: int) -> np.ndarray:
    """Counts that add up to `rows` and are nearest to these shares of them.

    >>> whole_counts([0.5, 0.3, -0.1], 3).tolist()
    [2, 1, 0]
    """
    expected = rows * np.asarray(shares, float)
    counts = np.zeros(len(expected), int)
    for _ in range(rows):
        counts[np.argmax(expected - counts)] += 1
    return counts


def softmax_rows(grad_w: Any, labels: Any, chances: Any = None) -> np.ndarray:
    """The rows of a batch behind a gradient, (rows, features).

    The gradient is the mean of (p_r - e_label) x_r': with known chances p_r, one
    equation for every class. Rows of one label on a fresh model come out as their mean.

    Args:
        grad_w: Of the weights, (classes, features).
        labels: Of the rows.
        chances: p_r of every row, (rows, classes); default those of a fresh model.

    >>> softmax_rows([[-0.25], [0.0], [0.25]], labels=[0, 1]).round(9).tolist()
    [[1.0], [0.5]]
    """
    g, y = np.asarray(grad_w, float), np.asarray(labels, int)
    classes, m = len(g), len(y)
    if y.min() < 0 or y.max() >= classes:
        check.refuse(f"expected labels from 0 to {classes - 1}, got {y.tolist()}")
    p = np.full((m, classes), 1 / classes) if chances is None else np.asarray(chances)
    check.shape((m, classes), chances=p)
    residual = p - np.eye(classes)[y]
    return np.linalg.lstsq(residual.T / m, g, rcond=None)[0]
