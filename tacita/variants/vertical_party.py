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
        tolerance: Stop when the gradient's norm is below it.
        newton_steps: Steps at most; a linear model needs one.
        inner_steps: Conjugate-gradient exchanges in one step at most.
    """

    l2: float = needed(check.not_negative)
    tolerance: float = number(check.positive, 1e-10)
    newton_steps: int = count(50)
    inner_steps: int = count(500)

    source: ClassVar[str] = "A. Jung, Federated Learning, section 6.4"


class Block(NamedTuple):
    """One party's share of the joint model and of the search for its next step."""

    w: np.ndarray  # its parameters
    step: np.ndarray  # its share of the Newton step so far
    rest: np.ndarray  # its share of what the step leaves of -gradient
    direction: np.ndarray  # its share of the conjugate direction
    factor: tuple  # Cholesky factor of its own block of the Hessian


def empty(features: int) -> Block:
    """A party's block before the first step: the model is zero."""
    zero = np.zeros(features)
    return Block(zero, zero, zero, zero, ())


def begin_step(
    x: np.ndarray, block: Block, residual: np.ndarray, curvature: np.ndarray, l2: float
) -> tuple[Block, float, float]:
    """Open a Newton step; returns inner products <g, g> and <r, z> of this block."""
    # g_k = X_k' loss'(s) / m + l2 w_k
    gradient = x.T @ residual + l2 * block.w
    # H_kk = X_k' diag(loss''(s) / m) X_k + l2 I
    hessian = x.T @ (curvature[:, None] * x) + l2 * np.eye(len(gradient))
    factor = _factor(hessian)
    rest = -gradient
    direction = cho_solve(factor, rest)
    opened = Block(block.w, np.zeros_like(rest), rest, direction, factor)
    return opened, float(gradient @ gradient), float(rest @ direction)


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


def direction_scores(x: np.ndarray, block: Block) -> tuple[np.ndarray, float]:
    """The letter of a party: X_k p_k, and <p_k, p_k>."""
    return x @ block.direction, float(block.direction @ block.direction)


def follow(
    x: np.ndarray, block: Block, weighted: np.ndarray, length: float, l2: float
) -> tuple[Block, float]:
    """Go `length` along the direction; returns the new <r, z> of this block."""
    # (H p)_k = X_k' (C X p) + l2 p_k, and `weighted` is C X p
    product = x.T @ weighted + l2 * block.direction
    rest = block.rest - length * product
    moved = block._replace(step=block.step + length * block.direction, rest=rest)
    return moved, float(rest @ cho_solve(block.factor, rest))


def turn(block: Block, beta: float) -> Block:
    """The next conjugate direction: z + beta p."""
    fresh = cho_solve(block.factor, block.rest)
    return block._replace(direction=fresh + beta * block.direction)


def norms(block: Block) -> np.ndarray:
    """<w, w>, <w, step> and <step, step>: what a line search needs of the penalty."""
    w, step = block.w, block.step
    return np.array([w @ w, w @ step, step @ step])


def finish_step(block: Block, length: float) -> Block:
    """w_k <- w_k + length step_k."""
    return block._replace(w=block.w + length * block.step)


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
