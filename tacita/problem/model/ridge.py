"""The closed-form proximal step of a linear model: one small linear system.

    argmin_w  f_i(w) + (1/2) sum_k pull_k (w_k - v_k)^2

For the squared error this is ridge regression towards v. With fewer rows than features
the system has the size of the rows, by Woodbury's identity.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.linalg import cho_solve

from tacita.problem.model import products
from tacita.problem.model.linear import Linear
from tacita.problem.model.regulariser import SquaredL2
from tacita.problem.population import Local

#: Up to this side a factorisation is written out: mapped over many agents, plain
#: arithmetic runs four times faster than as many calls of LAPACK (bench/gtv.py).
_WRITTEN_OUT = 8


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
    weights = local.weighed(2 * local.mean_weights())
    residual_pull = jnp.broadcast_to(weights, local.rows.y.shape) * local.rows.y
    # (56)-(58): (2 Q_i + S) w = 2 X_i^T y_i / m_i + pull v, S = pull + l2; both parts
    # of the rows rho_i times.
    right = products.combine(residual_pull, local.x) + pull * v
    return solve(local, right, pull)


def solve(local: Local, right: Array, pull: Any) -> Array:
    """(2 Q_i + (pull + l2) I)^-1 right, with Q_i = X_i^T X_i / m_i."""
    one_pull = jnp.ndim(pull) == 0
    diagonal = jnp.asarray(pull + local.regulariser.weight, right.dtype)
    x = local.x
    m, d = x.shape
    # Weights multiply small products, not the rows: that would copy all of them.
    weights = jnp.broadcast_to(local.weighed(2 * local.mean_weights()), (m,))
    if m >= d or not one_pull:
        matrix = (x.T * weights) @ x + jnp.diag(jnp.broadcast_to(diagonal, (d,)))
        return _positive_solve(matrix, right)
    s = diagonal  # positive: nobody is left alone with few rows
    # (X^T W X + s I)^-1 r = (r - X^T V (s I + V X X^T V)^-1 V X r) / s, V V = W
    v = jnp.sqrt(weights)
    gram = v[:, None] * products.gram(x) * v + s * jnp.eye(m, dtype=right.dtype)
    inner = _positive_solve(gram, v * products.times(x, right))
    return (right - products.combine(v * inner, x)) / s


def _positive_solve(matrix: Array, right: Array) -> Array:
    """matrix^-1 right for a positive definite matrix, by Cholesky's factorisation."""
    n = matrix.shape[0]
    if n > _WRITTEN_OUT:
        return cho_solve((jnp.linalg.cholesky(matrix), True), right)
    lower: dict[tuple[int, int], Array] = {}  # L, with 1 / L_jj on the diagonal
    for j in range(n):
        square = matrix[j, j] - sum(lower[j, k] ** 2 for k in range(j))
        lower[j, j] = jax.lax.rsqrt(square)
        for i in range(j + 1, n):
            inner = sum(lower[i, k] * lower[j, k] for k in range(j))
            lower[i, j] = (matrix[i, j] - inner) * lower[j, j]
    x = [right[i] for i in range(n)]
    for i in range(n):  # L y = right
        x[i] = (x[i] - sum(lower[i, k] * x[k] for k in range(i))) * lower[i, i]
    for i in reversed(range(n)):  # L^T x = y
        after = sum(lower[k, i] * x[k] for k in range(i + 1, n))
        x[i] = (x[i] - after) * lower[i, i]
    return jnp.stack(x)
