"""Graphs whose degrees are prescribed: linear programmes over all pairs.

    min  sum_{i<j} A_ij d_ij   with   0 <= A_ij <= 1,   sum_j A_ij = degree        (160)

A. Jung, "Federated Learning: From Theory to Practice", chapter 7, summed over pairs. It
has a solution for every degree up to n - 1. Its corners are multiples of 1/2: odd
cycles of halves occur, and must where n times an odd degree is odd. Solved exactly by
the simplex method of HiGHS. `at_least_edges` asks for degrees of `degree` or more.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from tacita.check import refuse
from tacita.problem.graph.found_edges import FoundEdges, all_pairs, positive

#: A corner's entries lie this close to multiples of 1/2.
_ROUNDING = 1e-6


def regular_edges(distances: np.ndarray, degree: int) -> FoundEdges:
    """The solution of (160): every node has the same degree."""
    n = len(distances)
    return _programme(distances, A_eq=_ends(n), b_eq=np.full(n, _possible(degree, n)))


def at_least_edges(
    distances: np.ndarray, degree: int, edges: float | None = None
) -> FoundEdges:
    """The cheapest graph in which every node has this degree or more.

    Args:
        distances: d_ij, (n, n).
        degree: What every node has at least.
        edges: How many there may be in all; no limit if left out.
    """
    n = len(distances)
    above, limits = -_ends(n), np.full(n, -float(_possible(degree, n)))
    if edges is not None:
        if edges < n * degree / 2:
            refuse(
                f"{n} nodes with {degree} neighbours each have {n * degree / 2:g} "
                f"edges or more, got edges={edges:g}"
            )
        above = sp.vstack([above, np.ones((1, above.shape[1]))]).tocsr()
        limits = np.append(limits, edges)
    return _programme(distances, A_ub=above, b_ub=limits)


def _possible(degree: int, n: int) -> int:
    if not 0 < degree < n:
        refuse(f"expected a degree from 1 to {n - 1}, n - 1, got k={degree}")
    return degree


def _ends(n: int) -> Any:
    """Which pairs end at every node, (n, pairs)."""
    pairs = all_pairs(n)
    columns = np.repeat(np.arange(len(pairs)), 2)
    ones = np.ones(len(columns))
    return sp.csr_array((ones, (pairs.ravel(), columns)), shape=(n, len(pairs)))


def _programme(distances: np.ndarray, **limits: Any) -> FoundEdges:
    from scipy.optimize import linprog  # loads slowly, and is needed here only

    pairs = all_pairs(len(distances))
    costs = distances[pairs[:, 0], pairs[:, 1]]
    # In units of their mean: the solver's tolerances are absolute.
    scale = costs.mean() or 1.0
    found = linprog(costs / scale, bounds=(0, 1), method="highs-ds", **limits)
    if found.status != 0:
        refuse(f"no graph was found: {found.message}")
    halves = np.round(2 * found.x) / 2
    exact = np.abs(found.x - halves).max() < _ROUNDING
    return positive(pairs, halves if exact else np.maximum(found.x, 0))
