"""The closed-form proximal step of a linear model: one small linear system.

    argmin_w  f_i(w) + (1/2) sum_k pull_k (w_k - v_k)^2

For the squared error this is ridge regression towards v. With fewer rows than features
the system has the size of the rows, by Woodbury's identity.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array
from jax.scipy.linalg import cho_solve

from tacit.problem.local import Local
from tacit.problem.models import Linear
from tacit.problem.regulariser import SquaredL2


def has_closed_form(local: Any) -> bool:
    """Whether f_i is a quadratic: a linear model with a quadratic regulariser."""
    return isinstance(local.model, Linear) and isinstance(local.regulariser, SquaredL2)


def toward(local: Local, v: Array, pull: Any) -> Array:
    """The minimiser of f_i(w) + (1/2) sum_k pull_k (w_k - v_k)^2, shape (d,).

    Args:
        local: One agent with a linear model.
        v: Where it is pulled to, (d,).
        pull: How strongly: one number, or one per coordinate.
    """
    weights = 2 * local.mean_weights()
    residual_pull = jnp.broadcast_to(weights, local.rows.y.shape) * local.rows.y
    # (56)-(58): (2 Q_i + S) w = 2 X_i^T y_i / m_i + pull v, S = pull + l2.
    right = residual_pull @ local.x + pull * v
    return solve(local, right, pull)


def solve(local: Local, right: Array, pull: Any) -> Array:
    """(2 Q_i + (pull + l2) I)^-1 right, with Q_i = X_i^T X_i / m_i."""
    one_pull = jnp.ndim(pull) == 0
    diagonal = jnp.asarray(pull + local.regulariser.weight, right.dtype)
    scale = jnp.sqrt(2 * local.mean_weights())
    rows = local.x * jnp.broadcast_to(scale, local.rows.y.shape)[:, None]
    m, d = rows.shape
    if m >= d or not one_pull:
        matrix = rows.T @ rows + jnp.diag(jnp.broadcast_to(diagonal, (d,)))
        return cho_solve((jnp.linalg.cholesky(matrix), True), right)
    # A node without neighbours and with few rows: the shortest solution, nearly.
    s = jnp.maximum(diagonal, jnp.finfo(right.dtype).tiny ** 0.5)
    # (Z^T Z + s I)^-1 r = (r - Z^T (s I + Z Z^T)^-1 Z r) / s
    gram = rows @ rows.T + s * jnp.eye(m, dtype=right.dtype)
    inner = cho_solve((jnp.linalg.cholesky(gram), True), rows @ right)
    return (right - rows.T @ inner) / s
