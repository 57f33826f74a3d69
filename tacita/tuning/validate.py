"""Errors of every node on rows it was not trained on, and what they say.

Algorithm 1 and section 2.4 of A. Jung, "Federated Learning: From Theory to Practice",
for every node of a network at once.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tacita import check
from tacita.problem.arrays import rows_like
from tacita.problem.graph import Graph
from tacita.problem.held_out import node_losses
from tacita.problem.model.linear import Signed
from tacita.problem.model.per_agent import kinds_of
from tacita.problem.problem import Problem
from tacita.theory.diagnosis import FACTOR, Verdict, diagnose
from tacita.trace import Run
from tacita.trees import in_double_precision
from tacita.tuning.prediction_scores import Scores, of_classes, of_values

#: Larger networks get no map: nobody could tell the nodes apart.
_MAPPED = 2000


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class NodeErrors:
    """Training and validation errors of every node beside a baseline.

    Attributes:
        ids: The nodes.
        train: E_t of every node; NaN for a node without rows.
        validation: E_v of every node, likewise.
        baseline: E_ref of every node, or None.
        baseline_name: What the baseline is.
        factor: From here on one error counts as much larger than another.
        positions: Latitude and longitude of every node, (N, 2), or None.
        graph: The network, drawn on the map, or None.
        scores: How good predictions for the validation rows are, of every node and
            pooled; None where it was not measured, or some nodes predict values and
            others classes.
        parameters_per_row: d/m_i, the size of every node's model over that of its
            data, (section 2.5): the larger, the nearer is overfitting. Or None.

    >>> told = NodeErrors(ids=("a", "b"), train=[1.0, 0.1], validation=[1.0, 1.0],
    ...                   baseline=[1.0, 1.0], baseline_name="persistence")
    >>> print(told)
    2 nodes: mean training error 0.55, mean validation error 1, persistence 1
      1 as good as the baseline
      1 overfitting
    """

    ids: Sequence[Any]
    train: Any
    validation: Any
    baseline: Any = None
    baseline_name: str = "baseline"
    factor: float = 1.5
    positions: Any = None
    graph: Graph | None = None
    scores: Scores | None = None
    parameters_per_row: Any = None

    def __post_init__(self) -> None:
        n = len(self.ids)
        FACTOR(factor=self.factor)
        for name in ("train", "validation", "baseline", "parameters_per_row"):
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, _per_node(name, given, n))
        if self.positions is not None:
            places = np.asarray(check.finite(positions=self.positions), float)
            object.__setattr__(self, "positions", check.shape((n, 2), positions=places))

    @property
    def verdicts(self) -> list[Verdict]:
        """The diagnosis of every node."""
        reference = [None] * len(self.ids) if self.baseline is None else self.baseline
        rows = zip(self.train, self.validation, reference, strict=True)
        return [diagnose(t, v, b, self.factor) for t, v, b in rows]

    def __str__(self) -> str:
        told = (
            f"{len(self.ids)} nodes: mean training error {_mean(self.train):.4g}, "
            f"mean validation error {_mean(self.validation):.4g}"
        )
        if self.baseline is not None:
            told += f", {self.baseline_name} {_mean(self.baseline):.4g}"
        words = Counter(verdict.word for verdict in self.verdicts)
        lines = [told, *(f"{n} {word}" for word, n in words.most_common())]
        if self.parameters_per_row is not None:
            lines.append(f"{_median(self.parameters_per_row):.3g} parameters per row")
        return "\n  ".join(lines if self.scores is None else [*lines, str(self.scores)])

    def attach(self, run: Run) -> Run:
        """The run with these errors in its folder and in its report."""
        return dataclasses.replace(run, info={**run.info, "nodes": self.as_dict()})

    def as_dict(self) -> dict[str, Any]:
        """Numbers and words only, for `run.json`."""
        told: dict[str, Any] = {
            "node": [str(one) for one in self.ids],
            "train_error": self.train.tolist(),
            "validation_error": self.validation.tolist(),
            "verdict": [verdict.word for verdict in self.verdicts],
            "meaning": {v.word: v.meaning for v in self.verdicts},
        }
        if self.baseline is not None:
            told["baseline"] = self.baseline.tolist()
            told["baseline_name"] = self.baseline_name
        if self.parameters_per_row is not None:
            told["parameters_per_row"] = self.parameters_per_row.tolist()
        if self.scores is not None:
            told |= self.scores.as_dict()
        return told | self._layout()

    def _layout(self) -> dict[str, Any]:
        """Where the map draws the nodes: by their coordinates, else by their edges."""
        if len(self.ids) > _MAPPED:
            return {}
        edges: list = []
        if self.graph is not None:
            edges = np.stack(self.graph.pairs()[:2], axis=1).tolist()
        if self.positions is not None:
            return {
                "layout": "coordinates",
                "x": self.positions[:, 1].tolist(),
                "y": self.positions[:, 0].tolist(),
                "edges": edges,
            }
        if self.graph is None:
            return {}
        places = _spring(self.graph)
        x, y = places.T.tolist()
        return {"layout": "graph", "x": x, "y": y, "edges": edges}


def _mean(errors: np.ndarray) -> float:
    """Over nodes that have one; NaN if none has."""
    known = errors[~np.isnan(errors)]
    return float(known.mean()) if len(known) else np.nan


def _median(ratios: np.ndarray) -> float:
    """Over nodes that have rows; NaN if none has."""
    known = ratios[~np.isnan(ratios)]
    return float(np.median(known)) if len(known) else np.nan


def _per_node(name: str, given: Any, n: int) -> np.ndarray:
    """One number per node; a single one is everybody's."""
    try:
        return np.broadcast_to(np.asarray(given, float), n).copy()
    except (TypeError, ValueError):
        check.refuse(
            f"expected {name} one number, or a list of {n}, one per node, got "
            f"{name}={given!r}"
        )


