"""From a table of rows to a problem: checks, label codes, stacking by agent."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import jax
import numpy as np

from tacit import check
from tacit.problem.graph import Graph
from tacit.problem.local import NARROW, Population, Rows
from tacit.problem.models import Linear, Logistic, Model, Softmax
from tacit.problem.networks import Custom
from tacit.problem.problem import Problem
from tacit.problem.regulariser import Regulariser, SquaredL2
from tacit.trees import double_precision

MODELS = ("linear", "ridge", "logistic", "softmax")


def from_arrays(
    X: Any,  # noqa: N803 - the name every user of scikit-learn expects
    y: Any,
    agent: Any,
    model: str | Model = "logistic",
    l2: float = 0.0,
    h: Any = None,
    graph: Any = None,
    *,
    agents: Sequence[Any] | None = None,
    unlabelled: Sequence[Any] = (),
    regulariser: Regulariser | None = None,
    classes: Sequence[Any] | None = None,
    intercept: bool = False,
    test: tuple[Any, Any] | None = None,
    dtype: Any = None,
    name: str = "arrays",
) -> Problem:
    """Make a problem from rows, labels and the id of the agent that holds each row.

    Args:
        X: Features, shape (rows, features); NumPy array or pandas table of numbers.
        y: Labels, one per row. Logistic takes -1/+1 or 0/1, softmax any labels.
        agent: Id of the agent that holds the row. Agents are ordered by sorted id.
        model: "linear", "ridge", "logistic", "softmax", or a model object.
        l2: Adds (l2/2)||w||^2 to each agent's loss. "ridge" needs it positive.
        h: A proximable function added once, see `tacit.problem.prox`.
        graph: `networkx` graph or `tacit.problem.Graph`, nodes named by agent ids.
        agents: All agents that must be there; one without rows is refused.
        unlabelled: Ids of further agents that have no labelled row: their loss is zero
            and they get a model from their neighbours on the graph (GTVMin only).
        regulariser: A smooth penalty in place of `l2`.
        classes: All labels of the task, in code order; default the sorted labels seen.
        intercept: Append a column of ones to X.
        test: Features and labels held out, for the test metrics.
        dtype: float64 for the linear models and float32 for networks by default.
        name: Shown in reports.

    >>> import numpy as np
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> problem = from_arrays(X, [1.0, 2.0, 3.0], ["b", "a", "a"], model="ridge", l2=1)
    >>> problem.ids, problem.counts.tolist()
    (('a', 'b'), [2, 1])
    """
    features = _features(X, "X")
    labels = np.asarray(y)
    check.shape((features.shape[0],), y=labels)
    holder = np.asarray(agent)
    check.shape((features.shape[0],), agent=holder)
    _require_rows(agents, holder)
    if intercept:
        features = _with_ones(features)
    chosen, class_names = _choose_model(model, features, labels, classes, l2)
    codes = _encode(chosen, labels, class_names, "y")
    linear = isinstance(chosen, Linear | Logistic | Softmax)
    kind = np.dtype(dtype or (np.float64 if linear else np.float32))
    if kind not in (np.dtype(np.float32), np.dtype(np.float64)):
        check.refuse(f"expected dtype float32 or float64, got dtype={kind}")
    ids, rows = _stack(features, codes, holder, kind, _strangers(unlabelled, holder))
    held_out = None
    if test is not None:
        test_x = _features(test[0], "test X")
        test_x = _with_ones(test_x) if intercept else test_x
        check.shape((None, *features.shape[1:]), **{"test X": test_x})
        test_y = _encode(chosen, np.asarray(test[1]), class_names, "test y")
        check.shape((len(test_x),), **{"test y": test_y})
        held_out = Rows(test_x.astype(kind), _as_labels(test_y, kind), None)
    network = _network(graph, ids)
    narrow = linear and features.shape[1] <= NARROW
    if narrow:
        rows = rows._replace(x=np.ascontiguousarray(rows.x.swapaxes(1, 2)))
    with double_precision():
        population = Population(
            rows=jax.tree.map(jax.numpy.asarray, rows),
            regulariser=regulariser or SquaredL2(weight=l2),
            h=h,
            test=jax.tree.map(jax.numpy.asarray, held_out),
            model=chosen,
            by_feature=narrow,
        )
    start = chosen.start().astype(kind)
    return Problem(population, ids, start, class_names, name, network)


def rows_like(
    problem: Problem,
    X: Any,  # noqa: N803
    y: Any,
    agent: Any,
    intercept: bool = False,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Other rows of the same agents: features, label codes, the agents' numbers."""
    x = _features(X, "X")
    x = _with_ones(x) if intercept else x
    check.shape((None, *problem.stacked()[0].shape[2:]), X=x)
    labels, holder = np.asarray(y), np.asarray(agent)
    check.shape((len(x),), y=labels)
    check.shape((len(x),), agent=holder)
    codes = _encode(problem.model, labels, problem.class_names, "y")
    place = {one: i for i, one in enumerate(problem.ids)}
    number = np.array([place.get(one, -1) for one in holder.tolist()], int)
    if np.any(number < 0):
        stranger = holder[int(np.argmin(number))]
        check.refuse(f"agent {stranger!r} is not one of the problem's; drop its rows")
    return x.astype(problem.dtype), _as_labels(codes, problem.dtype), number


