"""The cheapest edges within a budget.

    min  sum_{i<j} A_ij d_ij   with   sum_{i<j} A_ij = edges,  0 <= A_ij <= 1      (161)

A. Jung, "Federated Learning: From Theory to Practice", chapter 7, summed over pairs,
with an equality: a mere upper bound would be met by no edge at all. The solution takes
the smallest discrepancies whole and a part of the next. It leaves nodes alone where
others are closer together; a minimum spanning tree first joins them all.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from tacita.check import refuse
from tacita.problem.graph.found_edges import FoundEdges, all_pairs, positive


def budget_edges(
    distances: np.ndarray, edges: float, connected: bool = False
) -> FoundEdges:
    """The solution of (161).

    Args:
        distances: d_ij, (n, n).
        edges: How many, in all; a part of one is a weight below 1.
        connected: Whether to begin with a minimum spanning tree, of n - 1 edges.
    """
    n = len(distances)
    pairs = all_pairs(n)
    if not 0 < edges <= len(pairs):
        refuse(f"expected edges in (0, {len(pairs)}], the pairs, got edges={edges:g}")
    order = np.argsort(distances[pairs[:, 0], pairs[:, 1]], kind="stable")
    if connected:
        if edges < n - 1:
            refuse(
                f"a tree over {n} nodes has {n - 1} edges, more than edges={edges:g}; "
                "allow more, or leave out connected"
            )
        tree = _in_tree(n, pairs, order)
        order = np.concatenate([order[tree[order]], order[~tree[order]]])
    whole = math.floor(edges)
    weights = np.zeros(len(pairs))
    weights[order[:whole]] = 1.0
    if whole < edges:
        weights[order[whole]] = edges - whole
    return positive(pairs, weights)


def _in_tree(n: int, pairs: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Which pairs are in the minimum spanning tree; of equal ones the first."""
    # Ranks in place of distances: none is zero, which would be no edge, and no two tie.
    rank = np.empty(len(pairs))
    rank[order] = np.arange(1, len(pairs) + 1)
    ranks = sp.csr_array((rank, (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    kept = csgraph.minimum_spanning_tree(ranks).data.astype(int)
    inside = np.zeros(len(pairs), bool)
    inside[order[kept - 1]] = True
    return inside
