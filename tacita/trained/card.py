"""The card of a model: all that its file says but numbers learnt and their privacy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacita import check
from tacita.encoding import Encoding, labels_of
from tacita.problem import features
from tacita.problem.model.layers import Perceptron
from tacita.problem.model.linear import Model
from tacita.problem.model.per_agent import PerAgent, kinds_of
from tacita.problem.model.wrapped import Weighted
from tacita.problem.problem import Problem
from tacita.trained.kinds import bare, can_predict, kind_of, model_of


@dataclass(frozen=True, kw_only=True)
class ModelCard:
    """What a model is, what it is asked and what it answers.

    Attributes:
        name: What it was trained on.
        model: The model.
        row: The shape of one row's features, a column of ones left out.
        dtype: The type of its numbers.
        intercept: Whether a column of ones is appended to the features.
        bound: What longer rows are cut to, the column of ones included, as those were
            that it was trained on; None leaves them.
        encoding: How a row of a table becomes features; None takes features only.
        learnt: What besides was computed from rows before the training, one sentence
            each. No epsilon of the training covers it.
        target: What it predicts, or None.
        classes: The labels that it gives, in the order of their codes; None for a
            regression.
        nodes: Where every node has a model of its own: the nodes' ids, else None.
        kinds: Where their models are of several kinds: which of `model.models` each
            node has, else None.
        shared: Whether nodes of several kinds have their parameters in common.
        algorithm: How it was trained.
        notes: What was done to the data before, one sentence each.
    """

    name: str
    model: Model
    row: tuple[int, ...]
    dtype: str
    intercept: bool = False
    bound: float | None = None
    encoding: Encoding | None = None
    learnt: tuple[str, ...] = ()
    target: str | None = None
    classes: tuple[Any, ...] | None = None
    nodes: Sequence[Any] | None = None
    kinds: tuple[int, ...] | None = None
    shared: bool = False
    algorithm: str | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check.one_of(("float32", "float64"), dtype=self.dtype)
        if self.bound is not None:
            check.positive(bound=self.bound)
        made = None if self.encoding is None else len(self.encoding.feature_names)
        if made is not None and self.row != (made,):
            check.refuse(
                f"the encoding makes {made} features, the model takes rows of shape "
                f"{self.row}"
            )
        own = math.prod(self.row) + self.intercept
        for width in map(_width, kinds_of(self.model)):
            if width is not None and width != own:
                check.refuse(f"expected rows of {width} features, got {own}")
        expected = _classes(self.model)
        if expected != (None if self.classes is None else len(self.classes)):
            check.refuse(f"expected {expected} classes, got classes={self.classes}")
        self._check_kinds()

    def _check_kinds(self) -> None:
        several = isinstance(self.model, PerAgent)
        if several != (self.kinds is not None) or (self.shared and not several):
            check.refuse("models of several kinds need kinds, and only those have them")
        if self.kinds is None:
            return
        known = range(len(kinds_of(self.model)))
        if len(self.nodes or ()) != len(self.kinds) or not {*self.kinds} <= {*known}:
            check.refuse("expected one of the kinds of models for every node")

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the parameters."""
        one = (self.model.dim,)
        return one if self.nodes is None or self.shared else (len(self.nodes), *one)

    def at(self, place: int) -> ModelCard:
        """The card of one node's model, alone."""
        if self.kinds is None:
            return replace(self, nodes=None)
        model = kinds_of(self.model)[self.kinds[place]]
        classes = None if model.classes is None else self.classes
        told: dict[str, Any] = {"model": model, "classes": classes}
        return replace(self, nodes=None, kinds=None, shared=False, **told)

    def features(self, rows: Any, told: str) -> np.ndarray:
        """New rows as the model takes them."""
        if self.encoding is not None:
            x = self.encoding.encode(rows, told)
        else:
            x = features.read(rows, told)
            check.shape((None, *self.row), **{told: x})
        x = features.with_ones(x) if self.intercept else x
        x = features.within(x, self.bound, np.dtype(self.dtype), told)
        # Rounding of a product depends on how its rows lie in memory.
        return np.ascontiguousarray(x)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "name": self.name,
            "model": kind_of(self.model),
            "row": list(self.row),
            "dtype": self.dtype,
            "intercept": self.intercept,
            "bound": self.bound,
            "encoding": None if self.encoding is None else self.encoding.as_dict(),
            "learnt": list(self.learnt),
            "target": self.target,
            "classes": None if self.classes is None else list(self.classes),
            "nodes": None if self.nodes is None else [_id(n) for n in self.nodes],
            "kinds": None if self.kinds is None else list(self.kinds),
            "shared": self.shared,
            "algorithm": self.algorithm,
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, told: dict[str, Any], own: Model | None = None) -> ModelCard:
        """Read `as_dict` back; `own` is the model where it was given as an object."""
        encoding, classes = told["encoding"], told["classes"]
        kinds = told.get("kinds")  # which older files do not have
        return cls(
            name=str(told["name"]),
            model=model_of(told["model"], own),
            row=tuple(told["row"]),
            dtype=told["dtype"],
            intercept=bool(told["intercept"]),
            bound=None if told["bound"] is None else float(told["bound"]),
            encoding=None if encoding is None else Encoding.from_dict(encoding),
            learnt=tuple(told.get("learnt", ())),  # which older files do not have
            target=told["target"],
            classes=None if classes is None else tuple(classes),
            nodes=None if told["nodes"] is None else tuple(told["nodes"]),
            kinds=None if kinds is None else tuple(kinds),
            shared=bool(told.get("shared", False)),
            algorithm=told["algorithm"],
            notes=tuple(told["notes"]),
        )


