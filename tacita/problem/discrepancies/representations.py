"""A vector for every node: what it would send to be compared with others.

A. Jung, "Federated Learning: From Theory to Practice", section 7.2. Such a vector is
computed from rows: where it leaves a node it is a letter as any other, which is clipped
and noised and has its price (`tacita.variants.private_graph`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tacita import check
from tacita.problem import moduli
from tacita.problem.graph import Graph
from tacita.problem.gtv.gtvmin import GTVMin
from tacita.problem.model.linear import Signed
from tacita.problem.problem import Problem
from tacita.trees import replace

REPRESENTATIONS = ("parameters", "gradient", "labels", "moments")


def representations(
    problem: Problem, kind: str = "parameters", at: Any = None
) -> np.ndarray:
    """A vector for every node, (N, r).

    Args:
        problem: The nodes' rows and losses.
        kind: "parameters": the minimiser of the node's own loss (needs a unique one:
            enough rows or l2 > 0). "gradient": grad L_i at a common point (157), which
            mixes differences of models and of features unless the point is near the
            models. "labels": the share of every class among its rows. "moments": mean
            and standard deviation of every column of features and label.
        at: Of "gradient": the common point; the mean of the nodes' own models if left
            out.

    >>> from tacita.problem import from_arrays
    >>> two = from_arrays([[0.0], [2.0], [5.0]], [1.0, 1.0, 3.0], [0, 0, 1], "linear")
    >>> representations(two, "moments").tolist()
    [[1.0, 1.0, 1.0, 0.0], [5.0, 3.0, 0.0, 0.0]]
    """
    check.one_of(REPRESENTATIONS, kind=kind)
    if at is not None and kind != "gradient":
        check.refuse(f"at= is the point of kind='gradient', not of {kind!r}")
    if kind == "gradient":
        return _gradients(problem, at)
    if kind == "labels":
        return label_counts(problem) / np.maximum(problem.counts, 1)[:, None]
    return _parameters(problem) if kind == "parameters" else _moments(problem)


def _parameters(problem: Problem) -> np.ndarray:
    if moduli.of(problem.population).smallest <= 0:
        check.refuse(
            "a node's own rows do not determine its parameters; add l2 > 0, or compare "
            "by kind='gradient' with at="
        )
    # Without coupling, GTVMin solves every node's own problem, all in one go.
    apart = Graph.from_edges(problem.n_agents, np.zeros((0, 2), int))
    alone = replace(problem, ids=apart.nodes, graph=apart)
    return GTVMin(alone, alpha=0.0).solve()


def _gradients(problem: Problem, at: Any) -> np.ndarray:
    point = _parameters(problem).mean(axis=0) if at is None else np.asarray(at)
    check.shape((problem.dim,), at=point)
    return problem.grad(np.broadcast_to(point, (problem.n_agents, problem.dim)))


def label_counts(problem: Problem) -> np.ndarray:
    """How many rows of every class every node has, (N, classes)."""
    classes = problem.model.classes
    if classes is None:
        check.refuse("labels are compared between classes; use 'moments' for numbers")
    codes, real = _codes(problem), _real(problem)
    return np.stack(
        [np.sum((codes == one) & real, axis=1) for one in range(classes)], axis=1
    )


def _codes(problem: Problem) -> np.ndarray:
    y = problem.stacked()[1]
    return (y > 0).astype(int) if isinstance(problem.model, Signed) else y


def _real(problem: Problem) -> np.ndarray:
    """Which rows are no padding, (N, m)."""
    rows = problem.stacked()[1].shape[1]
    return np.arange(rows) < problem.counts[:, None]


def _moments(problem: Problem) -> np.ndarray:
    x, y, counts = problem.stacked()
    flat = x.reshape(*x.shape[:2], -1).astype(float)
    classes = problem.model.classes
    if classes is not None and classes > 2:  # codes of classes have no order
        label = np.eye(classes)[np.asarray(y, int)]
    else:
        label = np.asarray(y, float)[..., None]
    columns = np.concatenate([flat, label], axis=2)
    # Padding rows have no weight, a node without rows no moments.
    weight = _real(problem)[..., None] / np.maximum(counts, 1)[:, None, None]
    mean = np.sum(weight * columns, axis=1)
    spread = np.sum(weight * (columns - mean[:, None]) ** 2, axis=1)
    return np.concatenate([mean, np.sqrt(spread)], axis=1)
