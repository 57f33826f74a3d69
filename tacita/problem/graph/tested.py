"""Edges between nodes that a test cannot tell apart.

Y. Benjamini, Y. Hochberg, "Controlling the false discovery rate", J. R. Statist. Soc. B
57(1), 1995: of all pairs that are called different, about a share of `level` is wrongly
so. Pairs that are not called different are joined: with few rows these are all pairs.
"""

from __future__ import annotations

import numpy as np

from tacita.problem.graph.found_edges import FoundEdges, all_pairs, unweighted


def untold_edges(p_values: np.ndarray, level: float) -> FoundEdges:
    """The pairs whose difference is not found at this level.

    Args:
        p_values: Of the test that two nodes are alike, (n, n).
        level: The share of false findings that is allowed.
    """
    pairs = all_pairs(len(p_values))
    p = p_values[pairs[:, 0], pairs[:, 1]]
    ranked = np.sort(p)
    below = np.flatnonzero(ranked <= level * np.arange(1, len(p) + 1) / len(p))
    limit = ranked[below[-1]] if len(below) else -np.inf
    return unweighted(pairs[p > limit])
