"""Models by name: what a file says of a model, and the model that it means."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, cast

import numpy as np

from tacita.check import TacitaError, refuse
from tacita.problem.model.differentiable import Custom
from tacita.problem.model.linear import (
    Absolute,
    Hinge,
    Huber,
    Linear,
    Logistic,
    Model,
    Softmax,
)
from tacita.problem.model.moments import Moments
from tacita.problem.model.networks import cnn, mlp, resnet10
from tacita.problem.model.per_agent import PerAgent, kinds_of
from tacita.problem.model.wrapped import Around

_LINEAR = (Linear, Huber, Absolute, Hinge, Logistic, Softmax, Moments)
KINDS: dict[str, Any] = {cls.__name__.lower(): cls for cls in _LINEAR}
KINDS |= {"mlp": mlp, "cnn": cnn, "resnet10": resnet10}
#: A model that was given as an object: whoever loads it brings it along.
OWN = "own"
#: Models of several kinds, of which every node has one.
SEVERAL = "several"


@dataclass(frozen=True)
class Absent:
    """In place of a model that a file could not hold: its parameters are known."""

    name: str
    dim: int
    classes: int | None

    def _refuse(self, *_: Any) -> NoReturn:
        refuse(
            f"the model {self.name!r} was given as an object, which a file cannot "
            "hold; bring it along: tacita.load_model(folder, model=...)"
        )

    losses = grad = predict = start = _refuse


def bare(model: Model) -> Model:
    """The model that makes the predictions, without what was around it in training."""
    while isinstance(model, Around):
        model = model.model
    return model


def can_predict(model: Model) -> bool:
    """Whether it makes predictions at all: a bare loss does not."""
    return not any(isinstance(one, Custom) for one in kinds_of(bare(model)))


def kind_of(model: Model) -> dict[str, Any]:
    """The model as plain data.

    >>> kind_of(mlp(3, (4,), 2))
    {'kind': 'mlp', 'features': 3, 'hidden': [4], 'classes': 2, 'seed': 0}
    """
    if isinstance(model, _LINEAR):
        return {"kind": type(model).__name__.lower(), **dataclasses.asdict(model)}
    if isinstance(model, PerAgent):
        return {"kind": SEVERAL, "models": [kind_of(one) for one in model.models]}
    recipe = getattr(model, "recipe", None)
    if recipe is not None:
        return {"kind": recipe.function, **_plain(dict(recipe.arguments))}
    name = getattr(model, "name", type(model).__name__)
    return {"kind": OWN, "name": name, "dim": model.dim, "classes": model.classes}


def model_of(told: Mapping[str, Any], own: Model | None = None) -> Model:
    """The model that plain data mean.

    Args:
        told: What `kind_of` has said.
        own: The model itself, where it was given as an object.
    """
    options = {name: value for name, value in told.items() if name != "kind"}
    if told["kind"] == OWN:
        return _own(options, own)
    if told["kind"] == SEVERAL:
        return cast(
            Model, PerAgent(tuple(model_of(one, own) for one in options["models"]))
        )
    if told["kind"] not in KINDS:
        refuse(f"unknown kind of model {told['kind']!r}; it needs another Tacita")
    try:
        return KINDS[told["kind"]](**options)
    except (TypeError, TacitaError) as error:
        refuse(f"no {told['kind']} is made from {options}: {error}")


def _own(options: Mapping[str, Any], own: Model | None) -> Model:
    name = options["name"]
    if own is None:
        return cast(Model, Absent(**options))
    if (own.dim, own.classes) != (options["dim"], options["classes"]):
        refuse(
            f"expected model={name} with {options['dim']} parameters and classes="
            f"{options['classes']}, got {own.dim} and {own.classes}"
        )
    return own


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return value.item() if isinstance(value, np.generic) else value
