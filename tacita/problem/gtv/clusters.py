"""Clustered federated learning: find nodes that are alike, train each group as one.

A. Jung, "Federated Learning: From Theory to Practice", sections 6.2 and 7.2. A node is
represented by a vector, see `tacita.problem.representations`. Groups of vectors are
found by k-means or a Gaussian mixture. The third way is GTVMin itself:
`GTVMin.clusters` tells which nodes it gave one model.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tacita import check
from tacita.problem.model import ridge
from tacita.problem.problem import Problem
from tacita.trees import in_double_precision, replace, tree_rows

METHODS = ("k-means", "gaussian mixture")
#: Systems with a smaller condition number are solved directly.
_WELL_POSED = 1e10


def cluster_nodes(
    vectors: Any, clusters: int, method: str = "k-means", seed: int = 0
) -> np.ndarray:
    """Group nodes by their vectors; returns the cluster number of every node.

    Numbers follow the first node of each cluster, so that they do not depend on chance.

    Args:
        vectors: One per node, (N, d), for example from `representations`.
        clusters: How many.
        method: "k-means" or "gaussian mixture" (with diagonal covariances).
        seed: Of the starting points, of which ten are tried.

    >>> cluster_nodes([[5.0], [0.1], [5.1], [0.0]], clusters=2).tolist()
    [0, 1, 0, 1]
    """
    from sklearn.cluster import KMeans  # slow to import
    from sklearn.mixture import GaussianMixture

    points = np.asarray(check.finite(vectors=vectors), float)
    check.shape((None, None), vectors=points)
    check.one_of(METHODS, method=method)
    if check.count(clusters=clusters) > len(points):
        check.refuse(f"expected clusters <= {len(points)}, the nodes, got {clusters}")
    if method == "k-means":
        means = KMeans(clusters, n_init=10, random_state=seed)  # pyright: ignore
        found = means.fit_predict(points)
    else:
        mixture = GaussianMixture(
            clusters, covariance_type="diag", n_init=10, random_state=seed
        )
        found = mixture.fit_predict(points)
    return in_order(found)


def in_order(labels: Any) -> np.ndarray:
    """The same clusters, numbered by their first node."""
    _, first, number = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[number]


def solve_clusters(problem: Problem, labels: Any) -> np.ndarray:
    """Every node's model, (N, d), when the nodes of a cluster train one model.

    Args:
        problem: The nodes' losses.
        labels: The cluster of every node.
    """
    groups = np.asarray(labels)
    check.shape((problem.n_agents,), labels=groups)
    models = np.empty((problem.n_agents, problem.dim))
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        models[members] = _solve_together(problem, members)
    return models


def _solve_together(problem: Problem, members: np.ndarray) -> np.ndarray:
    """The minimiser of the members' losses; linear models without compiling for it."""
    if problem.h is None and ridge.has_closed_form(problem.population):
        x, y, counts = (part[members] for part in problem.stacked())
        weight = float(problem.population.regulariser.weight)
        share = problem.weights[members] / np.maximum(counts, 1)
        scaled = x.astype(float) * share[:, None, None]
        # sum_i 2 rho_i X_i'X_i / m_i + l2 I, and the same sum of 2 rho_i X_i'y_i / m_i
        gram = 2 * np.einsum("nmd,nme->de", scaled, x)
        gram += len(members) * weight * np.eye(problem.dim)
        if np.linalg.cond(gram) < _WELL_POSED:
            return np.linalg.solve(gram, 2 * np.einsum("nmd,nm->d", scaled, y))
    return part(problem, members).solve()


def part(problem: Problem, agents: Any) -> Problem:
    """The problem of some agents alone, by number; its graph is left out."""
    chosen = np.asarray(agents, int)
    population = replace(
        problem.population, rows=_rows(problem.population.rows, chosen)
    )
    ids = tuple(problem.ids[i] for i in chosen)
    return replace(problem, population=population, ids=ids, graph=None)


@in_double_precision
def _rows(rows: Any, chosen: np.ndarray) -> Any:
    return tree_rows(rows, chosen)
