"""Least absolute deviations, exactly: min_w (1/2) w'Hw + c'w + sum_k a_k |x_k.w - y_k|.

The absolute loss itself, and the hinge loss, which is that with a tilt c.

By the alternating direction method of multipliers on z = Xw - y, whose prox is a soft
threshold (S. Boyd et al., 2011, section 6.1); in `minimise`, once it shows which
residuals are zero and which sign the others have, a linear system says the rest.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jax import Array
from scipy.sparse.linalg import lsqr, splu

from tacita import check
from tacita.problem.model.regulariser import SquaredL2
from tacita.problem.population import Local, Population

_MOST_STEPS = 20_000
#: Steps after which it is looked whether signs are known, and the balance kept.
_LOOK = 50
#: How far the final answer may be from optimal, relative to the weights.
_TOLERANCE = 1e-9


def optimum(population: Population) -> np.ndarray:
    """The minimiser of sum_i f_i of agents with a kinked loss, (d,)."""
    if population.h is not None:
        name = type(population.model).__name__
        check.refuse(f"solve() of the loss {name} has no h; leave it out")
    x, y, weights, tilts = stacked_rows(population)
    ridge = float(population.regulariser.weight) * population.n_agents
    square = ridge * sp.eye_array(x.shape[1])
    return minimise(square, sp.csr_array(x), y, weights, x.T @ tilts)


class KinkedRows(NamedTuple):
    """All real rows, agent by agent, with f_i = sum_k a_k |x_k.w - y_k| + t_k x_k.w."""

    x: np.ndarray
    y: np.ndarray
    weights: np.ndarray  # a_k
    tilts: np.ndarray  # t_k


def stacked_rows(population: Population) -> KinkedRows:
    """All rows of agents with a kinked loss."""
    model: Any = population.model
    if not isinstance(population.regulariser, SquaredL2):
        name = type(model).__name__
        check.refuse(f"solve() of the loss {name} needs a squared regulariser, l2")
    x = np.asarray(population.rows.x, float)
    x = x.swapaxes(1, 2) if population.by_feature else x
    counts = np.asarray(population.counts)
    real = np.arange(x.shape[1]) < counts[:, None]
    rho = population.rows.weight
    each = (1.0 if rho is None else np.asarray(rho, float)) / np.maximum(counts, 1)
    weights = np.broadcast_to(each[:, None], real.shape)[real]
    y = np.asarray(population.rows.y, float)[real]
    return KinkedRows(x[real], y, model.absolute * weights, model.tilt * weights * y)


def minimise(h: Any, x: Any, y: np.ndarray, a: np.ndarray, c: Any = 0.0) -> np.ndarray:
    """argmin_w (1/2) w'Hw + c'w + sum_k a_k |x_k.w - y_k|, sparse, with a_k > 0.

    >>> x = sp.csr_array([[1.0], [2.0], [3.0], [1.0], [2.0]])
    >>> y = np.array([0.987, 2.187, 2.687, 1.187, 8.987])
    >>> minimise(sp.csr_array((1, 1)), x, y, np.ones(5)).round(6).tolist()
    [1.0935]
    """
    h, x = sp.csc_array(h), sp.csr_array(x)
    # In units in which rows, labels and weights are at most 1: w = (b/r) v, and all is
    # divided by b times the largest weight.
    r, b, most = (_largest(part) for part in (x.data, y, a))
    h, x, y = h * (b / r / r / most), x / r, y / b
    a, c = a / most, c / (r * most)
    found = _minimise(h, x, y, a, c)
    return found * (b / r)


def _largest(values: np.ndarray) -> float:
    """In size; 1 where all are zero."""
    return float(np.max(np.abs(values), initial=0.0)) or 1.0


def _minimise(h: Any, x: Any, y: np.ndarray, a: np.ndarray, c: Any) -> np.ndarray:
    rho = float(a.mean() / max(np.median(np.abs(y)), 1e-12))
    system = _factor(h, x, rho)
    z, u = np.zeros(len(y)), np.zeros(len(y))
    for step in range(1, _MOST_STEPS + 1):
        w = system.solve(rho * (x.T @ (y + z - u)) - c)
        gap = x @ w - y + u
        before, z = z, gap - np.clip(gap, -a / rho, a / rho)
        u = gap - z
        if step % _LOOK:
            continue
        found = _polished(h, x, y, a, c, z, np.concatenate([w, rho * u[z == 0]]))
        if found is not None:
            return found
        apart, moved = np.linalg.norm(x @ w - y - z), np.linalg.norm(z - before)
        if not 0.2 < apart / max(moved, 1e-300) < 5 and step <= _MOST_STEPS // 4:
            change = float(np.clip(np.sqrt(apart / max(moved, 1e-300)), 0.1, 10))
            rho, u = rho * change, u / change
            system = _factor(h, x, rho)
    check.refuse(
        "no minimiser of the loss found: several may be equally good; add l2 > 0, or "
        "rows"
    )


def _factor(h: Any, x: Any, rho: float) -> Any:
    matrix = (h + rho * (x.T @ x)).tocsc()
    try:
        return splu(matrix)
    except RuntimeError:  # singular
        check.refuse("the rows do not determine the model; add l2 > 0, or rows")


def _polished(
    h: Any,
    x: Any,
    y: np.ndarray,
    a: np.ndarray,
    c: Any,
    z: np.ndarray,
    near: np.ndarray,
) -> Any:
    """The minimiser, if these residuals have the right zeros and signs; else None.

    Rows that are zero together may depend on each other, such as equal rows, or the
    edges of a cycle: then many multipliers m solve the system, and not all of them are
    within their bounds. Those nearest to where the method is (`near`) come to be.
    """
    zero = z == 0
    signs, at = np.sign(z), x[np.flatnonzero(zero)]
    pulls = -(x.T @ (a * signs)) - c
    n, k = h.shape[0], at.shape[0]
    # H w + c + X' (a sign) + X_0' m = 0 and X_0 w = y_0, with |m| <= a on the zeros.
    system = sp.block_array([[h, at.T], [at, sp.csr_array((k, k))]], format="csc")
    right = np.concatenate([pulls, y[zero]])
    left = right - system @ near
    if n + k <= 3000:
        found = near + np.linalg.lstsq(system.toarray(), left, rcond=None)[0]
    else:
        limit = {"atol": 1e-15, "btol": 1e-15, "iter_lim": 20 * (n + k)}
        found = near + lsqr(system, left, **limit)[0]
    w, held = found[:n], found[n:]
    rest = x @ w - y
    scale = 1 + np.abs(y).max()
    right_signs = np.all(rest[~zero] * signs[~zero] >= -_TOLERANCE * scale)
    within = np.all(np.abs(held) <= a[zero] + _TOLERANCE * a.max())
    solved = np.abs(system @ found - right).max() <= _TOLERANCE * scale
    return w if right_signs and within and solved else None


def toward(local: Local, v: Array, pull: Any) -> Array:
    """argmin_w f_i(w) + (1/2) sum_k pull_k (w_k - v_k)^2, with a kinked loss.

    Args:
        local: One agent.
        v: Where it is pulled to, (d,).
        pull: How strongly: one number, or one per coordinate.
    """
    x, y = local.x, local.rows.y
    model: Any = local.model
    # In units in which labels, and scores at v, are at most 1: all is divided by the
    # square of that.
    size = jnp.maximum(jnp.max(jnp.abs(y)), jnp.max(jnp.abs(x @ v)))
    size = jnp.where(size > 0, size, 1).astype(v.dtype)
    share = jnp.broadcast_to(local.weighed(local.mean_weights()), y.shape)
    a, tilt = model.absolute * share / size, (model.tilt * share * y) @ x / size
    y, v = y / size, v / size
    diagonal = jnp.broadcast_to(pull + local.regulariser.weight, v.shape)
    # In units in which the pull is 1, one factorisation serves every balance rho.
    root = jnp.sqrt(diagonal)
    rows, centre = x / root, (pull * v - tilt) / root
    values, vectors = jnp.linalg.eigh(rows.T @ rows)
    small = 8 * jnp.finfo(v.dtype).eps

    def solve(rho: Array, right: Array) -> Array:
        return vectors @ ((vectors.T @ right) / (1 + rho * values))

    def body(carry: tuple) -> tuple:
        count, rho, z, u, _, _ = carry
        w = solve(rho, centre + rho * (rows.T @ (y + z - u)))
        score = rows @ w - y
        gap = score + u
        new = gap - jnp.clip(gap, -a / rho, a / rho)
        apart, moved = jnp.linalg.norm(score - new), jnp.linalg.norm(new - z)
        # Keep both residuals of one size, less and less often.
        ratio = jnp.sqrt(apart / jnp.maximum(moved, small))
        change = jnp.where(count % 20 == 19, jnp.clip(ratio, 0.5, 2.0), 1.0)
        change = jnp.where(count < 400, change, 1.0)
        error = (apart + moved) / (1 + jnp.linalg.norm(y))
        return count + 1, rho * change, new, (gap - new) / change, w, error

    def go_on(carry: tuple) -> Array:
        return (carry[-1] > small) & (carry[0] < 5000)

    # Between what suits the pull and what suits the kinks; it has the unit of both.
    steepest = jnp.maximum(jnp.max(values), jnp.finfo(v.dtype).tiny)
    rho = jnp.sqrt(jnp.maximum(jnp.mean(a), jnp.finfo(v.dtype).tiny) / steepest)
    rho = jnp.asarray(rho, v.dtype)
    none = jnp.zeros_like(y)
    first = (0, rho, none, none, root * v, jnp.asarray(jnp.inf, v.dtype))
    return size * jax.lax.while_loop(go_on, body, first)[4] / root
