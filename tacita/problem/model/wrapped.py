"""Models around models: rows with weights, rows in which a feature must not matter."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita.problem.model.linear import Model


class Around:
    """What a model around another keeps of it: parameters, classes, the start."""

    model: Model

    @property
    def dim(self) -> int:
        """The inner model's."""
        return self.model.dim

    @property
    def classes(self) -> int | None:
        """The inner model's."""
        return self.model.classes

    @property
    def _inner_name(self) -> str:
        return getattr(self.model, "name", type(self.model).__name__.lower())

    def start(self) -> np.ndarray:
        """The inner model's."""
        return self.model.start()


@dataclass(frozen=True)
class OneByOne(Around):
    """A model that is shown one row at a time: no row's loss depends on the others."""

    model: Model

    def losses(self, w: Array, x: Array, y: Array) -> Array:
        """The inner loss of every row, alone."""
        one = jax.vmap(lambda row, label: self.model.losses(w, row[None], label[None]))
        return one(x, y)[:, 0]


@dataclass(frozen=True)
class Weighted(Around):
    """A model whose rows carry their weight as a last feature."""

    model: Model

    @property
    def name(self) -> str:
        """Shown in reports."""
        return f"{self._inner_name} with weighted rows"

    def losses(self, w: Array, x: Array, y: Array) -> Array:
        """The inner losses, each times its row's weight."""
        return x[:, -1] * self.model.losses(w, x[:, :-1], y)

    def grad(self, w: Array, x: Array, y: Array, weights: Array) -> Array:
        """The inner gradient, with both weights."""
        return self.model.grad(w, x[:, :-1], y, weights * x[:, -1])

    def predict(self, w: Array, x: Array) -> Array:
        """The inner prediction."""
        return self.model.predict(w, x[:, :-1])


@dataclass(frozen=True)
class EveryValue(Around):
    """A model trained on every row with each value of one feature.

    Attributes:
        model: The model itself.
        column: The number of the feature.
        values: All values that it takes.
    """

    model: Model
    column: int
    values: tuple[float, ...]

    @property
    def name(self) -> str:
        """Shown in reports."""
        return f"{self._inner_name} whatever feature {self.column} is"

    def losses(self, w: Array, x: Array, y: Array) -> Array:
        """The mean over the values of the inner losses."""
        each = jax.vmap(lambda v: self.model.losses(w, self._with(x, v), y))
        return jnp.mean(each(self._listed(x)), axis=0)

    def grad(self, w: Array, x: Array, y: Array, weights: Array) -> Array:
        """The mean over the values of the inner gradients."""
        each = jax.vmap(lambda v: self.model.grad(w, self._with(x, v), y, weights))
        return jnp.mean(each(self._listed(x)), axis=0)

    def predict(self, w: Array, x: Array) -> Array:
        """The inner prediction for the row as it is."""
        return self.model.predict(w, x)

    def _listed(self, x: Array) -> Array:
        return jnp.asarray(self.values, x.dtype)

    def _with(self, x: Array, value: Array) -> Array:
        return x.at[:, self.column].set(value)
