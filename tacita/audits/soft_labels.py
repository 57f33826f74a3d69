"""Labels that are not known yet: chances of every class, sought with the rows."""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita.problem.model.linear import Model, Signed
from tacita.problem.model.wrapped import Around


@dataclass(frozen=True)
class SoftLabels(Around):
    """A model whose labels are chances of every class, (m, classes), to be sought.

    The loss of a row is the mean of its losses for every class, so a gradient is that
    of as many rows as there are classes.
    """

    model: Model

    @property
    def codes(self) -> np.ndarray:
        """The labels that stand for the classes."""
        if isinstance(self.model, Signed):
            return np.array([-1.0, 1.0])
        return np.arange(self.model.classes or 0)

    def _every(self, x: Array, y: Array) -> tuple[Array, Array]:
        """Every row once for every class."""
        rows, classes = y.shape
        codes = jnp.tile(jnp.asarray(self.codes), rows)
        return jnp.repeat(x, classes, axis=0), codes

    def losses(self, w: Array, x: Array, y: Array) -> Array:
        """The mean over classes."""
        every = self.model.losses(w, *self._every(x, y)).reshape(y.shape)
        return jnp.sum(y * every, axis=1)

    def grad(self, w: Array, x: Array, y: Array, weights: Array) -> Array:
        """Linear in the chances."""
        shares = (jnp.reshape(weights, (-1, 1)) * y).ravel()
        return self.model.grad(w, *self._every(x, y), shares)

    def predict(self, w: Array, x: Array) -> Array:
        """As the model."""
        return self.model.predict(w, x)
