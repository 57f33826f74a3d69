"""Graphs in which nobody is left alone: a barrier on the degrees.

    min_{W >= 0}  sum_ij W_ij Z_ij - sum_i log(sum_j W_ij) + (1/2) ||W||_F^2

with Z_ij = theta d_ij^2: V. Kalofolias, "How to learn a graph from smooth signals",
AISTATS 2016. The scale theta for about k neighbours is that of V. Kalofolias, N.
Perraudin, "Large scale graph learning from smooth signals", ICLR 2019.

At the solution W_ij = max(0, (u_i + u_j)/2 - Z_ij), where u_i is one over the degree of
node i. So n numbers are to be found in place of n^2, as the minimiser of

    sum_{i<j} max(0, (u_i + u_j)/2 - Z_ij)^2 - sum_i log u_i,

which is convex with the gradient (degree of i) - 1/u_i: Newton's method finds it.
"""

from __future__ import annotations

import numpy as np

from tacita.check import refuse
from tacita.problem.graph.found_edges import FoundEdges, all_pairs, positive

_MOST_STEPS = 200
_TOLERANCE = 1e-12


def log_degree_edges(distances: np.ndarray, k: int) -> FoundEdges:
    """The graph with about k neighbours a node; weights are those of the solution."""
    squares = distances**2
    return solve(scale_for(squares, k) * squares)


def scale_for(squares: np.ndarray, k: int) -> float:
    """Theta for about k >= 2 neighbours, from the k + 1 nearest of every node."""
    n = len(squares)
    if n < 4:
        refuse(f"expected 4 nodes or more for a log-degree graph, got {n}")
    if not 2 <= k < n - 1:
        refuse(f"expected k from 2 to {n - 2}, n - 2, for a log-degree graph, got {k}")
    apart = squares.copy()
    np.fill_diagonal(apart, np.inf)
    z = np.sort(apart, axis=1)[:, : k + 1]
    sums = z[:, :k].sum(axis=1)

    def bound(at: np.ndarray) -> float:
        gap = k * at**2 - sums * at
        # Nodes with k equally near ones have no bound of their own.
        told = gap > 1e-12 * k * at**2
        return float(np.mean(gap[told] ** -0.5)) if told.any() else np.nan

    theta = np.sqrt(bound(z[:, k - 1]) * bound(z[:, k]))
    if not np.isfinite(theta):
        refuse(f"all nodes have {k} equally near ones: no scale tells them apart")
    return float(theta)


def solve(costs: np.ndarray) -> FoundEdges:
    """The minimiser for Z = costs, zero on the diagonal, to 1e-12."""
    n = len(costs)
    apart = costs.copy()
    np.fill_diagonal(apart, np.inf)
    # Nobody is alone: a node and its nearest start with an edge of some weight.
    u = np.full(n, 2 * float(apart.min(axis=1).max()) + 1.0)
    for _ in range(_MOST_STEPS):
        half = (u[:, None] + u) / 2 - apart
        weights = np.maximum(half, 0)
        gradient = weights.sum(axis=1) - 1 / u
        if np.abs(gradient * u).max() < _TOLERANCE:
            break
        active = (half > 0) / 2.0
        # sum_j W_ij has the derivative 1/2 by u_i and by u_j for every edge.
        hessian = active + np.diag(active.sum(axis=1) + 1 / u**2)
        u = _step(apart, u, gradient, np.linalg.solve(hessian, gradient))
    pairs = all_pairs(n)
    weights = np.maximum((u[:, None] + u) / 2 - apart, 0)
    return positive(pairs, weights[pairs[:, 0], pairs[:, 1]])


def _step(
    apart: np.ndarray, u: np.ndarray, gradient: np.ndarray, direction: np.ndarray
) -> np.ndarray:
    """Newton's step, halved until u stays positive and the objective falls."""
    before, slope = _objective(apart, u), float(gradient @ direction)
    size = 1.0
    while size > 1e-10:
        tried = u - size * direction
        enough = before - 1e-4 * size * slope + 1e-13 * abs(before)
        if tried.min() > 0 and _objective(apart, tried) <= enough:
            return tried
        size /= 2
    return u


def _objective(apart: np.ndarray, u: np.ndarray) -> float:
    weights = np.maximum((u[:, None] + u) / 2 - apart, 0)
    return float((weights**2).sum() / 2 - np.log(u).sum())
