"""How well connected a graph stays when edges are lost.

The speed of every method on a graph follows lambda_2 of its Laplacian; at zero the
graph has fallen apart. To first order, losing edge {i, j} costs A_ij (u_i - u_j)^2,
with u the eigenvector of lambda_2; it never costs more than 2 A_ij. The worst
losses are found exactly, one after the other: the Laplacian without an edge is
L - A_ij (e_i - e_j)(e_i - e_j)', whose eigenvalues solve an equation in one unknown
(G. Golub, "Some modified matrix eigenvalue problems", SIAM Review 15(2), 1973).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tacita.check import count, refuse, seed
from tacita.problem.graph.builders import random_regular
from tacita.problem.graph.graph import Graph

#: All eigenvalues of a matrix with this side take seconds.
_LARGEST = 3000
_HALVINGS = 60


@dataclass(frozen=True, eq=False)
class EdgeLosses:
    """lambda_2 of a graph, whole and after losing edges.

    Attributes:
        lambda_2: Of the whole graph.
        worst: lambda_2 after each of the worst losses, one after the other.
        lost: The edges lost in the worst case, as pairs of node ids.
        random: lambda_2 after as many losses drawn at random, (draws, losses).
        regular: lambda_2 of random regular graphs with about as many edges, all of
            the mean weight.
        ideal: k - 2 sqrt(k - 1) times the mean weight, at k neighbours a node: no
            family of graphs keeps more as it grows (Alon and Boppana).
    """

    lambda_2: float
    worst: np.ndarray
    lost: tuple[tuple[Any, Any], ...]
    random: np.ndarray
    regular: np.ndarray
    ideal: float

    def __str__(self) -> str:
        lines = [f"lambda_2 {self.lambda_2:.4g}"]
        if len(self.regular):
            lines.append(
                f"random regular graphs with as many edges: {self.regular.mean():.4g}"
                f" (large ones at most {self.ideal:.4g})"
            )
        for k, value in enumerate(self.worst):
            at_random = f", at random {self.random[:, k].mean():.4g}"
            told = at_random if len(self.random) else ""
            lines.append(f"after {k + 1} lost: at worst {value:.4g}{told}")
        return "\n".join(lines)


def resilience(
    graph: Graph, losses: int = 3, draws: int = 10, seed_of_draws: int = 0
) -> EdgeLosses:
    """What is left of lambda_2 after losing edges, at worst and at random.

    Args:
        graph: Of at most 3000 nodes.
        losses: How many edges are lost, one after the other.
        draws: Random losses, and random regular graphs to compare with.
        seed_of_draws: Of both.

    >>> from tacita.problem.graph import ring
    >>> found = resilience(ring(6), losses=2, draws=0)
    >>> round(found.lambda_2, 6), found.worst.round(6).tolist()
    (1.0, [0.267949, 0.0])
    """
    if graph.n_nodes > _LARGEST:
        refuse(
            f"expected a graph of at most {_LARGEST} nodes, got {graph.n_nodes}; ask "
            "for graph.spectrum() instead"
        )
    if count(losses=losses) > graph.n_edges:
        refuse(f"expected losses <= {graph.n_edges}, the edges, got losses={losses}")
    rng = np.random.default_rng(seed(seed_of_draws=seed_of_draws))
    worst, lost = _worst(graph, losses)
    random = np.array(
        [_at_random(graph, losses, rng) for _ in range(count(0, draws=draws))]
    )
    regular, ideal = _regular(graph, draws, seed_of_draws)
    lambda_2 = graph.spectrum().lambda_2
    return EdgeLosses(lambda_2, worst, lost, random, regular, ideal)


def edge_sensitivity(graph: Graph) -> np.ndarray:
    """A_ij (u_i - u_j)^2 of every edge, in the order of `graph.pairs`.

    What losing the edge costs to first order; of a lambda_2 that occurs twice there
    are several u, and this is for one of them.
    """
    i, j, weights = graph.pairs()
    u = np.linalg.eigh(graph.laplacian().toarray())[1][:, 1]
    return weights * (u[i] - u[j]) ** 2


def _worst(graph: Graph, losses: int) -> tuple[np.ndarray, tuple[tuple[Any, Any], ...]]:
    i, j, weights = graph.pairs()
    laplacian, left = graph.laplacian().toarray(), np.arange(len(i))
    values, lost = [], []
    for _ in range(losses):
        after = without_each(laplacian, i[left], j[left], weights[left])
        one = left[int(np.argmin(after))]
        _remove(laplacian, i[one], j[one], weights[one])
        left = left[left != one]
        values.append(_second(laplacian))
        lost.append((graph.nodes[int(i[one])], graph.nodes[int(j[one])]))
    return np.array(values), tuple(lost)


def without_each(
    laplacian: np.ndarray, i: np.ndarray, j: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """lambda_2 of the graph without each of its edges, all from one decomposition."""
    values, vectors = np.linalg.eigh(laplacian)
    values, vectors = values[1:], vectors[:, 1:]  # all but the constant one
    parts = weights[:, None] * (vectors[i] - vectors[j]) ** 2
    # The smallest root of 1 = sum_k parts_k / (values_k - x), in [0, lambda_2]; the
    # right side grows with x.
    low, high = np.zeros(len(i)), np.full(len(i), values[0])
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        gaps = np.maximum(values - middle[:, None], np.finfo(float).tiny)
        below = (parts / gaps).sum(axis=1) < 1
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return (low + high) / 2


def _remove(laplacian: np.ndarray, i: Any, j: Any, weight: Any) -> None:
    """Take one edge out of the Laplacian, in place."""
    laplacian[[i, j], [i, j]] -= weight
    laplacian[[i, j], [j, i]] += weight


def _second(laplacian: np.ndarray) -> float:
    if len(laplacian) == 1:
        return 0.0
    value = float(np.linalg.eigvalsh(laplacian)[1])
    # Of a graph in parts it is zero, up to rounding.
    return value if value > 1e-12 * laplacian.diagonal().max() else 0.0


def _at_random(graph: Graph, losses: int, rng: np.random.Generator) -> np.ndarray:
    i, j, weights = graph.pairs()
    laplacian, values = graph.laplacian().toarray(), []
    for one in rng.choice(len(i), losses, replace=False):
        _remove(laplacian, i[one], j[one], weights[one])
        values.append(_second(laplacian))
    return np.array(values)


def _regular(graph: Graph, draws: int, first: int) -> tuple[np.ndarray, float]:
    """lambda_2 of random regular graphs as dense as this one, and its limit."""
    n, degree = graph.n_nodes, round(2 * graph.n_edges / graph.n_nodes)
    degree -= n * degree % 2  # n times the degree is even
    if not 2 <= degree < n:
        return np.zeros(0), 0.0
    weight = float(np.mean(np.asarray(graph.weights)))
    made = [random_regular(n, degree, seed=first + one) for one in range(draws)]
    values = np.array([one.spectrum().lambda_2 for one in made])
    return weight * values, weight * (degree - 2 * np.sqrt(degree - 1))
