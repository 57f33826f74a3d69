"""Vertical learning: parties know different columns of the same rows, one the labels.

A. Jung, "Federated Learning: From Theory to Practice", section 6.4. The joint model has
scores s = sum_k X_k w_k, party k keeping X_k and w_k, and minimises

    F(w) = (1/m) sum_r loss(s_r, y_r) + (l2/2) ||w||^2.

Newton's method on F, each step by conjugate gradients: both touch the table only in
products X p = sum_k X_k p_k and X_k' q, so that parties need to exchange numbers per
row, never columns. Every party preconditions with its own block of the Hessian.

What leaves a feature party: X_k p_k (one number per row) and inner products. What
leaves the label holder: residuals, curvatures and products with them (one number per
row each), and step lengths. `docs/explanation-variants.md` says what these reveal.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.special import expit

from tacita import check
from tacita.trees import checked, count, needed, number


@checked
class VerticalNewton:
    """Newton's method over columns; `tacita.train_vertical` runs it.

    Attributes:
        l2: Adds (l2/2)||w||^2.
        tolerance: Stop when the gradient is shorter than this, times its first length
            where that is below 1.
        newton_steps: Steps at most; a linear model needs one.
        inner_steps: Conjugate-gradient exchanges in one step at most.
    """

    l2: float = needed(check.not_negative)
    tolerance: float = number(check.positive, 1e-10)
    newton_steps: int = count(50)
    inner_steps: int = count(500)

    source: ClassVar[str] = "A. Jung, Federated Learning, section 6.4"


class ColumnParty:
    """One party: its columns, its share of the joint model and of the next step.

    Attributes:
        w: Its parameters.
        step: Its share of the Newton step so far.
        rest: Its share of what the step leaves of -gradient.
        direction: Its share of the conjugate direction.
    """

    def __init__(self, x: np.ndarray, l2: float) -> None:
        self._x, self._l2 = x, l2
        self._factor: tuple = ()  # of its own block of the Hessian
        self.w = self.step = self.rest = self.direction = np.zeros(x.shape[1])

    def begin_step(self, residual: np.ndarray, curvature: np.ndarray) -> np.ndarray:
        """Open a Newton step; returns inner products <g, g> and <r, z> of its share."""
        x, l2 = self._x, self._l2
        # g_k = X_k' loss'(s) / m + l2 w_k
        gradient = x.T @ residual + l2 * self.w
        # H_kk = X_k' diag(loss''(s) / m) X_k + l2 I
        self._factor = _factor(
            x.T @ (curvature[:, None] * x) + l2 * np.eye(len(gradient))
        )
        self.step, self.rest = np.zeros_like(gradient), -gradient
        self.direction = cho_solve(self._factor, self.rest)
        return np.array([gradient @ gradient, self.rest @ self.direction])

    def scores(self) -> np.ndarray:
        """The letter of a party: X_k p_k."""
        return self._x @ self.direction

    def direction_square(self) -> float:
        """<p_k, p_k>."""
        return float(self.direction @ self.direction)

    def follow(self, weighted: np.ndarray, length: float) -> float:
        """Go `length` along the direction; returns the new <r, z> of its share."""
        # (H p)_k = X_k' (C X p) + l2 p_k, and `weighted` is C X p
        product = self._x.T @ weighted + self._l2 * self.direction
        self.step = self.step + length * self.direction
        self.rest = self.rest - length * product
        return float(self.rest @ cho_solve(self._factor, self.rest))

    def turn(self, beta: float) -> None:
        """The next conjugate direction: z + beta p."""
        self.direction = cho_solve(self._factor, self.rest) + beta * self.direction

    def norms(self) -> np.ndarray:
        """<w, w>, <w, step> and <step, step>: what a line search needs."""
        w, step = self.w, self.step
        return np.array([w @ w, w @ step, step @ step])

    def finish_step(self, length: float) -> None:
        """w_k <- w_k + length step_k."""
        self.w = self.w + length * self.step


def _factor(hessian: np.ndarray) -> tuple:
    try:
        factor = cho_factor(hessian)
        pivots = np.diag(factor[0]) ** 2
        # Who has the labels may have no columns at all.
        if not len(pivots) or pivots.min() > 1e-13 * pivots.max():
            return factor
    except LinAlgError:
        pass
    check.refuse(
        "the columns of a party are linearly dependent (all levels of two categories, "
        "say); pass l2 > 0 or leave a column out"
    )


class Loss(NamedTuple):
    """What the label holder knows: the labels, and the loss as a function of scores."""

    kind: str  # "linear" or "logistic"
    y: np.ndarray  # values, or -1/+1

    def value(self, s: np.ndarray) -> float:
        """Mean loss."""
        if self.kind == "linear":
            return float(np.mean((s - self.y) ** 2))
        return float(np.mean(np.logaddexp(0.0, -self.y * s)))

    def residual(self, s: np.ndarray) -> np.ndarray:
        """loss'(s) / m."""
        if self.kind == "linear":
            return 2 * (s - self.y) / len(s)
        return -self.y * expit(-self.y * s) / len(s)

    def curvature(self, s: np.ndarray) -> np.ndarray:
        """loss''(s) / m."""
        if self.kind == "linear":
            return np.full(len(s), 2.0 / len(s))
        return expit(s) * expit(-s) / len(s)
