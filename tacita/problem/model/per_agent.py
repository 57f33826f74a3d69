"""Agents with models and losses of their own kinds, all of one number of parameters.

A. Jung, "Federated Learning: From Theory to Practice", (48): f_i is node i's own, one
fits squares, its neighbour bears wild labels, a third predicts a class. What couples
them, or what a coordinator averages, is a parameter vector of one length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.problem.model import products
from tacita.problem.model.linear import (
    Absolute,
    Hinge,
    Huber,
    Linear,
    Logistic,
    Model,
    Signed,
)

#: Models with one score x.w of every row: one product with the rows serves them all.
_OneScore = Linear | Huber | Absolute | Hinge | Logistic


@dataclass(frozen=True)
class PerAgent:
    """Several models, of which every agent has one: `Rows.kind` says which.

    Make one by `tacita.from_arrays(..., model={agent: ...})`.

    Attributes:
        models: The kinds, each once.

    >>> PerAgent((Linear(3), Huber(3))).name
    'linear or huber'
    >>> PerAgent((Linear(3), Linear(4)))
    Traceback (most recent call last):
    tacita.check.TacitaError: expected models of one number of parameters, got linear \
with 3 and linear with 4; couple unlike models by predictions, ModelAgnosticFedRelax
    """

    models: tuple[Model, ...]

    def __post_init__(self) -> None:
        first = self.models[0]
        for other in self.models[1:]:
            if other.dim != first.dim:
                check.refuse(
                    "expected models of one number of parameters, got "
                    f"{name_of(first)} with {first.dim} and {name_of(other)} with "
                    f"{other.dim}; couple unlike models by predictions, "
                    "ModelAgnosticFedRelax"
                )
        for model in self.models:
            if model.classes is not None and not isinstance(model, Signed):
                check.refuse(
                    f"expected models of one score a row, got {name_of(model)}; give "
                    "linear, huber, absolute, logistic or hinge"
                )

    @property
    def name(self) -> str:
        """Shown in reports."""
        return " or ".join(name_of(model) for model in self.models)

    @property
    def dim(self) -> int:
        """Length of everybody's parameter vector."""
        return self.models[0].dim

    @property
    def classes(self) -> int | None:
        """None: agents have no classes in common."""
        return None

    def of(self, kind: Any) -> Chosen:
        """The model of an agent of this kind, a number that may be traced."""
        return Chosen(self.models, kind)

    def curvature_bounds_of(self, kinds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Bounds of the curvature of every agent's loss; 0 where it has kinks."""
        each = [getattr(model, "curvature_bounds", (0.0, 0.0)) for model in self.models]
        low, high = np.asarray(each).T
        return low[kinds], high[kinds]

    def start(self) -> np.ndarray:
        """The first model's."""
        return self.models[0].start()

    def _refuse(self, *_: Any) -> NoReturn:
        check.refuse(
            f"agents have models of several kinds, {self.name}; ask one of them, as in "
            "run.predict(X, node=agent) or problem.model_of(agent).predict(w, X)"
        )

    losses = grad = predict = scores = _refuse


class Chosen:
    """The model of one agent out of several, by a number that may be traced.

    All kinds are computed and one is kept, as mapped programs do with every choice:
    of models with one score that costs some arithmetic per row, and no product more.
    """

    def __init__(self, models: Sequence[Model], kind: Any) -> None:
        self.models, self.kind = models, jnp.asarray(kind, jnp.int32)

    def losses(self, w: Array, x: Array, y: Array) -> Array:
        """The loss of every row."""
        return self._kept([model.losses(w, x, y) for model in self.models])

    def grad(self, w: Array, x: Array, y: Array, weights: Array) -> Array:
        """The weighted sum over rows of the rows' gradients."""
        models = self.models
        if all(isinstance(model, _OneScore) for model in models):
            s = products.times(x, w)
            slopes = [model.residual(s, y) for model in models]  # pyright: ignore
            return products.combine(weights * self._kept(slopes), x)
        return self._kept([model.grad(w, x, y, weights) for model in models])

    def predict(self, w: Array, x: Array) -> Array:
        """The label or the value predicted for every row."""
        return self._kept([model.predict(w, x) for model in self.models])

    def scores(self, w: Array, x: Array) -> Array:
        """What the model computes of every row."""
        models: Any = self.models
        return self._kept([model.scores(w, x) for model in models])

    def _kept(self, values: list[Array]) -> Array:
        return jax.lax.select_n(self.kind, *values)


def kinds_of(model: Model) -> tuple[Model, ...]:
    """All models in use: several where agents have their own."""
    return model.models if isinstance(model, PerAgent) else (model,)


def name_of(model: Any) -> str:
    """What a model is called."""
    return getattr(model, "name", type(model).__name__.lower())
