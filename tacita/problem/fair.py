"""Models that are fair to agents, exactly: what fair algorithms are compared with.

argmin_w  sum_i a_i f_i(w)^(q+1)       losses that are evener the larger q is
argmin_w  max_i f_i(w)                 the least worst loss
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.problem import proximal
from tacita.problem.model.per_agent import kinds_of
from tacita.problem.population import Population
from tacita.problem.solve import in_float64
from tacita.trees import double_precision

if TYPE_CHECKING:
    from tacita.problem.problem import Problem

#: Of the least worst loss, relatively.
_ACCURACY = 1e-5


def least_power(problem: Problem, q: float, weights: np.ndarray) -> np.ndarray:
    """argmin_w sum_i a_i f_i(w)^(q+1), (d,), by Newton steps in a trust region.

    Args:
        problem: Of linear models and losses without kinks.
        q: At least 0.
        weights: a_i of every agent.
    """
    from scipy.optimize import minimize  # slow to import, and runs do without

    first = problem.solve()
    with double_precision():
        exact = _exact(problem)
        # In units of the losses at the plain optimum, whose powers may be huge.
        unit = max(float(np.max(_losses(exact, first))), np.finfo(float).tiny)

        def total(w: Array) -> Array:
            return jnp.sum(jnp.asarray(weights) * (_losses(exact, w) / unit) ** (q + 1))

        slope, curvature = jax.jit(jax.grad(total)), jax.jit(jax.hessian(total))
        found = minimize(
            jax.jit(total),
            first,
            jac=slope,
            hess=curvature,
            method="trust-exact",
            options={"gtol": 1e-12, "maxiter": 500},
        )
        return _polished(np.asarray(found.x), slope, curvature)


def _polished(w: np.ndarray, slope: Any, curvature: Any) -> np.ndarray:
    """Newton steps while slopes shrink: values round off long before they do."""
    left = np.asarray(slope(w))
    while True:
        step, *_ = np.linalg.lstsq(np.asarray(curvature(w)), left)
        after = np.asarray(slope(w - step))
        if not np.linalg.norm(after) < np.linalg.norm(left):
            return w
        w, left = w - step, after


def least_worst(problem: Problem) -> np.ndarray:
    """argmin_w max_i f_i(w), (d,): the least bound that all losses keep."""
    from scipy.optimize import minimize  # slow to import, and runs do without

    first = problem.solve()
    with double_precision():
        exact = _exact(problem)
        unit, units = _units(exact, first)

        def told(v: Any) -> Any:
            return _losses(exact, first + units @ v) / unit

        losses, slopes = jax.jit(told), jax.jit(jax.jacobian(told))
        begin = np.append(np.zeros(len(first)), np.max(losses(np.zeros(len(first)))))
        up = np.append(np.zeros(len(first)), 1.0)
        room = {
            "type": "ineq",
            "fun": lambda v: v[-1] - np.asarray(losses(v[:-1])),
            "jac": lambda v: up - np.pad(np.asarray(slopes(v[:-1])), ((0, 0), (0, 1))),
        }
        found = minimize(
            lambda v: v[-1],
            begin,
            jac=lambda _: up,
            constraints=[room],
            method="SLSQP",
            options={"ftol": 1e-15, "maxiter": 1000},
        )
        at = np.asarray(found.x)[:-1]
        left = _slope_left(np.asarray(losses(at)), np.asarray(slopes(at)))
    if not left <= _ACCURACY:
        check.refuse(
            f"no model with the least worst loss was found (a slope of {left:.1e} is "
            "left); add l2 > 0, or leave the metric 'error' out"
        )
    return first + units @ at


def _units(population: Population, w: np.ndarray) -> tuple[float, np.ndarray]:
    """The size of losses at w, and moves that change their sum by about as much.

    Whatever the units of features and labels are, in these all is of size 1.
    """
    unit = max(float(np.max(_losses(population, w))), np.finfo(float).tiny)
    total = jax.hessian(lambda v: jnp.sum(_losses(population, v)) / unit)
    values, vectors = np.linalg.eigh(np.asarray(total(jnp.asarray(w))))
    steep = np.maximum(values, 1e-12 * max(values[-1], np.finfo(float).tiny))
    return unit, vectors / np.sqrt(steep)


def _slope_left(losses: np.ndarray, slopes: np.ndarray) -> float:
    """How far the slopes of the worst losses are from having a mean of zero."""
    from scipy.optimize import nnls

    worst = losses >= losses.max() * (1 - _ACCURACY)
    # Shares >= 0 that add up to one, and a mean slope of zero, in least squares.
    matrix = np.vstack([slopes[worst].T, np.ones(int(worst.sum()))])
    return float(nnls(matrix, np.append(np.zeros(slopes.shape[1]), 1.0))[1])


def _exact(problem: Problem) -> Any:
    if not all(isinstance(one, proximal.Smooth) for one in kinds_of(problem.model)):
        check.refuse(
            "the exact optimum of fair algorithms is known for linear models and "
            "losses without kinks only; leave the metric 'error' out"
        )
    return in_float64(problem.population)


def _losses(population: Population, w: Any) -> Any:
    return jax.vmap(lambda rows: population.local(rows).loss(w))(population.rows)
