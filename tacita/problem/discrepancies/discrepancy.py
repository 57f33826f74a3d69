"""How unlike two nodes are: symmetric matrices with a zero diagonal."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.problem.discrepancies.least_squares import chow, wald
from tacita.problem.discrepancies.representations import (
    REPRESENTATIONS,
    label_counts,
    representations,
)
from tacita.problem.population import Population, Rows
from tacita.problem.problem import Problem
from tacita.trees import in_double_precision


def discrepancy(
    problem: Problem, kind: str = "parameters", at: Any = None
) -> np.ndarray:
    """d_ij of every two nodes, (N, N).

    Args:
        problem: The nodes' rows and losses.
        kind: "parameters", "gradient", "labels", "moments": the distance of
            `representations`. "label_overlap": the share of rows of i and j whose
            label the other does not have. "cross_loss": by how much the other's model
            is worse. "wald", "chow": whether least-squares fits differ by more than
            chance; chow is minus the logarithm of a p-value.
        at: As in `representations`.

    >>> from tacita.problem import synthetic
    >>> nodes = synthetic.linear(agents=4, features=2, samples=9)
    >>> discrepancy(nodes, "wald").shape
    (4, 4)
    """
    check.one_of(DISCREPANCIES, discrepancy=kind)
    if kind in REPRESENTATIONS:
        return euclidean(representations(problem, kind, at))
    if at is not None:
        check.refuse(f"at= is the point of 'gradient', not of {kind!r}")
    return _OTHERS[kind](problem)


def euclidean(vectors: np.ndarray) -> np.ndarray:
    """||z_i - z_j||, by differences: exact also for vectors that are nearly equal."""
    from scipy.spatial.distance import pdist, squareform  # slow to import

    return squareform(pdist(np.asarray(vectors, float)))


def label_overlap(problem: Problem) -> np.ndarray:
    """1 - (rows of i and j together whose label occurs at both) / (m_i + m_j)."""
    counts = label_counts(problem).astype(float)
    seen = (counts > 0).astype(float)
    shared = counts @ seen.T  # rows of i whose label occurs at j
    total = np.maximum(problem.counts[:, None] + problem.counts, 1)
    found = 1 - (shared + shared.T) / total
    np.fill_diagonal(found, 0.0)
    return found


def cross_loss(problem: Problem) -> np.ndarray:
    """max(0, [L_i(w_j) - L_i(w_i) + L_j(w_i) - L_j(w_j)] / 2), w_i the own models."""
    losses = _losses_of_all(problem, representations(problem))
    worse = losses - np.diag(losses)[:, None]
    return np.maximum(0.0, (worse + worse.T) / 2)


_OTHERS = {
    "label_overlap": label_overlap,
    "cross_loss": cross_loss,
    "wald": wald,
    "chow": chow,
}
DISCREPANCIES = (*REPRESENTATIONS, *_OTHERS)


@in_double_precision
def _losses_of_all(problem: Problem, models: np.ndarray) -> np.ndarray:
    """L_i(w_j), the mean loss without regulariser, (N, N)."""
    return np.asarray(_cross(problem.population, jnp.asarray(models)))


@jax.jit
def _cross(population: Population, models: Array) -> Array:
    def node(rows: Rows) -> Array:
        local = population.local(rows)

        def one(w: Array) -> Array:
            losses = local.own.losses(w, local.x, rows.y)
            return jnp.sum(local.mean_weights() * losses)

        return jax.vmap(one)(models)

    # Node after node: all pairs at once would need N^2 m numbers.
    return jax.lax.map(node, population.rows)
