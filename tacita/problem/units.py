"""The sizes that rows and labels bring with them, by which solvers say what is small.

Features may be metres or nanometres, labels too: a tolerance of 1e-9 says nothing until
it is known of how much. All are sizes to multiply a tolerance by, not bounds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita.problem.model.linear import Huber, Logistic, Softmax
from tacita.problem.model.per_agent import kinds_of
from tacita.problem.population import Local, Population


class Sizes(NamedTuple):
    """Of the agents of a problem, together.

    Attributes:
        rows: The root mean square length of a row.
        labels: The root mean square label.
    """

    rows: float
    labels: float

    @property
    def models(self) -> float:
        """Of a model whose scores are as large as the labels."""
        return self.labels / self.rows


def of(population: Population) -> Sizes:
    """Sizes of all rows; 1 where all of them, or all labels, are zero."""
    total = max(int(np.sum(np.asarray(population.counts))), 1)
    # Padding is zero.
    return Sizes(_root(population.rows.x, total), _root(population.rows.y, total))


def _root(values: Any, total: int) -> float:
    flat = np.asarray(values, np.float64).ravel()
    largest = float(np.max(np.abs(flat), initial=0.0))
    if not 0 < largest < np.inf:
        return 1.0
    # Divided first: the squares of very small numbers vanish.
    return largest * float(np.linalg.norm(flat / largest)) / np.sqrt(total)


def of_columns(population: Population) -> np.ndarray:
    """The root mean square of every feature, (features,); 1 where all are zero."""
    x = np.asarray(population.rows.x, np.float64)
    x = x.swapaxes(1, 2) if population.by_feature else x
    total = max(int(np.sum(np.asarray(population.counts))), 1)
    return np.array([_root(x[..., k], total) for k in range(x.shape[-1])])


def of_slope(population: Population) -> float:
    """What the rows' parts of the gradient of sum_i f_i add up to at zero, about."""
    return _steepness(population) * of(population).rows


def of_slopes(population: Population) -> np.ndarray:
    """The same for every parameter of a model of features, (dim,)."""
    columns = of_columns(population)
    # One number per feature; of softmax one per class and feature.
    each = np.tile(columns, population.model.dim // len(columns))
    return _steepness(population) * each


def _steepness(population: Population) -> float:
    """What all rows' residuals add up to at zero, about."""
    sizes, weight = of(population), population.rows.weight
    steepest = 0.0
    for model in kinds_of(population.model):
        if isinstance(model, Logistic | Softmax):
            slope = 1.0
        else:
            slope = sizes.labels
            slope = min(slope, model.delta) if isinstance(model, Huber) else slope
        steepest = max(steepest, slope)
    rho = population.n_agents if weight is None else float(np.sum(np.asarray(weight)))
    return 2 * rho * steepest


def of_models(local: Local) -> Array:
    """Of a model of one agent whose scores are as large as its labels, or 1."""
    longest = jnp.max(jnp.abs(local.x), initial=0.0)
    label = jnp.max(jnp.abs(local.rows.y), initial=0.0).astype(longest.dtype)
    known = (longest > 0) & (label > 0)
    return jnp.where(known, label / jnp.where(known, longest, 1), 1)


def of_own_columns(local: Local) -> Array:
    """The largest entry of one agent's features, one for every parameter, (dim,).

    Where all entries of a feature are zero that of all features, or 1.
    """
    largest = jnp.max(jnp.abs(local.x), axis=0, initial=0.0)
    whole = jnp.max(largest, initial=0.0)
    each = jnp.where(largest > 0, largest, jnp.where(whole > 0, whole, 1))
    return jnp.tile(each, local.model.dim // len(each))


def of_residuals(local: Local) -> Array:
    """What one agent's rows pull per unit of a feature where the model is zero."""
    label = jnp.max(jnp.abs(local.rows.y), initial=0.0).astype(local.x.dtype)
    if any(isinstance(model, Logistic | Softmax) for model in kinds_of(local.model)):
        # Codes of classes and signs: a residual is at most 1, whatever they are.
        label = jnp.maximum(label, 1)
    return 2 * local.weighed(label)
