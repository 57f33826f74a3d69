"""A trained model: parameters, how it reads rows, what it answers, its privacy."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from tacita import check
from tacita.problem.problem import Problem
from tacita.trained import scores
from tacita.trained.card import ModelCard, card_of
from tacita.trained.statement import check_statement

#: What one model says of features.
_Answer = Callable[[ModelCard, np.ndarray, np.ndarray], np.ndarray]
#: How many nodes a refusal names.
_LISTED = 20


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class TrainedModel:
    """What leaves a run: it predicts without the run, its rows or its run file.

    Attributes:
        card: What the model is, what it is asked and what it answers.
        params: The parameters, (d,), or one row of them per node, (N, d). Nodes with
            several kinds of models may have parameters in common.
        privacy: What each observer of the training may have learnt, as
            `PrivacyReport.as_dict()` has it; None of a run without privacy.
    """

    card: ModelCard
    params: np.ndarray
    privacy: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        check.shape(self.card.shape, params=self.params)
        if not np.all(np.isfinite(self.params)):
            check.refuse("the parameters are not finite: the run diverged, no model")
        if self.params.dtype != self.card.dtype:
            check.refuse(
                f"expected params of {self.card.dtype}, got {self.params.dtype}"
            )
        if self.privacy is not None:
            check_statement(self.privacy)

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The columns that a table of new rows needs; None where they have no names."""
        encoding = self.card.encoding
        return None if encoding is None else encoding.names

    @property
    def classes(self) -> tuple[Any, ...] | None:
        """The labels that it gives; None for a regression."""
        return self.card.classes

    @property
    def nodes(self) -> Sequence[Any] | None:
        """Whose models these are, where every node has its own."""
        return self.card.nodes

    @property
    def not_covered(self) -> tuple[str, ...]:
        """What the file holds that was computed from rows and no epsilon covers."""
        if self.privacy is None:
            return ()
        encoding = self.card.encoding
        return (*(encoding.learnt if encoding else ()), *self.card.learnt)

    def predict(
        self, rows: Any, node: Any = None, *, told: str = "the table"
    ) -> np.ndarray:
        """A label, or a number, for every row.

        Args:
            rows: A pandas table with `columns`, in any order and among others, or an
                array that has just them; raw values: scaling is the model's affair.
            node: Of personal models: whose; one id, or one per row.
            told: What the rows are called in refusals.
        """
        return self._answers(rows, node, told, _labels)

    def codes(
        self, rows: Any, node: Any = None, *, told: str = "the table"
    ) -> np.ndarray:
        """The place in `classes` of every row's label."""
        return self._answers(rows, node, told, _codes)

    def scores(
        self, rows: Any, node: Any = None, *, told: str = "the table"
    ) -> np.ndarray:
        """What labels are read off: one score per row and class, the highest wins.

        Of two classes one score per row, above 0 for the second of `classes`.
        """
        return self._answers(rows, node, told, _class_scores)

    def predict_proba(
        self, rows: Any, node: Any = None, *, told: str = "the table"
    ) -> np.ndarray:
        """One probability per row and class, in the order of `classes`."""
        return self._answers(rows, node, told, _probabilities)

    def predict_frame(
        self, rows: Any, node: Any = None, *, told: str = "the table"
    ) -> Any:
        """Predictions as a pandas table; with probabilities, where there are any."""
        import pandas as pd  # slow to import, and arrays do without

        columns = {"prediction": self.predict(rows, node, told=told)}
        asked = [self._card(self._place(one)) for one in np.unique(np.asarray(node))]
        if all(scores.has_probabilities(card.model) for card in asked):
            likely = self.predict_proba(rows, node, told=told)
            for label, column in zip(self.classes or (), likely.T, strict=True):
                columns[f"probability of {label}"] = column
        return pd.DataFrame(columns)

    @property
    def levels(self) -> dict[str, tuple[Any, ...]]:
        """The values that every category among the columns may have."""
        encoding = self.card.encoding
        columns = () if encoding is None else encoding.columns
        return {one.name: one.levels for one in columns if one.levels is not None}

    def surplus(self, rows: Any) -> list[str]:
        """The columns of a table that predictions do not look at."""
        encoding = self.card.encoding
        return [] if encoding is None else encoding.surplus(rows)

    def of_node(self, node: Any) -> TrainedModel:
        """The model of one node, alone."""
        place = self._place(node)
        return replace(self, card=self._card(place), params=self._params(place))

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write `model.json` and `model.safetensors` into a folder, made if needed."""
        from tacita.trained.files import save

        return save(self, folder)

    def to_onnx(self, path: str | os.PathLike[str], node: Any = None) -> Path:
        """Write the model as ONNX, which other programs read; see `export`.

        Linear models and perceptrons on columns of numbers; others are refused.
        """
        from tacita.trained.export import to_onnx

        personal = self.nodes is not None or node is not None
        return to_onnx(self.of_node(node) if personal else self, Path(path))

    def _answers(self, rows: Any, node: Any, told: str, answer: _Answer) -> np.ndarray:
        """What a node's model, or every row's node's, says of rows."""
        x = self.card.features(rows, told)
        if node is None or np.ndim(node) == 0:
            place = self._place(node)
            return answer(self._card(place), self._params(place), x)
        given = check.column(node=node)
        check.shape((len(x),), node=given)
        ids, whose = np.unique(given, return_inverse=True)
        places = [self._place(one) for one in ids.tolist()]
        if len({self._card(place).classes for place in places}) > 1:
            check.refuse(
                "some of these nodes predict a class and others a number; ask for the "
                "ones and the others apart"
            )
        found: Any = None
        for number, place in enumerate(places):
            own = whose == number
            part = answer(self._card(place), self._params(place), x[own])
            if found is None:
                found = np.empty((len(x), *part.shape[1:]), part.dtype)
            found[own] = part
        return found

    def _card(self, place: int | None) -> ModelCard:
        """What one node's model is, or that of all."""
        if place is None:
            return self.card
        kind = 0 if self.card.kinds is None else self.card.kinds[place]
        if kind not in self._cards:
            self._cards[kind] = self.card.at(place)
        return self._cards[kind]

    def _params(self, place: int | None) -> np.ndarray:
        common = place is None or self.card.shared
        return self.params if common else self.params[place]

    def _place(self, node: Any) -> int | None:
        """Where a node's model stands; None for the one model of all."""
        if self.nodes is None:
            if node is not None:
                check.refuse(f"there is one model for all, got node={node!r}; drop it")
            return None
        words = [str(one) for one in self.nodes[:_LISTED]]
        if node is None:
            check.refuse(
                f"every node has a model of its own; say whose with node=, one of "
                f"{', '.join(words)}" + (", ..." if len(self.nodes) > _LISTED else "")
            )
        if str(node) not in self._places:
            check.refuse(f"there is no node {node!r}; {check.nearest(node, words)}")
        return self._places[str(node)]

    @cached_property
    def _cards(self) -> dict[int, ModelCard]:
        """Of single nodes, by the kind of their model."""
        return {}

    @cached_property
    def _places(self) -> dict[str, int]:
        return {str(one): place for place, one in enumerate(self.nodes or ())}

    def __repr__(self) -> str:
        kind = type(self.card.model).__name__.lower()
        name = getattr(self.card.model, "name", kind)
        goal = self.card.target or "its target"
        whose = (
            "" if self.nodes is None else f", one for each of {len(self.nodes)} nodes"
        )
        told = "not private" if self.privacy is None else "private, see .privacy"
        return f"TrainedModel({name} of {self.card.name} for {goal}{whose}; {told})"


