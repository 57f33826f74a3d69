"""Least squares again and again, weighted by what a robust loss makes of residuals.

P. Huber, "Robust Statistics", 1981, 7.8: where residuals are long the loss is straight,
and Newton's step has no curvature to go by.
"""

from __future__ import annotations

import numpy as np

from tacita.problem import units
from tacita.problem.model.linear import Huber
from tacita.problem.population import Population

_STEPS = 2000


def reweighted(population: Population, w: np.ndarray) -> np.ndarray:
    """Near the minimiser of sum_i f_i for Huber's loss, from w."""
    model = population.model
    assert isinstance(model, Huber)
    x = np.asarray(population.rows.x, float)
    x = x.swapaxes(1, 2) if population.by_feature else x
    counts = np.maximum(np.asarray(population.counts), 1)
    real = np.arange(x.shape[1]) < np.asarray(population.counts)[:, None]
    rho = 1.0 if population.rows.weight is None else np.asarray(population.rows.weight)
    share = (real * np.reshape(rho / counts, (-1, 1))).ravel()
    rows, labels = x.reshape(-1, x.shape[2]), np.asarray(population.rows.y, float)
    unit = units.of(population).models
    ridge = population.n_agents * float(population.regulariser.curvature_bounds[0])
    for _ in range(_STEPS):
        away = np.abs(rows @ w - labels.ravel())
        # A long residual counts as if it were delta long.
        weights = share * np.minimum(1, model.delta / np.maximum(away, 1e-300))
        matrix = 2 * (rows.T * weights) @ rows + max(ridge, 0) * np.eye(len(w))
        new = np.linalg.lstsq(matrix, 2 * (rows.T * weights) @ labels.ravel())[0]
        moved, w = np.linalg.norm(new - w), new
        if moved <= 1e-14 * (unit + np.linalg.norm(w)):
            break
    return w