def validate(
    problem: Problem,
    models: Any,
    validation: tuple[Any, Any, Any],
    *,
    baseline: Any = None,
    baseline_name: str = "baseline",
    positions: Any = None,
    intercept: bool = False,
    factor: float = 1.5,
) -> NodeErrors:
    """Training and validation error of every node, by the model's own loss.

    Args:
        problem: What was solved; its rows are the training rows.
        models: A run, every node's model (N, d), or one model for all (d,).
        validation: Rows kept back: features, an array or a pandas table with the
            columns that `run.predict` takes; labels; and node ids.
        baseline: An error to compare with: a number, or one per node.
        baseline_name: What it is.
        positions: Latitude and longitude of every node, for the map in the report.
        intercept: Append a column of ones to the validation features, as `from_arrays`
            did to the training features.
        factor: From here on one error counts as much larger than another.
    """
    if not isinstance(validation, tuple | list) or len(validation) != 3:
        check.refuse("expected validation=(X, y, agent), rows that were kept back")
    w = models_of(problem, models)
    held_out = rows_like(problem, *validation, intercept=intercept)
    return NodeErrors(
        ids=problem.ids,
        train=node_losses(problem, w),
        validation=_errors(problem, w, *held_out),
        baseline=baseline,
        baseline_name=baseline_name,
        positions=positions,
        graph=problem.graph,
        factor=factor,
        scores=_scores(problem, w, *held_out),
        parameters_per_row=parameters_per_row(problem),
    )


def models_of(problem: Problem, models: Any) -> np.ndarray:
    """Every node's model, (N, d), of a run, of all models, or of one for all."""
    if isinstance(models, Run):
        models = models.agents
    try:
        w = np.asarray(models, problem.dtype)
    except (TypeError, ValueError):
        w = np.zeros(())
    everybody = (problem.n_agents, problem.dim)
    if w.shape not in (everybody, everybody[1:]):
        told = f"shape {w.shape}" if w.ndim else type(models).__name__
        check.refuse(
            f"expected models a run, or numbers of shape {everybody} or "
            f"{everybody[1:]}, got {told}"
        )
    if not np.isfinite(w).all():
        check.refuse(
            "models has NaN or infinite entries: training diverged; use a smaller "
            "step_size"
        )
    return np.broadcast_to(w, everybody)


def parameters_per_row(problem: Problem) -> np.ndarray:
    """d/m_i of every node; NaN for one without rows."""
    return problem.dim / np.where(problem.counts > 0, problem.counts, np.nan)


def _errors(
    problem: Problem, w: np.ndarray, x: np.ndarray, y: np.ndarray, node: np.ndarray
) -> np.ndarray:
    """The mean loss of every node over its rows."""
    losses = _of_rows(problem, "losses", w, node, x, y)
    counts = np.bincount(node, minlength=problem.n_agents).astype(float)
    sums = np.bincount(node, losses, minlength=problem.n_agents)
    return sums / np.where(counts > 0, counts, np.nan)


@in_double_precision
def _of_rows(
    problem: Problem, method: str, w: np.ndarray, node: np.ndarray, *rows: np.ndarray
) -> np.ndarray:
    """What the model of each row's node says of the row by one of its methods."""
    kinds = problem.population.rows.kind

    def one(v: Any, kind: Any, *row: Any) -> Any:
        model: Any = problem.model
        model = model if kinds is None else model.of(kind)
        return getattr(model, method)(v, *(part[None] for part in row))[0]

    own = np.zeros(len(node), int) if kinds is None else np.asarray(kinds)[node]
    given = (jnp.asarray(part) for part in (w[node], own, *rows))
    return np.asarray(jax.jit(jax.vmap(one))(*given), float)


def _scores(
    problem: Problem, w: np.ndarray, x: np.ndarray, y: np.ndarray, node: np.ndarray
) -> Scores | None:
    """Of models whose predictions are values or classes; a bare loss has none.

    Neither have nodes of which some predict values and others classes.
    """
    several: list[Any] = list(kinds_of(problem.model))
    classes = {model.classes for model in several}
    known = all(hasattr(model, "scores") for model in several)
    if len(classes) > 1 or not known or len(y) == 0:
        return None
    (number,) = classes
    said = _of_rows(problem, "scores", w, node, x)
    if number is None:
        return of_values(said.reshape(len(y)), np.asarray(y), node, problem.n_agents)
    if all(isinstance(model, Signed) for model in several):
        # The second class has the score, the first none.
        said, y = np.stack([np.zeros_like(said), said], axis=1), y > 0
    names = problem.class_names or tuple(str(k) for k in range(number))
    codes = np.asarray(y).astype(int)
    return of_classes(said, codes, node, problem.n_agents, names)


def _spring(graph: Graph) -> np.ndarray:
    import networkx as nx  # slow to import, needed only here

    places = nx.spring_layout(graph.to_networkx(), seed=0)
    return np.array([places[one] for one in graph.nodes])
