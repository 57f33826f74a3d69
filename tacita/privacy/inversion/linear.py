"""Linear models: a few letters tell X'X/m and X'y/m exactly.

A. Jung, "Federated Learning: From Theory to Practice", exercises 9.1 and 10.1.
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
    slope, origin = _affine(w, g / 2)
    return LinearRows(slope, -origin)


def linear_after(
    points: Any, letters: Any, step_size: float, local_steps: int
) -> LinearRows:
    """The same from models after several local steps, as FedAvg sends them.

    R steps are the map w -> M w + c with M = (I - 2 eta Q)^R and (I - M) Q^-1 b = c, so
    Q has M's eigenvectors. An even R needs steps below 1/L, beyond which two Q's have
    the same M.

    Args:
        points: What the agent was told, (n, d).
        letters: What it answered, (n, d).
        step_size: eta.
        local_steps: R.

    >>> linear_after([[0.0], [1.0]], [[2.25], [2.5]], step_size=0.25, local_steps=2)
    LinearRows(q=array([[1.]]), b=array([3.]))
    """
    w, sent = np.atleast_2d(points).astype(float), np.atleast_2d(letters).astype(float)
    check.shape(w.shape, letters=sent)
    check.positive(step_size=step_size)
    check.count(local_steps=local_steps)
    m, c = _affine(w, sent)
    values, vectors = np.linalg.eigh(m)
    shrink = np.sign(values) * np.abs(values) ** (1 / local_steps)
    curvature = (1 - shrink) / (2 * step_size)
    # Where Q is 0, M = 1 and R steps move by 2 eta R b.
    moved = 2 * step_size * local_steps
    factor = np.where(
        np.abs(1 - values) > 1e-12,
        curvature / np.where(values == 1, 1, 1 - values),
        1 / moved,
    )
    b = vectors @ (factor * (vectors.T @ c))
    return LinearRows((vectors * curvature) @ vectors.T, b)


def _affine(points: np.ndarray, images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The symmetric M and the c of w -> M w + c, from some points and their images."""
    steps, changes = points[1:] - points[0], images[1:] - images[0]
    m = np.linalg.lstsq(steps, changes, rcond=None)[0]
    m = (m + m.T) / 2
    return m, images[0] - m @ points[0]


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
