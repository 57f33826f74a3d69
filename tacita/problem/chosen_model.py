"""The model of a problem by its name, or every agent's own."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tacita import check
from tacita.encoding import LabelKind, kind_of
from tacita.problem import labels
from tacita.problem.model.linear import (
    Absolute,
    GeneralisedLinear,
    Hinge,
    Huber,
    Linear,
    Logistic,
    Model,
    Signed,
    Softmax,
)
from tacita.problem.model.moments import Moments
from tacita.problem.model.per_agent import PerAgent, kinds_of, name_of

#: Models whose label is a number, and all that have a name of their own.
REGRESSIONS = ("linear", "ridge", "huber", "absolute", "moments")
MODELS = (*REGRESSIONS, "logistic", "hinge", "softmax")
#: Models that say how many numbers a row has.
_FLAT = (Linear, Huber, Absolute, Moments, Logistic, Hinge, Softmax)


class Choice(NamedTuple):
    """A model with the names of its classes.

    Attributes:
        model: One for all, or several of which every agent has one.
        class_names: Of its classes, or of those of its models that have any.
        kinds: Which of several models is whose, by number of agent; None for one model.
        seen: Whether it was the rows that said which classes there are.
        label_kind: What the labels are that the classes' names stand for.
    """

    model: Model
    class_names: tuple[str, ...] | None
    kinds: np.ndarray | None = None
    seen: bool = False
    label_kind: LabelKind = "words"

    @property
    def linear(self) -> bool:
        """Whether all models are generalised linear ones."""
        return all(isinstance(m, GeneralisedLinear) for m in kinds_of(self.model))

    def codes(
        self, y: np.ndarray, agent: Any, argument: str, coded: bool = False
    ) -> np.ndarray:
        """Labels as the model of each row's agent, by number, is trained on them."""
        if self.kinds is None:
            return labels.encode(self.model, y, self.class_names, argument, coded)
        kind, made = self.kinds[agent], np.zeros(len(y))
        for number, model in enumerate(kinds_of(self.model)):
            mine = kind == number
            told = f"{argument} of {name_of(model)} agents"
            names = self.class_names if model.classes is not None else None
            if np.any(mine):
                made[mine] = _numbers(
                    labels.encode(model, y[mine], names, told, coded), told
                )
        return made


def _numbers(codes: np.ndarray, told: str) -> np.ndarray:
    try:
        return np.asarray(codes, float)
    except (TypeError, ValueError):
        check.refuse(f"expected numbers as labels {told}, got {codes.dtype}")


def choose(
    model: Any,
    x: np.ndarray,
    y: np.ndarray,
    agent: np.ndarray,
    ids: Sequence[Hashable],
    classes: Sequence[Any] | None,
    l2: float,
) -> Choice:
    """The model that is meant by a name, an object, or a mapping from agents' ids."""
    if not isinstance(model, Mapping):
        seen = classes is None and isinstance(model, str) and model == "softmax"
        return _one(model, x, y, classes, l2)._replace(seen=seen)
    for one in ids:
        if one not in model:
            check.refuse(f"model has none for agent {one!r}; give one for each")
    for one in model:
        if one not in set(ids):
            check.refuse(f"model names agent {one!r}, which has no rows; leave it out")
    given = [model[one] for one in ids]
    said = list(dict.fromkeys(given))
    found, signed = [], None
    for one in said:
        mine = np.isin(agent, [i for i, other in enumerate(given) if other == one])
        made = _one(one, x, y[mine], classes, l2)
        found.append(made.model)
        signed = made if isinstance(made.model, Signed) else signed
    if len(set(found)) == 1:  # as "linear" and "ridge" are
        return choose(said[0], x, y, agent, ids, classes, l2)
    distinct = list(dict.fromkeys(found))
    place = {one: distinct.index(made) for one, made in zip(said, found, strict=True)}
    kinds = np.array([place[one] for one in given], np.int32)
    several: Any = PerAgent(tuple(distinct))
    if signed is None:
        return Choice(several, None, kinds)
    return signed._replace(model=several, kinds=kinds)


def _one(
    model: Any, x: np.ndarray, y: np.ndarray, classes: Sequence[Any] | None, l2: float
) -> Choice:
    if not isinstance(model, str):
        if isinstance(model, type) or not hasattr(model, "losses"):
            check.refuse(
                f"expected model one of {', '.join(MODELS)}, or a model such as "
                f"tacita.problem.mlp(...), got model={model!r}"
            )
        if isinstance(model, _FLAT) and x.shape[1:] != (model.features,):
            check.refuse(
                f"{model!r} has rows of {model.features} numbers, those of X have "
                f"shape {x.shape[1:]}, a column of ones included"
            )
        n = model.classes
        if n is None:
            return Choice(model, None)
        return _named(model, range(n) if classes is None else classes, n)
    check.one_of(MODELS, model=model)
    width = x.shape[1]
    if x.ndim != 2:
        check.refuse(f"{model} takes flat rows, got X of shape {x.shape}")
    if model in ("linear", "ridge"):
        if model == "ridge":
            check.positive(l2=l2)
        return Choice(Linear(width), None)
    if model == "moments":
        return Choice(Moments(width), None)
    if model in ("huber", "absolute"):
        return Choice((Huber if model == "huber" else Absolute)(width), None)
    if model in ("logistic", "hinge"):
        signed = (Logistic if model == "logistic" else Hinge)(width)
        if classes is None:
            return Choice(signed, labels.SIGNS, label_kind="whole")
        return _named(signed, classes, 2)
    if classes is None:
        labels.refuse_real(y, "y")
    given: Any = np.unique(y).tolist() if classes is None else classes
    found = labels.named(given)
    if len(found) < 2:
        check.refuse(f"softmax needs at least two classes, y has {list(found)}")
    return _named(Softmax(width, len(found)), given)


def _named(model: Model, classes: Sequence[Any], expected: int | None = None) -> Choice:
    names = labels.named(classes, expected)
    return Choice(model, names, label_kind=kind_of(classes))