def _features(x: Any, name: str) -> np.ndarray:
    features = np.asarray(x)
    if features.ndim < 2:
        check.refuse(f"expected {name} with rows and columns, got {features.shape}")
    if features.shape[0] == 0:
        check.refuse(f"{name} has no rows; give every agent at least one")
    return np.asarray(check.finite(**{name: features}))


def _require_rows(agents: Sequence[Any] | None, holder: np.ndarray) -> None:
    empty = [] if agents is None else sorted(set(agents) - set(holder.tolist()))
    if empty:
        check.refuse(
            f"agent {empty[0]!r} has no rows; give it data or leave it out of agents="
        )


def _strangers(unlabelled: Sequence[Any], holder: np.ndarray) -> np.ndarray:
    """Ids of agents without rows, checked."""
    ids = np.asarray(unlabelled, holder.dtype if len(unlabelled) == 0 else None)
    both = np.intersect1d(ids, holder)
    if len(both):
        check.refuse(
            f"agent {both[0]!r} is named as unlabelled but has rows; leave them out"
        )
    return np.unique(ids)


def _with_ones(x: np.ndarray) -> np.ndarray:
    return np.concatenate([x, np.ones((*x.shape[:-1], 1), x.dtype)], axis=-1)


def _choose_model(
    model: str | Model,
    x: np.ndarray,
    y: np.ndarray,
    classes: Sequence[Any] | None,
    l2: float,
) -> tuple[Model, tuple[str, ...] | None]:
    if not isinstance(model, str):
        n = model.classes
        return model, None if n is None else tuple(str(c) for c in classes or range(n))
    check.one_of(MODELS, model=model)
    width = x.shape[1]
    if x.ndim != 2:
        check.refuse(f"{model} takes flat rows, got X of shape {x.shape}")
    if model in ("linear", "ridge"):
        if model == "ridge":
            check.positive(l2=l2)
        return Linear(width), None
    if model == "logistic":
        names = tuple(str(c) for c in classes) if classes is not None else ("-1", "+1")
        return Logistic(width), names
    found = list(classes) if classes is not None else np.unique(y).tolist()
    if len(found) < 2:
        check.refuse(f"softmax needs at least two classes, y has {found}")
    return Softmax(width, len(found)), tuple(str(c) for c in found)