def card_of(
    problem: Problem, *, personal: bool = False, algorithm: str | None = None
) -> ModelCard | None:
    """The card of whatever is trained on a problem; None of a bare loss.

    Args:
        problem: What was solved.
        personal: Whether every agent has a model of its own.
        algorithm: How it was trained.
    """
    model = bare(problem.model)
    if not can_predict(model):
        return None
    row, encoding = _row_of(problem), problem.encoding
    if encoding is not None and row != (len(encoding.feature_names),):
        encoding = None  # the features were made into others on the way
    origin = problem.before if encoding is not None else problem.origin
    kinds, classes = problem.population.rows.kind, _classes(model)
    return ModelCard(
        name=problem.name,
        model=model,
        row=row,
        dtype=problem.dtype.name,
        intercept=problem.intercept,
        bound=problem.bound,
        encoding=encoding,
        learnt=origin.learnt,
        target=problem.target,
        classes=None if classes is None else _labels(problem, classes),
        nodes=problem.ids if personal or kinds is not None else None,
        kinds=None if kinds is None else tuple(np.asarray(kinds).tolist()),
        shared=kinds is not None and not personal,
        algorithm=algorithm,
    )


def _width(model: Model) -> int | None:
    """How many features a model takes, where that is known."""
    if isinstance(model, Perceptron):
        return model.shapes[0][0]
    return getattr(model, "features", None)


def _classes(model: Model) -> int | None:
    """How many classes there are; None where every kind is a regression."""
    counts = (one.classes for one in kinds_of(model))
    return next((n for n in counts if n is not None), None)


def _labels(problem: Problem, classes: int) -> tuple[Any, ...]:
    """What predictions give, in the order of the codes."""
    if problem.class_names is None:
        return tuple(range(classes))
    return labels_of(problem.class_names, problem.label_kind)


def _row_of(problem: Problem) -> tuple[int, ...]:
    """The shape of a row without what was appended to it: weights, a one."""
    x = problem.population.rows.x
    row = (x.shape[1],) if problem.population.by_feature else tuple(x.shape[2:])
    appended = isinstance(problem.model, Weighted) + problem.intercept
    return (*row[:-1], row[-1] - appended)


def _id(node: Any) -> Any:
    """A node's id in JSON: a number or a word."""
    return node if isinstance(node, str | int) else str(node)
