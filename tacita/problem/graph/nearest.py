"""Nearest neighbours, exactly: among points, or by a matrix of discrepancies.

Points of few dimensions are sorted into a k-d tree. In many dimensions such a tree
looks at every point anyway; there scikit-learn's blocked products, which keep the k
nearest of each block and nothing else, are faster and need little memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

#: Up to this many dimensions a tree is faster than looking at all points.
_TREE = 8


def nearest_points(points: np.ndarray, k: int) -> np.ndarray:
    """The numbers of every point's k nearest others, (n, k)."""
    n = len(points)
    if points.shape[1] > _TREE:
        from sklearn.neighbors import NearestNeighbors  # slow to import

        search: Any = NearestNeighbors(n_neighbors=k, algorithm="brute").fit(points)
        return search.kneighbors(return_distance=False)
    from scipy.spatial import KDTree  # loads slowly, and is needed here only

    index = np.asarray(KDTree(points).query(points, k=k + 1)[1])
    # Among points at the same place the point itself need not come first, or at all.
    own = index == np.arange(n)[:, None]
    own[~own.any(axis=1), -1] = True
    return index[~own].reshape(n, k)


def nearest_nodes(distances: np.ndarray, k: int) -> np.ndarray:
    """As `nearest_points`, by a matrix; of equally near nodes the first."""
    apart = distances.copy()
    np.fill_diagonal(apart, np.inf)
    return np.argsort(apart, axis=1, kind="stable")[:, :k]


def wanted_pairs(near: np.ndarray, mutual: bool = False) -> np.ndarray:
    """The edges that either end wants, or those that both want, (E, 2).

    >>> wanted_pairs(np.array([[1], [0], [1]])).tolist()
    [[0, 1], [1, 2]]
    >>> wanted_pairs(np.array([[1], [0], [1]]), mutual=True).tolist()
    [[0, 1]]
    """
    n, k = near.shape
    ends = np.sort(np.stack([np.repeat(np.arange(n), k), near.ravel()], axis=1), axis=1)
    code = np.sort(ends[:, 0] * n + ends[:, 1])
    # A pair that both ends want is there twice.
    new = np.append(True, code[1:] != code[:-1])
    found = code[1:][~new[1:]] if mutual else code[new]
    return np.stack([found // n, found % n], axis=1)
