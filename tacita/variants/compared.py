"""How predictions of neighbours are compared: on which points, and by which loss.

A. Jung, "Federated Learning: From Theory to Practice", (64): neighbours agree on a set
of points, D_ij, which may be another one for every edge, and on a loss L,

    d_ij = (1/m') sum over x in D_ij of L(h_i(x) - h_j(x)),

an even function of the difference. A loss other than squares is brought down by squares
that touch it from above where the predictions are now, L(r) <= w(r0) r^2 + constant
with w(r0) = L'(r0) / (2 r0): fits with weights, again and again (P. Huber, "Robust
Statistics", 1981, 7.8).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from tacita import check
from tacita.problem.graph import Graph
from tacita.trees import double_precision

LOSSES = ("squared", "log", "absolute", "huber")
#: Differences below this share of predictions' size count as so long: 1/|r| grows
#: without bound.
_NEAR = 1e-6


def checked_loss(**given: Any) -> Any:
    """One of `LOSSES`, or an even function of a difference."""
    (loss,) = given.values()
    if isinstance(loss, str):
        return check.one_of(LOSSES, **given)
    if not callable(loss) or isinstance(loss, type):
        check.refuse(
            f"expected loss one of {', '.join(LOSSES)}, or a function of a difference, "
            f"got loss={loss!r}"
        )
    function: Any = loss
    values = [float(function(r)) for r in (0.0, 0.7, -0.7, 2.0)]
    if not np.isclose(values[1], values[2]) or not values[0] < values[1] < values[3]:
        check.refuse(
            "expected a loss that grows with the size of a difference, whatever its "
            f"sign, got {values} at 0, 0.7, -0.7 and 2"
        )
    return loss


def value(loss: Any, gap: np.ndarray) -> np.ndarray:
    """L(r) of every difference; of probabilities ("log") their squared distance."""
    if callable(loss):
        function: Any = loss
        return np.array([float(function(r)) for r in gap.ravel()]).reshape(gap.shape)
    size = np.abs(gap)
    if loss == "absolute":
        return size
    if loss == "huber":
        near = np.minimum(size, 1.0)
        return near * (2 * size - near)
    return gap**2


def touching(loss: Any, gap: np.ndarray, scale: float) -> np.ndarray:
    """w(r) = L'(r) / (2 r) of every difference: 1 for squares.

    `scale` is the size of the predictions that differ.
    """
    size = np.maximum(np.abs(gap), _NEAR * (scale or 1.0))
    if callable(loss):
        return _slopes(loss, size) / (2 * size)
    if loss == "absolute":
        return 1 / (2 * size)
    if loss == "huber":
        return np.minimum(1.0, 1 / size)
    return np.ones_like(gap)


def _slopes(loss: Callable[[Any], Any], at: np.ndarray) -> np.ndarray:
    with double_precision():
        found = np.asarray(jax.vmap(jax.grad(loss))(at.ravel())).reshape(at.shape)
    if not np.all(np.isfinite(found) & (found >= 0)):
        check.refuse("the derivative of loss is not a number >= 0 for some difference")
    return found


def reweights(loss: Any) -> bool:
    """Whether its weights depend on the predictions."""
    return callable(loss) or loss in ("absolute", "huber")


class EdgeSets(NamedTuple):
    """The points of all edges, one after the other.

    A node's letter has a place for each; where it is no end of the edge, a zero. So a
    sum over neighbours has, at the points of an edge, what its other end predicts.

    Attributes:
        points: All of them, (P, features).
        first: One end of each point's edge, (P,).
        second: The other.
        weight: A_ij of its edge.
        share: A_ij / m' of its edge.
    """

    points: np.ndarray
    first: np.ndarray
    second: np.ndarray
    weight: np.ndarray
    share: np.ndarray

    @classmethod
    def of(cls, graph: Graph, sets: Any) -> EdgeSets:
        """From the points of every edge of `graph.pairs()`, or one set for all."""
        i, j, weights = (np.asarray(part) for part in graph.pairs())
        each = [sets] * len(i) if isinstance(sets, np.ndarray) else sets
        counts = np.array([len(one) for one in each], int)
        edge = np.repeat(np.arange(len(i)), counts)
        points = np.concatenate(each) if len(each) else np.zeros((0, 1))
        share = weights[edge] / counts[edge]
        return cls(points, i[edge], j[edge], weights[edge], share)

    def of_node(self, i: int) -> np.ndarray:
        """Numbers of the points that node i shares with a neighbour."""
        return np.flatnonzero((self.first == i) | (self.second == i))

    def discrepancy(self, loss: Any, letters: np.ndarray) -> float:
        """The sum over edges of A_ij d_ij."""
        at = np.arange(len(self.points))
        gap = letters[self.first, at] - letters[self.second, at]
        each = value(loss, gap).reshape(len(at), -1).sum(axis=1)
        return float(self.share @ each)


def sets_of_edges(given: Mapping[Any, Any], graph: Graph, width: int) -> list:
    """The points of every edge of `graph.pairs()`, from a mapping by pairs of ids."""
    by_pair = {}
    for pair, points in given.items():
        if not isinstance(pair, tuple) or len(pair) != 2:
            check.refuse(f"expected shared by pairs of node ids, got key {pair!r}")
        found = np.asarray(check.finite(**{f"shared[{pair}]": points}), np.float64)
        check.shape((None, width), **{f"shared[{pair}]": found})
        if not len(found):
            check.refuse(f"expected shared[{pair}] with at least one point, got none")
        by_pair[frozenset(pair)] = found
    i, j, _ = graph.pairs()
    edges = [(graph.nodes[a], graph.nodes[b]) for a, b in zip(i, j, strict=True)]
    for edge in edges:
        if frozenset(edge) not in by_pair:
            check.refuse(f"the edge {edge} has no shared points; add shared[{edge}]")
    known = {frozenset(edge) for edge in edges}
    for pair in given:
        if frozenset(pair) not in known:
            check.refuse(f"shared has points of {pair}, which no edge joins")
    return [by_pair[frozenset(edge)] for edge in edges]
