"""From a table of rows to a problem: checks, label codes, stacking by agent."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import numpy as np

from tacita import check
from tacita.encoding import SEEN_LABELS, Encoding, Origin
from tacita.problem import features, labels
from tacita.problem.chosen_model import Choice, choose
from tacita.problem.graph import Graph
from tacita.problem.model.linear import Model, require_fit
from tacita.problem.model.moments import Moments
from tacita.problem.model.per_agent import kinds_of
from tacita.problem.model.regulariser import Regulariser, regulariser_of
from tacita.problem.population import NARROW, Population, Rows
from tacita.problem.problem import Problem
from tacita.problem.prox import proximable
from tacita.trees import double_precision


def from_arrays(
    X: Any,  # noqa: N803 - the name every user of scikit-learn expects
    y: Any,
    agent: Any,
    model: str | Model | Mapping[Any, str | Model] = "logistic",
    l2: float = 0.0,
    h: Any = None,
    graph: Any = None,
    *,
    agents: Sequence[Any] | None = None,
    unlabelled: Sequence[Any] = (),
    regulariser: Regulariser | None = None,
    classes: Sequence[Any] | None = None,
    coded: bool = False,
    intercept: bool = False,
    test: tuple[Any, Any] | None = None,
    dtype: Any = None,
    bound: float | None = None,
    weights: Any = None,
    name: str = "arrays",
) -> Problem:
    """Make a problem from rows, labels and the id of the agent that holds each row.

    Args:
        X: Features, shape (rows, features); NumPy array or pandas table of numbers
            and of true/false, which become 1/0.
        y: Labels, one per row. Logistic takes -1/+1 or 0/1, softmax any labels.
        agent: Id of the agent that holds the row. Agents are ordered by sorted id. A
            negative number is refused: splits mark rows that nobody holds by -1.
        model: "linear", "ridge", "huber", "absolute", "logistic", "softmax", "moments"
            (means and products of rows), or a model object. Or a mapping from every
            agent's id to its own, such as {"a": "linear", "b": "huber"}: agents may
            have different losses with one number of parameters. Rows then are tested
            by `tacita.validate`, which knows whose they are.
        l2: Adds (l2/2)||w||^2 to each agent's loss. "ridge" needs it positive.
        h: A proximable function added once, see `tacita.problem.prox`.
        graph: `networkx` graph or `tacita.problem.Graph`, nodes named by agent ids.
        agents: All agents that must be there; one without rows is refused.
        unlabelled: Ids of further agents that have no labelled row: their loss is zero
            and they get a model from their neighbours on the graph (GTVMin only).
        regulariser: A smooth penalty in place of `l2`.
        classes: All labels of the task, in code order. Left out, those of logistic and
            hinge are -1 and +1, also in predictions; of softmax the sorted ones seen.
        coded: Whether labels are places in `classes` already, not labels.
        intercept: Append a column of ones to X.
        test: Features and labels held out, for the test metrics; where X is a pandas
            table, columns of another table are found by their names.
        dtype: float64 for the linear models and float32 for networks by default.
        bound: A public number, chosen without looking at the rows: rows whose features
            (with the column of ones, if any) have a larger l2 norm are scaled down to
            it. Theory then takes smoothness from it instead of from the rows, which
            private runs need. Test rows, and rows that the model is asked about later,
            are cut alike; labels need no bound, for clipped gradients bound what they
            do.
        weights: What agents' rows weigh, rho_i of (73): the problem then is
            sum_i rho_i (mean loss of agent i) with its penalties. "samples" weighs them
            by their rows, as if all rows were pooled (rho_i is 1 on average); or one
            number per agent, in the order of the sorted ids or as a mapping from them.
        name: Shown in reports.

    >>> import numpy as np
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> problem = from_arrays(X, [1.0, 2.0, 3.0], ["b", "a", "a"], model="ridge", l2=1)
    >>> problem.ids, problem.counts.tolist()
    (('a', 'b'), [2, 1])
    """
    features.same_order({"X": X, "y": y, "agent": agent})
    x = features.read(X, "X")
    given, encoding = labels.read(model, y, "y"), features.encoding_of(X)
    check.shape((x.shape[0],), y=given)
    holder = _holders(agent, x.shape[0])
    _require_rows(agents, holder)
    if intercept:
        x = features.with_ones(x)
    strangers = _strangers(unlabelled, holder)
    ids = np.unique(np.concatenate([holder, strangers]))
    number = np.searchsorted(ids, holder)
    choice = choose(model, x, given, number, ids.tolist(), classes, l2)
    chosen, class_names, linear = choice.model, choice.class_names, choice.linear
    codes = choice.codes(given, number, "y", coded)
    kind = _kind(dtype, linear or isinstance(chosen, Moments))
    if bound is not None:
        bound = float(check.positive(bound=check.common(bound=bound)))
        x = features.clipped(x, bound, kind)
    parts = regulariser_of(regulariser, l2), proximable(h, chosen.dim)
    rows = _stack(x, codes, number, kind, len(ids))
    ids = tuple(ids.tolist())
    if not linear:
        with double_precision():
            for one in kinds_of(chosen):
                require_fit(one, rows.x[0], rows.y[0])
    held_out = None
    if test is not None:
        if choice.kinds is not None:
            check.refuse(
                "test rows are no agent's, and agents have models of several kinds; "
                "leave test=, or test_share, out and use tacita.validate"
            )
        if not isinstance(test, tuple | list) or len(test) != 2:
            check.refuse("expected test=(X, y), the features and labels held out")
        like = _Like(choice, x.shape[1:], kind, intercept, bound, encoding)
        held_out = Rows(*like.read(*test, "test ", coded=coded), None)
    network = _network(graph, ids)
    narrow = linear and x.shape[1] <= NARROW
    if narrow:
        rows = rows._replace(x=np.ascontiguousarray(rows.x.swapaxes(1, 2)))
    rows = rows._replace(kind=choice.kinds)
    with double_precision():
        population = Population(
            rows=jax.tree.map(jax.numpy.asarray, rows),
            regulariser=parts[0],
            h=parts[1],
            test=jax.tree.map(jax.numpy.asarray, held_out),
            model=chosen,
            by_feature=narrow,
        )
    start = chosen.start().astype(kind)
    made = Problem(population, ids, start, class_names, name, network, bound)
    told = {"encoding": encoding, "label_kind": choice.label_kind}
    made = replace(made, intercept=intercept, **told)
    if choice.seen:
        made = replace(made, before=Origin((SEEN_LABELS,)))
    return made if weights is None else made.with_weights(weights)


def rows_like(
    problem: Problem,
    X: Any,  # noqa: N803
    y: Any,
    agent: Any,
    intercept: bool = False,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Other rows of the same agents: features, label codes, the agents' numbers."""
    row = problem.stacked()[0].shape[2:]
    kinds = problem.population.rows.kind
    kinds = None if kinds is None else np.asarray(kinds)
    choice = Choice(problem.model, problem.class_names, kinds)
    how = (intercept, problem.bound, problem.encoding)
    like = _Like(choice, row, problem.dtype, *how)
    holder = _holders(agent, len(check.column(agent=agent)))
    place = {one: i for i, one in enumerate(problem.ids)}
    number = np.array([place.get(one, -1) for one in holder.tolist()], int)
    if np.any(number < 0):
        stranger = holder.tolist()[int(np.argmin(number))]
        check.refuse(f"agent {stranger!r} is not one of the problem's; drop its rows")
    return *like.read(X, y, agent=number), number