def _scores(card: ModelCard, w: np.ndarray, x: np.ndarray) -> np.ndarray:
    return scores.scores(card.model, w, x)


def _labels(card: ModelCard, w: np.ndarray, x: np.ndarray) -> np.ndarray:
    if card.classes is None:
        return _scores(card, w, x)
    return labels(card.classes)[_codes(card, w, x)]


def _codes(card: ModelCard, w: np.ndarray, x: np.ndarray) -> np.ndarray:
    _need_classes(card)
    return scores.codes(card.model, _scores(card, w, x))


def _class_scores(card: ModelCard, w: np.ndarray, x: np.ndarray) -> np.ndarray:
    _need_classes(card)
    return scores.of_second_class(_scores(card, w, x))


def _probabilities(card: ModelCard, w: np.ndarray, x: np.ndarray) -> np.ndarray:
    _need_classes(card)
    return scores.probabilities(card.model, _scores(card, w, x))


def _need_classes(card: ModelCard) -> None:
    if card.classes is None:
        check.refuse("a regression has no classes; use predict")


def labels(classes: Sequence[Any]) -> np.ndarray:
    """Labels as an array that is indexed by class codes."""
    return np.array(list(classes))


def from_problem(
    problem: Problem,
    params: Any,
    *,
    privacy: dict[str, Any] | None = None,
    algorithm: str | None = None,
    notes: Sequence[str] = (),
) -> TrainedModel:
    """The model that was trained on a problem, wherever that happened.

    A deployed run makes it from the problem of its description
    (`Problem.encoding`, `.target` and `.intercept` say how rows are read) and saves it
    beside its other files: `from_problem(problem, params, ...).save(folder)`.

    Args:
        problem: What was solved; of its rows nothing is kept but what the encoding
            says that it learnt from them.
        params: The shared model, (d,); or every agent's own, (N, d), in the order of
            `problem.ids`.
        privacy: What `PrivacyReport.as_dict()` says of the run.
        algorithm: How it was trained.
        notes: What was done to the data before, one sentence each.

    >>> import tacita
    >>> problem = tacita.problem.synthetic.linear(agents=3, features=2, samples=9)
    >>> model = from_problem(problem, problem.solve())
    >>> bool(model.predict([[1.0, 2.0]])[0] == problem.solve() @ [1.0, 2.0])
    True
    """
    array = np.asarray(params, problem.dtype)
    card = card_of(problem, personal=array.ndim == 2, algorithm=algorithm)
    if card is None:
        check.refuse("a custom loss makes no predictions, so there is no model to keep")
    card = replace(card, notes=tuple(notes))
    return TrainedModel(card=card, params=array, privacy=privacy)
