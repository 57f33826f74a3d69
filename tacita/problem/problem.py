"""What is to be solved: minimise sum_i f_i(w) + h(w) over agents i = 1..N.

f_i is rho_i times the mean loss over the rows of agent i, plus its regulariser; h is
added once. All rho_i are 1 unless the problem was given weights.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from tacita import check, notebook
from tacita.encoding import Encoding, LabelKind, Origin
from tacita.problem import moduli, solve
from tacita.problem.graph import Graph
from tacita.problem.model.linear import Model, Signed
from tacita.problem.model.per_agent import kinds_of
from tacita.problem.population import Population
from tacita.problem.weights import agent_weights
from tacita.trees import double_precision, in_double_precision


@dataclass(eq=False, repr=False)
class Problem:
    """A problem over agents. Make one with `tacita.from_arrays` or `problem.synthetic`.

    Attributes:
        population: All that a compiled program needs of it, as one pytree.
        ids: The agents' ids, sorted; agent i of every array is `ids[i]`.
        start: The default starting point, shape (dim,).
        class_names: What the class codes stand for, as text, or None.
        name: Shown in reports.
        graph: Who is joined with whom, or None.
        bound: A public number that no row's features are longer than, or None.
        positions: Latitude and longitude of every agent, (N, 2), for maps; or None.
        encoding: How a row of a table becomes features; None takes features only.
        before: What its rows were looked at for before it was made, as far as its
            encoding does not say.
        intercept: Whether the last feature is a column of ones.
        target: What is predicted, or None.
        label_kind: What the labels are that the classes' names stand for.
        all_counts: Of a problem whose other rows are in other processes, everybody's
            numbers of rows; None where all rows are here.
    """

    population: Population
    ids: Sequence[Hashable]
    start: np.ndarray
    class_names: tuple[str, ...] | None = None
    name: str = "problem"
    graph: Graph | None = None
    bound: float | None = None
    positions: np.ndarray | None = None
    encoding: Encoding | None = None
    before: Origin = Origin()
    intercept: bool = False
    target: str | None = None
    label_kind: LabelKind = "words"
    all_counts: np.ndarray | None = None

    @property
    def whole(self) -> bool:
        """Whether all agents' rows are in this process."""
        return self.all_counts is None

    def _require_whole(self) -> None:
        if not self.whole:
            check.refuse(
                "this process holds the rows of its own agents only, and all are "
                "needed here; give step sizes, or a bound, in place of theory"
            )

    @property
    def origin(self) -> Origin:
        """What its rows were looked at for before it was made."""
        if self.encoding is None:
            return self.before
        return self.before.joined(self.encoding.origin)

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """What the features are called, a column of ones left out; or None."""
        return None if self.encoding is None else self.encoding.feature_names

    @property
    def n_agents(self) -> int:
        """Number of agents N."""
        return self.population.n_agents

    @property
    def dim(self) -> int:
        """Length of the parameter vector d."""
        return self.population.model.dim

    @property
    def model(self) -> Model:
        """The local model: the same for all agents, or several kinds (`PerAgent`)."""
        return self.population.model

    def model_of(self, agent: Hashable) -> Model:
        """The model of the agent with this id.

        >>> import tacita
        >>> x, own = np.eye(2), {"a": "linear", "b": "huber"}
        >>> two = tacita.from_arrays(x, [1.0, 2.0], ["a", "b"], model=own)
        >>> two.model_of("b")
        Huber(features=2, delta=1.0)
        """
        ids = list(self.ids)
        if agent not in ids:
            check.refuse(f"agent {agent!r} is not one of the problem's: {ids[:5]}, ...")
        kind = self.population.rows.kind
        if kind is None:
            return self.model
        return kinds_of(self.model)[int(kind[ids.index(agent)])]

    @property
    def h(self) -> Any:
        """The shared non-smooth part, or None."""
        return self.population.h

    @property
    def dtype(self) -> np.dtype:
        """The floating-point type of the data, the parameters and the results."""
        return np.dtype(self.population.rows.x.dtype)

    @property
    def counts(self) -> np.ndarray:
        """Number of rows of every agent."""
        if self.all_counts is not None:
            return self.all_counts
        return np.asarray(self.population.counts)

    @property
    def weights(self) -> np.ndarray:
        """What the rows of every agent weigh, rho_i of (73)."""
        weight = self.population.rows.weight
        return np.ones(self.n_agents) if weight is None else np.asarray(weight)

    @property
    def weighted(self) -> bool:
        """Whether agents were given weights."""
        return self.population.rows.weight is not None

    def with_weights(self, weights: Any) -> Problem:
        """The same agents with other weights, see `tacita.from_arrays`."""
        chosen = agent_weights(weights, self.ids, self.counts)
        if chosen is not None:
            with double_precision():
                chosen = jax.numpy.asarray(chosen.astype(self.dtype))
        rows = self.population.rows._replace(weight=chosen)
        return replace(self, population=replace(self.population, rows=rows))

    def stacked(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Features (N, m, ...), labels (N, m) and counts (N,); padding rows are 0."""
        rows = self.population.rows
        self._require_whole()
        x = np.asarray(rows.x)
        x = x.swapaxes(1, 2) if self.population.by_feature else x
        return x, np.asarray(rows.y), self.counts

    def loss(self, w: Any) -> float:
        """sum_i f_i(w) + h(w); for w of shape (N, d) every agent at its own."""
        return float(_evaluate("loss", self.population, self._point(w)))

    def grad(self, w: Any) -> np.ndarray:
        """The gradient of sum_i f_i; for w of shape (N, d) every agent's own."""
        return np.asarray(_evaluate("grad", self.population, self._point(w)))

    def accuracy(self, w: Any) -> float:
        """Share of rows whose label is predicted rightly."""
        if self.model.classes is None:
            check.refuse("accuracy needs a classification model; use loss instead")
        return float(_evaluate("accuracy", self.population, self._point(w)))

    @functools.cached_property
    def moduli(self) -> moduli.Moduli:
        """Strong convexity and smoothness of every f_i.

        From the public bound on rows where there is one, else from the rows.
        """
        if self.bound is not None:
            return moduli.within(self.population, self.bound, self.n_agents)
        self._require_whole()
        return moduli.of(self.population)

    @functools.cached_property
    def steepest(self) -> np.ndarray:
        """The smoothness of every f_i if all its rows were its steepest one.

        No batch is steeper. With a public bound on rows, that of any row within it.
        """
        if self.bound is not None:
            return self.moduli.smoothness
        self._require_whole()
        return moduli.of_rows(self.population)

    @functools.cached_property
    def _optimum(self) -> np.ndarray:
        self._require_whole()
        return solve.optimum(self.population, self.start)

    def solve(self) -> np.ndarray:
        """The exact minimiser, to 1e-12, computed once in float64.

        With a regulariser that is not convex, a point without slope.
        """
        return self._optimum.copy()

    def describe(self) -> dict[str, Any]:
        """What a run folder says of the problem: numbers and words only."""
        name = getattr(self.model, "name", type(self.model).__name__.lower())
        counts = self.counts
        return {
            "name": self.name,
            "model": name,
            "agents": self.n_agents,
            "dim": self.dim,
            "rows": int(counts.sum()),
            "rows_smallest_agent": int(counts.min()),
            "rows_largest_agent": int(counts.max()),
            "dtype": self.dtype.name,
            "regulariser": type(self.population.regulariser).__name__,
            "regulariser_weight": float(self.population.regulariser.weight),
            "weights": "given" if self.weighted else "none",
            "h": "none" if self.h is None else type(self.h).__name__,
            "graph": "none"
            if self.graph is None
            else f"{self.graph.n_nodes} nodes, {self.graph.n_edges} edges",
            "bound": "none" if self.bound is None else self.bound,
        }

    def holdings(self, by_class: bool = True) -> dict[str, Any]:
        """Who holds what: rows, and if wanted of each class, for every agent."""
        self._require_whole()
        counts, classes = self.counts, self.model.classes
        table: dict[str, Any] = {"agent": [str(i) for i in self.ids], "rows": counts}
        if by_class and classes is not None:
            y = np.asarray(self.population.rows.y)
            codes = (y > 0).astype(int) if isinstance(self.model, Signed) else y
            real = np.arange(y.shape[1]) < counts[:, None]
            names = self.class_names or tuple(str(c) for c in range(classes))
            for code, label in enumerate(names):
                column = f"class {label}" if label in table else label
                table[column] = np.sum((codes == code) & real, axis=1)
        return table

    def _point(self, w: Any) -> Any:
        self._require_whole()
        try:
            array = np.asarray(w, dtype=self.dtype)
        except (TypeError, ValueError):
            check.refuse(f"expected w an array of numbers, got w={w!r}")
        if array.shape not in ((self.dim,), (self.n_agents, self.dim)):
            check.refuse(
                f"expected w of shape ({self.dim},) or ({self.n_agents}, {self.dim}), "
                f"got {array.shape}"
            )
        return array

    def _repr_html_(self) -> str:
        told = self.describe()
        name = told.pop("name")
        rows = [(k.replace("_", " "), v) for k, v in told.items() if v != "none"]
        return notebook.table(f"Problem {name}", rows)

    def __repr__(self) -> str:
        told = self.describe()
        return (
            f"Problem({told['name']}: {told['model']}, {told['agents']} agents, "
            f"{told['rows']} rows, dim {told['dim']}, {told['dtype']})"
        )


@in_double_precision
def _evaluate(method: str, population: Population, w: Any) -> jax.Array:
    return _compiled(method, population, w)


@functools.partial(jax.jit, static_argnums=0)
def _compiled(method: str, population: Population, w: Any) -> jax.Array:
    return getattr(population, method)(w)