def _encode(
    model: Model, y: np.ndarray, names: tuple[str, ...] | None, argument: str
) -> np.ndarray:
    if isinstance(model, Custom):
        return y
    if model.classes is None:
        return np.asarray(check.finite(**{argument: y}))
    if isinstance(model, Logistic):
        return _signs(y, names, argument)
    if names == tuple(str(c) for c in range(model.classes)) and _whole(y):
        inside = (y >= 0) & (y < model.classes)
        codes = y.astype(np.int32)
    else:
        code = {name: i for i, name in enumerate(names or ())}
        text = [str(v) for v in y.tolist()]
        codes = np.array([code.get(t, -1) for t in text], dtype=np.int32)
        inside = codes >= 0
    if not np.all(inside):
        row = int(np.argmin(inside))
        check.refuse(
            f"label {argument}[{row}]={y[row]!r} is outside the model's classes "
            f"{list(names or ())[:10]}; fix the label or pass classes="
        )
    return codes


def _whole(y: np.ndarray) -> bool:
    return bool(
        np.issubdtype(y.dtype, np.number) and np.all(y == np.floor(y.astype(float)))
    )


def _signs(y: np.ndarray, names: tuple[str, ...] | None, argument: str) -> np.ndarray:
    """Labels -1/+1 from -1/+1, 0/1, booleans, or two named classes."""
    if names not in (None, ("-1", "+1")):
        code = {name: sign for name, sign in zip(names, (-1.0, 1.0), strict=True)}
        y = np.array([code.get(str(v), np.nan) for v in y.tolist()])
    try:
        numbers = y.astype(float)
    except (TypeError, ValueError):
        check.refuse(
            f"logistic takes labels -1/+1 or 0/1, got {argument} of dtype {y.dtype}; "
            "pass classes=(negative, positive)"
        )
    seen = set(np.unique(numbers).tolist())
    if seen <= {-1.0, 1.0}:
        return numbers
    if seen <= {0.0, 1.0}:
        return 2 * numbers - 1
    odd = sorted(seen - {-1.0, 0.0, 1.0}) or [-1.0, 0.0]
    check.refuse(
        f"label {odd[0]:g} in {argument} is outside the model's set; logistic takes "
        "labels -1/+1 or 0/1, softmax takes any"
    )


def _as_labels(codes: np.ndarray, kind: np.dtype) -> np.ndarray:
    return codes.astype(np.int32 if np.issubdtype(codes.dtype, np.integer) else kind)


def _stack(
    x: np.ndarray,
    y: np.ndarray,
    agent: np.ndarray,
    kind: np.dtype,
    without_rows: np.ndarray,
) -> tuple[tuple[Hashable, ...], Rows]:
    """Sort the rows by agent and pad every agent to the longest one."""
    if np.issubdtype(agent.dtype, np.floating) and not np.all(np.isfinite(agent)):
        check.refuse("agent has NaN ids; name the agent of every row")
    ids = np.unique(np.concatenate([agent, without_rows]))
    position = np.searchsorted(ids, agent)
    counts = np.bincount(position, minlength=len(ids))
    n, longest = len(ids), int(counts.max())
    order = np.argsort(position, kind="stable")
    x, y = x[order], _as_labels(y[order], kind)
    if np.all(counts == longest):
        shape = (n, longest)
        rows = Rows(
            x.reshape(*shape, *x.shape[1:]).astype(kind), y.reshape(shape), None
        )
    else:
        first = np.concatenate([[0], np.cumsum(counts)[:-1]])
        within = np.arange(len(x)) - np.repeat(first, counts)
        holder = np.repeat(np.arange(n), counts)
        padded_x = np.zeros((n, longest, *x.shape[1:]), kind)
        padded_y = np.zeros((n, longest), y.dtype)
        padded_x[holder, within], padded_y[holder, within] = x, y
        rows = Rows(padded_x, padded_y, counts.astype(np.int32))
    return tuple(ids.tolist()), rows


def _network(graph: Any, ids: Sequence[Hashable]) -> Graph | None:
    if graph is None:
        return None
    made = graph if isinstance(graph, Graph) else Graph.from_networkx(graph)
    return made.match(ids)
