"""Whether people can foresee what a model says, and models that they can.

A. Jung, "Federated Learning: From Theory to Practice", 8.3: a user expects u(x) where
the model says h(x). A model is explained to that user as far as both agree, (177); it
can be trained to agree more, (178).
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from tacita import check
from tacita.problem.held_out import with_counts
from tacita.problem.model.linear import Linear
from tacita.problem.model.wrapped import Weighted
from tacita.problem.problem import Problem
from tacita.trees import double_precision, replace

_DEPTH, _FEATURES = 3, 3


def surprise(predicted: Any, expected: Any) -> float:
    """(177): the mean of (h(x) - u(x))^2 over rows; 0 for a model that was foreseen.

    >>> surprise([1.0, 2.0], [1.0, 4.0])
    2.0
    """
    h, u = (np.asarray(v, float).ravel() for v in (predicted, expected))
    if len(h) != len(u):
        check.refuse(f"expected one guess per prediction, got {len(u)} for {len(h)}")
    return float(np.mean((h - u) ** 2))


def explained(predicted: Any, expected: Any) -> float:
    """1 - (177) / Var(u): the share of what the user expects that the model says.

    1 for a model that was foreseen, 0 for one that says nothing but the user's mean.
    """
    variance = float(np.var(np.asarray(expected, float)))
    if variance == 0:
        check.refuse("expected guesses that differ, got one number for all rows")
    return 1 - surprise(predicted, expected) / variance


def toward(problem: Problem, x: Any, expected: Any, rho: float) -> Problem:
    """(178): the same problem, with models drawn to what a user expects.

    Every node has the user's rows (x, u(x)) beside its own, so that its loss becomes
    L_i + rho E with E the mean loss on the user's rows: Q_i + rho X_t^T X_t / m_t and
    b_i + rho X_t^T u / m_t for a linear model. The user's rows must be public. Rows
    get longer by their weights, so a public bound on them is given up.

    Args:
        problem: What is solved.
        x: The user's rows, (m_t, features).
        expected: u(x) of each: a number, or a class as the problem codes it.
        rho: How much the user counts.
    """
    check.not_negative(rho=check.given(rho=rho))
    own, labels, counts = problem.stacked()
    x, expected = np.asarray(x, own.dtype), np.asarray(expected, labels.dtype).ravel()
    if own.ndim != 3 or x.shape != (len(expected), own.shape[2]) or not len(x):
        check.refuse(
            f"expected x of shape ({len(expected)}, {own.shape[-1]}), one row of "
            f"features per guess, got {x.shape}"
        )
    if min(counts.min(), problem.weights.min()) == 0:
        check.refuse(
            "a node without rows, or of weight 0, has no loss to explain; leave it out"
        )
    problem, rows = replace(problem, bound=None), own.shape[1]
    total = counts + len(x)
    stacked, answers = _beside(own, x, counts), _beside(labels, expected, counts)
    # A mean over all rows with these weights is L_i + rho E. An agent's own weight is
    # for its rows, not for the user's.
    mine = np.arange(rows + len(x)) < counts[:, None]
    user = rho * total / (len(x) * problem.weights)
    weights = np.where(mine, (total / counts)[:, None], user[:, None])
    if isinstance(problem.model, Linear):
        roots = np.sqrt(weights).astype(own.dtype)
        made = stacked * roots[..., None], answers * roots
        return with_counts(problem, *made, total)
    column = weights[..., None].astype(own.dtype)
    wide = np.concatenate([stacked, column], axis=2)
    population = replace(problem.population, model=Weighted(problem.model))
    if population.test is not None:
        test = population.test
        ones = np.ones((len(test.y), 1), own.dtype)
        with double_precision():
            seen = np.concatenate([np.asarray(test.x), ones], axis=1)
            population = replace(population, test=test._replace(x=seen))
    return with_counts(replace(problem, population=population), wide, answers, total)


def _beside(own: np.ndarray, more: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Every node's own rows and these behind them, then padding."""
    n, rows = own.shape[:2]
    made = np.zeros((n, rows + len(more), *own.shape[2:]), own.dtype)
    made[:, :rows] = own
    place = counts[:, None] + np.arange(len(more))
    made[np.arange(n)[:, None], place] = more
    return made


def best_rho(noise_var: float, dim: int, rows: int, gap: float) -> float:
    """Exercise 8.2: the rho that serves a lone node best, s^2 d / (m ||u - w||^2).

    With alpha = 0 and Q near I. A user who is nearly right should count for more.

    Args:
        noise_var: s^2, of the noise in the node's labels.
        dim: d, the number of features.
        rows: m, of the node.
        gap: ||u - w||^2, between the user's model and the true one.

    >>> best_rho(noise_var=1.0, dim=5, rows=20, gap=0.1)
    2.5
    """
    check.positive(gap=gap)
    return noise_var * dim / (rows * gap)


def expected_error(
    rho: Any, noise_var: float, dim: int, rows: int, gap: float
) -> np.ndarray:
    """Exercise 8.2: E ||model - true||^2 = (rho^2 gap + s^2 d/m) / (1 + rho)^2."""
    rho = np.asarray(rho, float)
    return (rho**2 * gap + noise_var * dim / rows) / (1 + rho) ** 2


def fidelity(
    x: Any,
    predicted: Any,
    kind: Literal["tree", "sparse"] = "tree",
    *,
    size: int | None = None,
    classes: bool = False,
) -> float:
    """How well something that a person can read says what the model says.

    Args:
        x: Rows, (m, features).
        predicted: What the model says of each.
        kind: "tree": a decision tree. "sparse": a linear function of a few features,
            for numbers only.
        size: Depth of the tree, or features of the linear function; 3 if left out.
        classes: Whether predictions are classes; then the share of rows on which both
            agree, else 1 - (177) / Var.
    """
    check.one_of(("tree", "sparse"), kind=kind)
    x, said = np.asarray(x, float), np.asarray(predicted).ravel()
    if classes:
        if kind == "sparse":
            check.refuse("a sparse linear function says numbers; use kind='tree'")
        depth = check.count(size=_DEPTH if size is None else size)
        tree = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(x, said)
        return float(np.mean(tree.predict(x) == said))
    if np.ptp(said) == 0:
        return 1.0  # a model that says one thing is foreseen by all
    if kind == "tree":
        depth = check.count(size=_DEPTH if size is None else size)
        tree = DecisionTreeRegressor(max_depth=depth, random_state=0).fit(x, said)
        found = tree.predict(x)
    else:
        found = _sparse_fit(
            x, said, check.count(size=_FEATURES if size is None else size)
        )
    return 1 - surprise(found, said) / float(np.var(said))


def _sparse_fit(x: np.ndarray, said: np.ndarray, most: int) -> np.ndarray:
    """Least squares on the features that orthogonal matching pursuit picks."""
    centred = x - x.mean(axis=0)
    lengths = np.linalg.norm(centred, axis=0)
    centred = centred[:, lengths > 1e-12 * np.linalg.norm(x, axis=0)]
    scaled = centred / np.linalg.norm(centred, axis=0)
    target = said - said.mean()
    fitted, picked = np.zeros_like(target), []
    for _ in range(min(most, scaled.shape[1])):
        gains = np.abs(scaled.T @ (target - fitted))
        gains[picked] = -1.0
        picked.append(int(gains.argmax()))
        chosen = scaled[:, picked]
        fitted = chosen @ np.linalg.lstsq(chosen, target)[0]
    return fitted + said.mean()
