"""The exact minimiser of sum_i f_i + h, in float64: what algorithms are tested against.

Smooth problems: Newton's method with a line search (Newton-conjugate-gradients when the
Hessian would be large). Composite problems: proximal gradient steps with momentum and
restart find the active set, after which Newton steps on the smooth part restricted to
the coordinates that the proximal operator lets move bring the residual to rounding.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.sparse.linalg import LinearOperator, cg

from tacita import check
from tacita.problem import least_absolute, moduli, smooth_and_kinked, units
from tacita.problem.model.linear import Huber, Kinked, Linear, Logistic, Softmax
from tacita.problem.model.moments import Moments
from tacita.problem.model.per_agent import kinds_of
from tacita.problem.population import Population
from tacita.problem.reweighted import reweighted
from tacita.trees import double_precision

#: Above this dimension the Hessian is applied to vectors, not formed.
_DENSE = 1200
_TOLERANCE = 1e-13
_MOST_STEPS = 200
_SOLVED = Linear | Huber | Logistic | Softmax | Moments


def solvable(problem: Any) -> bool:
    """Whether `optimum` knows how to minimise a problem of this model."""
    return _known(problem.model) and (problem.h is None or not _kinked(problem.model))


def _known(model: Any) -> bool:
    return all(isinstance(one, _SOLVED | Kinked) for one in kinds_of(model))


def _kinked(model: Any) -> bool:
    return any(isinstance(one, Kinked) for one in kinds_of(model))


def optimum(population: Population, start: np.ndarray) -> np.ndarray:
    """Minimise sum_i f_i + h to rounding; refuses what has no computable minimiser."""
    if not _known(population.model):
        check.refuse(
            "solve() needs a linear, logistic or softmax model: the exact optimum of "
            "other models is not computable; compare losses instead"
        )
    if isinstance(population.model, Kinked):
        return least_absolute.optimum(population)
    moduli.require_squares(np.asarray(population.rows.x, np.float64))
    with double_precision():
        exact = in_float64(population)
        w = np.asarray(start, dtype=np.float64)
        if _kinked(population.model):
            return smooth_and_kinked.optimum(exact, w)
        if isinstance(population.model, Huber):
            w = reweighted(exact, w)
        return _newton(exact, w) if population.h is None else _proximal(exact, w)


def in_float64(population: Population) -> Population:
    """The same agents with all rows in float64."""

    def widen(leaf: Array) -> Array:
        floating = jnp.issubdtype(leaf.dtype, jnp.floating)
        return leaf.astype(jnp.float64) if floating else leaf

    return dataclasses.replace(population, rows=jax.tree.map(widen, population.rows))


# Compiled once for all problems of a shape: the population is an argument.
@jax.jit
def _value(p: Population, w: Array) -> Array:
    return p.smooth_loss(w)


@jax.jit
def _grad(p: Population, w: Array) -> Array:
    return p.grad(w)


@jax.jit
def _hessian(p: Population, w: Array) -> Array:
    return jax.jacfwd(p.grad)(w)


@jax.jit
def _product(p: Population, w: Array, v: Array) -> Array:
    return jax.jvp(p.grad, (w,), (v,))[1]


class _Sizes(NamedTuple):
    """Of what is small: see `tacita.problem.units`."""

    slope: Any  # of every parameter
    curvature: Any
    value: float

    @classmethod
    def of(cls, p: Population, w: np.ndarray) -> _Sizes:
        first = np.asarray(_grad(p, jnp.asarray(w)))
        value = abs(float(_value(p, jnp.asarray(w))))
        if any(isinstance(model, Moments) for model in kinds_of(p.model)):
            whole = 1 + float(np.linalg.norm(first))
            return cls(whole, np.ones_like(first), max(value, 1.0))
        columns = units.of_columns(p)
        each = np.tile(columns, len(first) // len(columns))
        return cls(units.of_slopes(p) + np.abs(first), p.n_agents * each**2, value)

    def length(self, gradient: np.ndarray) -> float:
        """Of a gradient, in what its entries are made of."""
        return float(np.linalg.norm(gradient / self.slope))


def _newton_step(
    p: Population, w: np.ndarray, g: np.ndarray, sizes: _Sizes
) -> np.ndarray:
    if len(w) <= _DENSE:
        matrix = np.asarray(_hessian(p, jnp.asarray(w)))
        # In units in which features of any size are alike.
        own = np.maximum(np.abs(np.diag(matrix)), 1e-12 * sizes.curvature)
        unit = 1 / np.sqrt(own)
        # Where the loss is not convex, flip the negative eigenvalues: still downhill.
        even = unit[:, None] * (matrix + matrix.T) / 2 * unit
        values, vectors = np.linalg.eigh(even)
        values = np.maximum(np.abs(values), 1e-12 * max(1.0, abs(values[-1])))
        return -unit * (vectors @ ((vectors.T @ (unit * g)) / values))
    operator = LinearOperator(  # pyright: ignore[reportCallIssue]
        shape=(len(w), len(w)),
        dtype=np.float64,
        matvec=lambda v: np.asarray(_product(p, jnp.asarray(w), jnp.asarray(v))),  # pyright: ignore[reportCallIssue]
    )
    accuracy = min(1e-2, sizes.length(g))
    step, _ = cg(operator, -g, rtol=accuracy, maxiter=500)
    return step


def _newton(p: Population, w: np.ndarray) -> np.ndarray:
    sizes = _Sizes.of(p, w)
    best, best_norm, idle = w, np.inf, 0
    for _ in range(_MOST_STEPS):
        g = np.asarray(_grad(p, jnp.asarray(w)))
        norm = sizes.length(g)
        idle = idle + 1 if norm >= 0.5 * best_norm else 0
        if norm < best_norm:
            best, best_norm = w, norm
        # Near rounding the gradient stops falling: two idle steps say so.
        if best_norm <= 1e-3 * _TOLERANCE:
            break
        if best_norm <= _TOLERANCE * 10 and idle >= 2:
            break
        w = _line_search(p, w, g, _newton_step(p, w, g, sizes), sizes)
    if best_norm > 1e-9 or falls_for_ever(functools.partial(_value, p), best):
        check.refuse(
            f"no minimiser found (relative gradient {best_norm:.1e}): the loss may be "
            "flat or have none, as separable data without l2; add l2 > 0"
        )
    return best


def falls_for_ever(value: Callable[[Array], Array], w: np.ndarray) -> bool:
    """Whether the loss still falls at 2w: then the minimum lies at infinity."""
    here, further = (float(value(jnp.asarray(v))) for v in (w, 2 * w))
    return further < here - 1e-9 * abs(here)


def _line_search(
    p: Population, w: np.ndarray, g: np.ndarray, step: np.ndarray, sizes: _Sizes
) -> np.ndarray:
    """Armijo backtracking; near the optimum, where values round off, a full step."""
    value, slope = float(_value(p, jnp.asarray(w))), float(g @ step)
    if abs(slope) <= 1e-14 * max(sizes.value, abs(value)):
        return w + step
    size = 1.0
    while size > 1e-10:
        trial = w + size * step
        if float(_value(p, jnp.asarray(trial))) <= value + 1e-4 * size * slope:
            return trial
        size *= 0.5
    return w + size * step


def _proximal(p: Population, w: np.ndarray) -> np.ndarray:
    step = 1.0 / float(moduli.of(p).smoothness.sum())
    unit = units.of(p).models
    w = np.asarray(_accelerated(p, jnp.asarray(w), jnp.asarray(step), unit))
    for _ in range(50):
        moved = _restricted_newton(p, w, step, unit)
        if moved is None:
            break
        w = moved
    residual = _residual(p, w, step, unit)
    if residual > 1e-9:
        check.refuse(
            f"no minimiser of the composite problem found (residual {residual:.1e}); "
            "add l2 > 0 so that the problem is strongly convex"
        )
    return w


def _prox_step(p: Population, w: np.ndarray, step: float) -> np.ndarray:
    forward = jnp.asarray(w) - step * _grad(p, jnp.asarray(w))
    return np.asarray(p.h.prox(forward, step))


def _residual(p: Population, w: np.ndarray, step: float, unit: float) -> float:
    moved = _prox_step(p, w, step)
    return float(np.max(np.abs(moved - w))) / max(unit, float(np.max(np.abs(w))))


@jax.jit
def _accelerated(p: Population, w: Array, step: Array, unit: Any) -> Array:
    """FISTA with restart (Beck and Teboulle; O'Donoghue and Candes)."""

    def body(carry: tuple) -> tuple:
        x, y, t, _, k = carry
        new = p.h.prox(y - step * p.grad(y), step)
        restart = jnp.sum((y - new) * (new - x)) > 0
        t = jnp.where(restart, 1.0, t)
        t_new = (1 + jnp.sqrt(1 + 4 * t**2)) / 2
        return (
            new,
            new + (t - 1) / t_new * (new - x),
            t_new,
            jnp.max(jnp.abs(new - y)),
            k + 1,
        )

    def go_on(carry: tuple) -> Array:
        x, _, _, moved, k = carry
        return (moved > 1e-15 * (unit + jnp.max(jnp.abs(x)))) & (k < 50_000)

    first = (w, w, jnp.asarray(1.0), jnp.asarray(jnp.inf), 0)
    return jax.lax.while_loop(go_on, body, first)[0]


def _restricted_newton(
    p: Population, w: np.ndarray, step: float, unit: float
) -> np.ndarray | None:
    """One semi-smooth Newton step on w = prox(w - step grad F(w)); None if no better.

    With P the derivative of the proximal operator at the forward point, the step s
    solves (I - P (I - step H)) s = prox(...) - w. Coordinates that the operator holds
    (zeros of l1, bounds of a box) have a zero row in P and stay where they are.
    """
    if len(w) > _DENSE:
        return None
    matrix = np.asarray(_hessian(p, jnp.asarray(w)))
    forward = jnp.asarray(w) - step * _grad(p, jnp.asarray(w))
    derivative = np.asarray(jax.jacfwd(lambda v: p.h.prox(v, step))(forward))
    system = np.eye(len(w)) - derivative @ (np.eye(len(w)) - step * matrix)
    gap = _prox_step(p, w, step) - w
    try:
        moved = w + np.linalg.solve(system, gap)
    except np.linalg.LinAlgError:
        return None
    moved = _prox_step(p, moved, step)
    before = _residual(p, w, step, unit)
    after = _residual(p, moved, step, unit)
    return moved if after < before else None
