"""Graphs learnt from what nodes hold: alike nodes are joined.

A. Jung, "Federated Learning: From Theory to Practice", chapter 7. A discrepancy d_ij
says how unlike two nodes are (`tacita.problem.discrepancies`); a method makes edges of
it. No method promises a connected graph, and for nodes of several kinds none should.

| method     | edges                                                              |
| ---------- | ------------------------------------------------------------------ |
| nearest    | to the k nearest of every node, wanted by either end or by both    |
| budget     | the n k / 2 smallest pairs, after a spanning tree if asked for     |
| regular    | the cheapest graph in which every node has degree k, (160)         |
| at_least   | the cheapest graph in which every node has degree k or more        |
| log_degree | about k a node, nobody alone; weights fall with the distance       |
| test       | pairs that a test cannot tell apart: no k to choose                |
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tacita import check
from tacita.problem.graph.cheapest_edges import budget_edges
from tacita.problem.graph.found_edges import FoundEdges, unweighted
from tacita.problem.graph.graph import Graph
from tacita.problem.graph.log_degree import log_degree_edges
from tacita.problem.graph.nearest import nearest_nodes, nearest_points, wanted_pairs
from tacita.problem.graph.regular import at_least_edges, regular_edges
from tacita.problem.graph.tested import untold_edges

if TYPE_CHECKING:
    from tacita.problem.problem import Problem

METHODS = ("nearest", "budget", "regular", "at_least", "log_degree", "test")
#: Neighbours of a node where nobody says how many.
DEFAULT_K = 4
#: Options that only some methods take.
_TAKES = {
    "k": ("nearest", "budget", "regular", "at_least", "log_degree"),
    "mutual": ("nearest",),
    "edges": ("budget", "at_least"),
    "connected": ("budget",),
    "level": ("test",),
}
_LEVEL = 0.05
#: More nodes than this make a matrix of discrepancies of more than 3 GB.
_MOST_NODES = 20_000
#: What a node sees of one at no distance, in median distances.
_CLOSE = 1e-3


def _gaussian(distances: np.ndarray) -> np.ndarray:
    squares = distances**2
    return np.exp(-squares / (np.median(squares) or 1.0))


def _inverse(distances: np.ndarray) -> np.ndarray:
    return 1 / (distances + _CLOSE * (np.median(distances) or 1.0))


#: Weights from distances; those of a method itself are multiplied by them.
WEIGHTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "own": np.ones_like,
    "gaussian": _gaussian,
    "inverse": _inverse,
}


def learned(
    problem: Problem,
    discrepancy: Any = "parameters",
    method: str = "nearest",
    k: int | None = None,
    *,
    at: Any = None,
    mutual: bool | None = None,
    edges: float | None = None,
    connected: bool | None = None,
    level: float | None = None,
    weights: str = "own",
) -> Graph:
    """A graph in which nodes that are alike are joined, named by the problem's ids.

    It is computed from rows without noise, so who sees it learns of them, and a private
    run on it is told not to hold: learn it from noisy letters there, with
    `tacita.variants.private_graph`.

    Args:
        problem: The nodes and their rows.
        discrepancy: How nodes are compared: "parameters", "gradient", "labels",
            "moments" (distances of vectors, see `representations`), "label_overlap",
            "cross_loss", "wald", "chow"; or vectors of your own, one per node, (N, r).
        method: How a graph is made of it; see above.
        k: Neighbours of a node; 4 if left out. Not for "test".
        at: Of "gradient": the common point; the mean of the nodes' own models if left
            out.
        mutual: Of "nearest": whether both ends must want an edge.
        edges: Of "budget": how many, in place of n k / 2. Of "at_least": at most.
        connected: Of "budget": whether to begin with a minimum spanning tree.
        level: Of "test": the share of false findings, 0.05 if left out.
        weights: "own" (1, or what the method found), "gaussian" exp(-d^2 / median),
            "inverse" 1 / (d + eps).

    >>> import tacita
    >>> nodes = tacita.problem.synthetic.linear(8, features=2, samples=9)
    >>> learned(nodes, "wald", "regular", k=3)
    Graph(8 nodes, 12 edges)
    """
    # The discrepancies import problems, which import graphs.
    from tacita.problem import discrepancies

    check.one_of(METHODS, method=method)
    options: dict[str, Any] = {
        "mutual": mutual,
        "edges": edges,
        "connected": connected,
        "level": level,
        "weights": weights,
    }
    if at is not None and not _is(discrepancy, "gradient"):
        check.refuse("at= is the point of discrepancy='gradient'; leave it out")
    if method == "test" and not _is(discrepancy, "chow"):
        check.refuse("method='test' needs p-values; use discrepancy='chow'")
    if not isinstance(discrepancy, str):
        vectors = np.asarray(check.finite(discrepancy=discrepancy), float)
        check.shape((problem.n_agents, None), discrepancy=vectors)
        made = from_vectors(vectors, method, k, **options)
    elif discrepancy in discrepancies.REPRESENTATIONS:
        vectors = discrepancies.representations(problem, discrepancy, at)
        made = from_vectors(vectors, method, k, **options)
    else:
        _refuse_many(problem.n_agents)
        matrix = discrepancies.discrepancy(problem, discrepancy)
        made = from_distances(matrix, method, k, **options)
    return dataclasses.replace(made.named(problem.ids), from_rows=True)


def _is(discrepancy: Any, name: str) -> bool:
    return isinstance(discrepancy, str) and discrepancy == name


def from_vectors(
    vectors: Any, method: str = "nearest", k: int | None = None, **options: Any
) -> Graph:
    """A graph over points by their Euclidean distances, as `learned`.

    "nearest" needs no matrix of all distances: a hundred thousand nodes are no problem.

    >>> from_vectors([[0.0], [0.1], [5.0], [5.2]], k=1).to_networkx().edges
    EdgeView([(0, 1), (2, 3)])
    """
    points = np.asarray(check.finite(vectors=vectors), np.float64)
    check.shape((None, None), vectors=points)
    if method != "nearest":
        from tacita.problem.discrepancies import euclidean

        _refuse_many(len(points))
        return from_distances(euclidean(points), method, k, **options)
    mutual, weights = _nearest_options(**options)
    near = nearest_points(points, _neighbours(k, len(points)))
    found = unweighted(wanted_pairs(near, mutual))
    i, j = found.pairs.T
    return _weighted(
        len(points), found, np.linalg.norm(points[i] - points[j], axis=1), weights
    )


def _nearest_options(
    mutual: bool | None = None, weights: str = "own", **others: Any
) -> tuple[bool, str]:
    _refuse_needless("nearest", {"mutual": mutual, **others})
    return bool(mutual), weights


def from_distances(
    distances: Any,
    method: str = "nearest",
    k: int | None = None,
    *,
    mutual: bool | None = None,
    edges: float | None = None,
    connected: bool | None = None,
    level: float | None = None,
    weights: str = "own",
) -> Graph:
    """A graph by a symmetric matrix of discrepancies, (N, N), as `learned`.

    For "test" the matrix holds minus the logarithms of p-values.

    >>> d = [[0, 1, 4], [1, 0, 2], [4, 2, 0]]
    >>> from_distances(d, "budget", edges=1.5).adjacency().toarray().tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.5], [0.0, 0.5, 0.0]]
    """
    d = _matrix(distances)
    n = len(d)
    given = {"k": k, "mutual": mutual, "edges": edges}
    _refuse_needless(method, {**given, "connected": connected, "level": level})
    if edges is not None:
        check.positive(edges=edges)
    if method == "nearest":
        near = nearest_nodes(d, _neighbours(k, n))
        found = unweighted(wanted_pairs(near, bool(mutual)))
    elif method == "budget":
        if edges is not None and k is not None:
            check.refuse("expected k or edges for a budget, got both")
        total = n * _neighbours(k, n) / 2 if edges is None else edges
        found = budget_edges(d, total, bool(connected))
    elif method == "regular":
        found = regular_edges(d, _neighbours(k, n))
    elif method == "at_least":
        found = at_least_edges(d, _neighbours(k, n), edges)
    elif method == "log_degree":
        found = log_degree_edges(d, _neighbours(k, n))
    else:
        share = _LEVEL if level is None else check.inside_unit(level=level)
        found = untold_edges(np.exp(-d), share)
    i, j = found.pairs.T
    return _weighted(n, found, d[i, j], weights)


def _weighted(n: int, found: FoundEdges, lengths: np.ndarray, weights: str) -> Graph:
    check.one_of(WEIGHTS, weights=weights)
    made = WEIGHTS[weights](lengths) if len(lengths) else lengths
    # A weight must not vanish, however far an edge of a spanning tree reaches.
    kept = np.maximum(found.weights * made, np.finfo(float).tiny)
    return Graph.from_edges(n, found.pairs, kept)


def _matrix(distances: Any) -> np.ndarray:
    d = np.asarray(check.finite(distances=distances), np.float64)
    check.shape((len(d), len(d)), distances=d)
    check.not_negative(distances=d)
    if len(d) < 2 or not np.allclose(d, d.T, rtol=1e-9, atol=0):
        check.refuse("expected distances a symmetric matrix of two nodes or more")
    return d


def _neighbours(k: int | None, n: int) -> int:
    wanted = min(DEFAULT_K, n - 1) if k is None else check.count(k=k)
    if wanted >= n:
        check.refuse(f"expected k < {n}, the number of nodes, got k={k}")
    return wanted


def _refuse_needless(method: str, given: dict[str, Any]) -> None:
    check.one_of(METHODS, method=method)
    for name, value in given.items():
        if name not in _TAKES:
            known = check.nearest(name, (*_TAKES, "weights"))
            check.refuse(f"unknown option {name}={value!r}; {known}")
        if value is not None and method not in _TAKES[name]:
            owners = " or ".join(repr(one) for one in _TAKES[name])
            check.refuse(f"{name}= is for method={owners}, not for {method!r}")


def _refuse_many(n: int) -> None:
    if n > _MOST_NODES:
        check.refuse(
            f"{n} nodes have {n * n / 1e9:.1f} billion discrepancies; compare vectors "
            "('parameters', 'gradient', 'moments') by method='nearest'"
        )
