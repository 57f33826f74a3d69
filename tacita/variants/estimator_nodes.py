"""Nodes of a graph that hold rows and a scikit-learn model each, of whatever kind.

Trees and ridge regressions have no parameters in common. What couples them is what
they predict on shared sets of unlabelled points, one for all edges or one for each: A.
Jung, "Federated Learning: From Theory to Practice", (64)-(66).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tacita import check
from tacita.encoding import Encoding
from tacita.problem import features
from tacita.problem.graph import Graph
from tacita.variants.compared import EdgeSets, reweights, sets_of_edges


class EstimatorNode(NamedTuple):
    """What one node holds; nothing of it is ever sent.

    Attributes:
        x: Features of its rows, (m_i, features).
        y: Their targets: values, or class codes.
        estimator: Its model, not fitted; a copy is fitted in every round.
    """

    x: np.ndarray
    y: np.ndarray
    estimator: Any


@dataclass(frozen=True, eq=False, repr=False)
class EstimatorNetwork:
    """A GTVMin problem over models of different kinds, (66).

    Make one with `estimator_network`.

    Attributes:
        ids: The nodes' ids, sorted.
        nodes: What each of them holds.
        graph: Who is coupled with whom.
        shared: The unlabelled points on which predictions are compared, (m', features).
        classes: What class codes stand for; None for a regression.
        sets: Whose edges' points those are; None where all edges share all of them.
        encoding: The names of the columns, by which those of other pandas tables are
            found; None of arrays.
    """

    ids: Sequence[Any]
    nodes: tuple[EstimatorNode, ...]
    graph: Graph
    shared: np.ndarray
    classes: np.ndarray | None = None
    sets: EdgeSets | None = None
    encoding: Encoding | None = None

    def sets_for(self, loss: Any) -> EdgeSets | None:
        """Points by edge, where edges have their own or the loss looks at each."""
        if self.sets is None and reweights(loss):
            return EdgeSets.of(self.graph, self.shared)
        return self.sets

    def __repr__(self) -> str:
        kinds = sorted({type(node.estimator).__name__ for node in self.nodes})
        rows = sum(len(node.y) for node in self.nodes)
        return (
            f"EstimatorNetwork({len(self.ids)} nodes, {rows} rows, "
            f"{len(self.shared)} shared points, {', '.join(kinds)})"
        )

    def rows(
        self,
        X: Any,  # noqa: N803
        y: Any,
        agent: Any,
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Other rows, of the same nodes, by node and with coded targets."""
        x = features.by_name(X, self.encoding, "X")
        return _by_node(self.ids, *_checked(x, y, agent), self.classes)

    def points(self, X: Any, agent: Any) -> list[tuple[np.ndarray, np.ndarray]]:  # noqa: N803
        """Rows without targets, by node: their places in X, and their features."""
        x = features.by_name(X, self.encoding, "X")
        x = np.asarray(check.finite(X=x), np.float64)
        check.shape((None, self.nodes[0].x.shape[1]), X=x)
        holder = check.column(agent=agent)
        check.shape((len(x),), agent=holder)
        return [(rows, x[rows]) for rows in _places(self.ids, holder)]


def estimator_network(
    X: Any,  # noqa: N803 - the name every user of scikit-learn expects
    y: Any,
    agent: Any,
    estimators: Any,
    graph: Any,
    shared: Any,
) -> EstimatorNetwork:
    """Give every node its rows and a model.

    Args:
        X: Features, shape (rows, features); of a pandas table the columns of other
            tables are found by their names.
        y: Targets, one per row: values for regressors, labels for classifiers.
        agent: Id of the node that holds the row.
        estimators: One scikit-learn estimator for all nodes, one per node in the order
            of the sorted ids, or a mapping from id to estimator. All regressors, or all
            classifiers.
        graph: `networkx` graph or `tacita.problem.Graph`, nodes named by ids.
        shared: Unlabelled points, shape (m', features), that all nodes know; or a
            mapping from every edge, a pair of ids, to the points that its two ends
            know.

    >>> from sklearn.linear_model import Ridge
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from tacita.problem import graph
    >>> X = np.arange(6.0)[:, None]
    >>> models = [Ridge(), DecisionTreeRegressor(), Ridge()]
    >>> estimator_network(X, X[:, 0], [0, 0, 1, 1, 2, 2], models, graph.ring(3), X)
    EstimatorNetwork(3 nodes, 6 rows, 6 shared points, DecisionTreeRegressor, Ridge)
    """
    x, target, holder = _checked(X, y, agent)
    ids = tuple(np.unique(holder).tolist())
    network = graph if isinstance(graph, Graph) else Graph.from_networkx(graph)
    network = network.match(ids)
    encoding = features.encoding_of(X)
    points, sets = _shared(_named(shared, encoding), network, x.shape[1])
    models = _models(estimators, ids)
    classes = np.unique(target) if _are_classifiers(models, ids) else None
    if classes is None:
        target = np.asarray(check.finite(y=target), np.float64)
    held = _by_node(ids, x, target, holder, classes)
    nodes = tuple(EstimatorNode(*r, m) for r, m in zip(held, models, strict=True))
    return EstimatorNetwork(ids, nodes, network, points, classes, sets, encoding)


def _named(shared: Any, encoding: Encoding | None) -> Any:
    """Shared points, of all edges or of each, in the columns of the rows."""
    if not isinstance(shared, Mapping):
        return features.by_name(shared, encoding, "shared")
    return {k: features.by_name(v, encoding, "shared") for k, v in shared.items()}


def _shared(
    given: Any, network: Graph, width: int
) -> tuple[np.ndarray, EdgeSets | None]:
    """All points that are compared on, and whose they are where edges differ."""
    if isinstance(given, Mapping):
        sets = EdgeSets.of(network, sets_of_edges(given, network, width))
        return sets.points, sets
    points = np.asarray(check.finite(shared=given), np.float64)
    check.shape((None, width), shared=points)
    if not len(points):
        check.refuse("expected shared with at least one point, got none")
    return points, None


def _checked(x: Any, y: Any, agent: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows = np.asarray(check.finite(X=x), np.float64)
    check.shape((None, None), X=rows)
    target, holder = check.column(y=y), check.column(agent=agent)
    check.shape((len(rows),), y=target)
    check.shape((len(rows),), agent=holder)
    return rows, target, holder


def _by_node(
    ids: Sequence[Hashable],
    x: np.ndarray,
    y: np.ndarray,
    holder: np.ndarray,
    classes: np.ndarray | None,
) -> list[tuple[np.ndarray, np.ndarray]]:
    if classes is not None:
        codes = np.searchsorted(classes, y).clip(max=len(classes) - 1)
        if not np.array_equal(classes[codes], y):
            check.refuse("y has a label that no node has rows of; leave its rows out")
        y = codes
    return [(x[rows], y[rows]) for rows in _places(ids, holder)]


def _places(ids: Sequence[Hashable], holder: np.ndarray) -> list[np.ndarray]:
    """The numbers of every node's rows, in their order."""
    place = {one: i for i, one in enumerate(ids)}
    index = np.array([place.get(one, -1) for one in holder.tolist()], int)
    if np.any(index < 0):
        stranger = holder.tolist()[int(np.argmin(index))]
        check.refuse(f"unknown node {stranger!r} in agent; its rows belong to nobody")
    order = np.argsort(index, kind="stable")
    ends = np.cumsum(np.bincount(index, minlength=len(ids)))[:-1]
    return np.split(order, ends)


def _models(estimators: Any, ids: tuple) -> list[Any]:
    if isinstance(estimators, Mapping):
        missing = [one for one in ids if one not in estimators]
        if missing:
            check.refuse(f"node {missing[0]!r} has no estimator; add it to estimators")
        return [estimators[one] for one in ids]
    if isinstance(estimators, Sequence) and not isinstance(estimators, str):
        if len(estimators) != len(ids):
            check.refuse(
                f"expected {len(ids)} estimators, one per node, got {len(estimators)}"
            )
        return list(estimators)
    return [estimators] * len(ids)


def _are_classifiers(models: list[Any], ids: tuple) -> bool:
    kinds = [_classifies(model, one) for model, one in zip(models, ids, strict=True)]
    if any(kinds) and not all(kinds):
        check.refuse("expected all regressors or all classifiers, got some of each")
    return kinds[0]


def _classifies(model: Any, node: Hashable) -> bool:
    """Whether a node's model is a classifier; refused unless that or a regressor."""
    from sklearn.base import is_classifier, is_regressor  # slow to import

    try:
        classifies = is_classifier(model)
        known = classifies or is_regressor(model)
    except (AttributeError, TypeError):  # what scikit-learn makes of foreign objects
        classifies = known = False
    if not known:
        is_class = isinstance(model, type)
        name = f"the class {model.__name__}" if is_class else type(model).__name__
        check.refuse(
            f"the estimator of node {node!r}, {name}, is neither a regressor nor a "
            "classifier of scikit-learn; pass an object such as Ridge()"
        )
    return classifies
