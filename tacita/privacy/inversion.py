"""Reading letters back: what gradients without noise tell of the rows behind them.

A. Jung, "Federated Learning: From Theory to Practice", exercises 9.1 and 10.1;
B. Zhao et al., "iDLG", 2020. Noise in the gradients is what stands in the
way: show a reconstruction beside an epsilon.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tacita import check


class LinearRows(NamedTuple):
    """What gradients of a linear model tell: the rows up to a rotation of them."""

    q: np.ndarray  # X'X / m
    b: np.ndarray  # X'y / m


def linear(points: Any, gradients: Any) -> LinearRows:
    """X'X/m and X'y/m from gradients 2 (Q w - b) at several points.

    Exact from d + 1 points that lie in no plane; with fewer, Q is what they tell.

    Args:
        points: Where the gradients were taken, (n, d).
        gradients: Of the mean of (x.w - y)^2, (n, d).

    >>> linear([[0.0], [1.0]], [[-6.0], [-4.0]])
    LinearRows(q=array([[1.]]), b=array([3.]))
    """
    w, g = np.atleast_2d(points).astype(float), np.atleast_2d(gradients).astype(float)
    check.shape(w.shape, gradients=g)
    steps, changes = w[1:] - w[0], (g[1:] - g[0]) / 2
    q = np.linalg.lstsq(steps, changes, rcond=None)[0]
    q = (q + q.T) / 2
    return LinearRows(q, q @ w[0] - g[0] / 2)


def probed(
    before: Any, after: Any, sent: Any, *, step_size: float, pull: float
) -> np.ndarray:
    """The gradient of an agent behind its step of FedGD, from its letters.

    w+ = w - eta (gradient + 2 pull (w - sent)), exercise 9.1 of the book.

    Args:
        before: Its model w, which its last letter told.
        after: Its model w+, which its next letter tells.
        sent: What its only neighbour sent in between.
        step_size: eta.
        pull: alpha times the weight of the edge.

    >>> probed([0.0], [1.0], [1.0], step_size=0.5, pull=0.5)
    array([-1.])
    """
    w, moved = np.asarray(before, float), np.asarray(after, float)
    told = (w - moved) / check.positive(step_size=step_size)
    return told - 2 * pull * (w - np.asarray(sent, float))


def single_record(found: LinearRows) -> tuple[np.ndarray, float]:
    """The one record (x, y) behind Q = xx', b = xy; up to its sign.

    >>> single_record(linear([[0.0], [1.0]], [[-6.0], [2.0]]))
    (array([2.]), 1.5)
    """
    values, vectors = np.linalg.eigh(found.q)
    x = np.sqrt(max(values[-1], 0)) * vectors[:, -1]
    x = x if x[np.argmax(np.abs(x))] > 0 else -x
    return x, float(found.b @ x / (x @ x))


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

    m (mean chance - gradient of the bias), rounded; a fresh model gives all classes
    the same chance.
    """
    found = rows * (np.asarray(mean_chance, float) - np.asarray(grad_b, float))
    return np.maximum(np.rint(found), 0).astype(int)