class _Like(NamedTuple):
    """What further rows of a problem have to be like."""

    choice: Choice
    row: tuple[int, ...]  # the shape of one row's features
    kind: np.dtype
    intercept: bool
    bound: float | None
    encoding: Encoding | None

    def read(
        self, x: Any, y: Any, told: str = "", agent: Any = None, coded: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Features and label codes, checked; `told` comes before their names.

        The rows of `agent`, a number each, where agents have models of their own.
        """
        x = features.by_name(x, self.encoding, f"{told}X")
        x = features.read(x, f"{told}X")
        x = features.with_ones(x) if self.intercept else x
        check.shape((None, *self.row), **{f"{told}X": x})
        if agent is not None:
            check.shape((len(x),), agent=agent)
        given = labels.read(self.choice.model, y, f"{told}y")
        check.shape((len(x),), **{f"{told}y": given})
        codes = self.choice.codes(given, agent, f"{told}y", coded)
        x = features.within(x, self.bound, self.kind, f"{told}X")
        return x, _as_labels(codes, self.kind)


def _holders(agent: Any, rows: int) -> np.ndarray:
    """The id of every row's agent, checked."""
    holder = check.column(agent=agent)
    check.shape((rows,), agent=holder)
    if holder.dtype.kind == "i" and np.any(holder < 0):
        check.refuse(
            f"agent has {holder.min()} in {int(np.sum(holder < 0))} rows; a split "
            "marks rows that nobody holds by -1: drop them, or use Dataset.with_agents"
        )
    return holder


def _kind(dtype: Any, linear: bool) -> np.dtype:
    try:
        kind = np.dtype(dtype or (np.float64 if linear else np.float32))
    except TypeError:
        kind = dtype
    if kind not in (np.dtype(np.float32), np.dtype(np.float64)):
        check.refuse(f"expected dtype float32 or float64, got dtype={kind}")
    return kind


def _require_rows(agents: Sequence[Any] | None, holder: np.ndarray) -> None:
    empty = [] if agents is None else sorted(set(agents) - set(holder.tolist()))
    if empty:
        check.refuse(
            f"agent {empty[0]!r} has no rows; give it data or leave it out of agents="
        )


def _strangers(unlabelled: Sequence[Any], holder: np.ndarray) -> np.ndarray:
    """Ids of agents without rows, checked."""
    ids = np.asarray(unlabelled, holder.dtype if len(unlabelled) == 0 else None)
    numbers = [kind in "biuf" for kind in (ids.dtype.kind, holder.dtype.kind)]
    if numbers[0] != numbers[1]:
        check.refuse(
            f"expected unlabelled ids of the kind of agent, {holder.dtype}, got "
            f"{ids[0]!r}; name all agents alike"
        )
    both = np.intersect1d(ids, holder)
    if len(both):
        check.refuse(
            f"agent {both[0]!r} is named as unlabelled but has rows; leave them out"
        )
    return np.unique(ids)


def _as_labels(codes: np.ndarray, kind: np.dtype) -> np.ndarray:
    if np.issubdtype(codes.dtype, np.integer):
        return codes.astype(np.int32)
    return features.in_type(codes, kind, "y")


def _stack(
    x: np.ndarray, y: np.ndarray, agent: np.ndarray, kind: np.dtype, n: int
) -> Rows:
    """Sort the rows by agent, a number below n, and pad everybody to the longest."""
    counts = np.bincount(agent, minlength=n)
    longest = int(counts.max())
    order = np.argsort(agent, kind="stable")
    x, y = features.in_type(x[order], kind, "X"), _as_labels(y[order], kind)
    if np.all(counts == longest):
        shape = (n, longest)
        return Rows(x.reshape(*shape, *x.shape[1:]), y.reshape(shape), None)
    first = np.concatenate([[0], np.cumsum(counts)[:-1]])
    within = np.arange(len(x)) - np.repeat(first, counts)
    holder = np.repeat(np.arange(n), counts)
    padded_x = np.zeros((n, longest, *x.shape[1:]), kind)
    padded_y = np.zeros((n, longest), y.dtype)
    padded_x[holder, within], padded_y[holder, within] = x, y
    return Rows(padded_x, padded_y, counts.astype(np.int32))


def _network(graph: Any, ids: Sequence[Hashable]) -> Graph | None:
    if graph is None:
        return None
    if not isinstance(graph, Graph) and not hasattr(graph, "is_multigraph"):
        check.refuse(
            "expected graph a tacita.problem.Graph or a networkx graph, got a "
            f"{type(graph).__name__}; make one with tacita.problem.graph.ring(n) or "
            "Graph.from_edges(ids, pairs)"
        )
    made = graph if isinstance(graph, Graph) else Graph.from_networkx(graph)
    return made.match(ids)
