"""The minimiser of sum_i f_i where some agents' losses have kinks and others' do not.

Newton's method on the smooth agents: their second-order model at w, beside the others'
losses as they are, has an exact minimiser (`least_absolute`). It is the next point, or
the end of a line search; where it is w itself, w is the minimiser of the sum.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jax import Array

from tacita import check
from tacita.problem import units
from tacita.problem.least_absolute import KinkedRows, minimise, stacked_rows
from tacita.problem.model.linear import Kinked
from tacita.problem.model.per_agent import kinds_of
from tacita.problem.population import Population
from tacita.trees import replace

_MOST_STEPS = 100
#: Steps shorter than this, relative to the model, are rounding.
_ROUNDING = 1e-13


def optimum(population: Population, w: np.ndarray) -> np.ndarray:
    """The minimiser, beginning at w; rows in float64."""
    if population.h is not None:
        check.refuse("solve() of losses with kinks has no h; leave it out")
    smooth, rows = _parted(population)
    x, unit = sp.csr_array(rows.x), units.of(population).models
    for _ in range(_MOST_STEPS):
        slope, curvature = (
            np.asarray(v) for v in _newton_model(smooth, jnp.asarray(w))
        )
        tilt = slope - curvature @ w + rows.x.T @ rows.tilts
        found = minimise(sp.csc_array(curvature), x, rows.y, rows.weights, tilt)
        step = found - w
        if np.max(np.abs(step)) <= _ROUNDING * (unit + np.max(np.abs(found))):
            return found
        w = _searched(population, w, step)
    check.refuse(
        "no minimiser found: losses of several kinds may be flat or have none, as "
        "separable data without l2; add l2 > 0"
    )


def _parted(population: Population) -> tuple[Population, KinkedRows]:
    """All agents, rows of kinked losses without weight; and these rows."""
    rows, models = population.rows, kinds_of(population.model)
    kinds, made = np.asarray(rows.kind), []
    kinked = [k for k, model in enumerate(models) if isinstance(model, Kinked)]
    for kind in kinked:
        own = jax.tree.map(lambda leaf, k=kind: np.asarray(leaf)[kinds == k], rows)
        part = replace(population, model=models[kind], rows=own._replace(kind=None))
        made.append(stacked_rows(part))
    weight = np.ones(len(kinds)) if rows.weight is None else np.asarray(rows.weight)
    rest = jnp.asarray(np.where(np.isin(kinds, kinked), 0.0, weight))
    smooth = replace(population, rows=rows._replace(weight=rest))
    return smooth, KinkedRows(*map(np.concatenate, zip(*made, strict=True)))


@jax.jit
def _newton_model(p: Population, w: Array) -> tuple[Array, Array]:
    return p.grad(w), jax.jacfwd(p.grad)(w)


@jax.jit
def _value(p: Population, w: Array) -> Array:
    return p.smooth_loss(w)


def _searched(population: Population, w: np.ndarray, step: np.ndarray) -> np.ndarray:
    """The first of halved steps that lowers the loss; near the minimiser a full one."""
    value = functools.partial(_value, population)
    before, size = float(value(jnp.asarray(w))), 1.0
    while size > 1e-9:
        trial = w + size * step
        # Where the loss no longer shows a step, the model is right to rounding.
        if float(value(jnp.asarray(trial))) <= before + 1e-15 * abs(before):
            return trial
        size *= 0.5
    return w + step
