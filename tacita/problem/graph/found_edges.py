"""What a method of learning a graph finds: pairs of nodes and their weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class FoundEdges(NamedTuple):
    """Edges by the numbers of their ends.

    Attributes:
        pairs: Both ends, the smaller first, (E, 2).
        weights: A_ij > 0 of every edge, (E,).
    """

    pairs: np.ndarray
    weights: np.ndarray


def unweighted(pairs: np.ndarray) -> FoundEdges:
    """Edges of weight 1."""
    return FoundEdges(pairs, np.ones(len(pairs)))


def positive(pairs: np.ndarray, weights: np.ndarray) -> FoundEdges:
    """Those edges whose weight is not zero."""
    kept = weights > 0
    return FoundEdges(pairs[kept], weights[kept])


def all_pairs(n: int) -> np.ndarray:
    """Every pair i < j of n nodes, (n (n - 1) / 2, 2)."""
    return np.stack(np.triu_indices(n, k=1), axis=1)
