"""Models without a hand-written gradient: any JAX function."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.problem.model.linear import pick


class Recipe(NamedTuple):
    """How a network is built: by which function of `tacita.problem`, from what."""

    function: str
    arguments: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Differentiable:
    """Any JAX model: `scores(w, x)` for a stack of rows, gradients by autodiff.

    Args:
        dim: Length of the flat parameter vector.
        apply: Function (w, x) -> scores, shape (m, classes), or (m,) for regression.
        initial: Function () -> NumPy vector, the starting point.
        classes: Number of classes, or None for regression with squared error.
        name: Shown in reports.
        shapes: Of the arrays that make up the flat vector, in turn; () if not told.
        recipe: How the same network is built anew, or None if only its maker knows.
    """

    dim: int
    apply: Callable[[Array, Array], Array]
    initial: Callable[[], np.ndarray]
    classes: int | None = None
    name: str = "model"
    shapes: tuple[tuple[int, ...], ...] = ()
    recipe: Recipe | None = None

    def layers(self, *numbers: int) -> np.ndarray:
        """Which parameters make up these layers, for `Penalty(coordinates=...)`.

        A layer is a matrix or a kernel and the biases after it; -1 is the last one.

        >>> from tacita.problem.model.networks import mlp
        >>> mlp(2, (3,), None).layers(-1).tolist() == [False] * 9 + [True] * 4
        True
        """
        sizes = [math.prod(shape) for shape in self.shapes]
        starts = np.cumsum([len(shape) > 1 for shape in self.shapes])
        count = int(starts[-1]) if sizes else 0
        for number in numbers:
            if not -count <= number < count:
                check.refuse(f"{self.name} has {count} layers, got number {number}")
        return np.isin(np.repeat(starts - 1, sizes), [k % count for k in numbers])

    def losses(self, w: Array, x: Array, y: Array) -> Array:
        """Cross-entropy, or squared error for regression."""
        return self.losses_of(self.apply(w, x), y)

    def losses_of(self, scores: Array, y: Array) -> Array:
        """The losses, given the scores."""
        if self.classes is None:
            return (scores - y) ** 2
        return jax.nn.logsumexp(scores, axis=-1) - pick(scores, y)

    def grad(self, w: Array, x: Array, y: Array, weights: Array) -> Array:
        """Reverse-mode derivative of the weighted loss."""
        return jax.grad(lambda v: jnp.sum(weights * self.losses(v, x, y)))(w)

    def predict(self, w: Array, x: Array) -> Array:
        """The best class, or the value."""
        scores = self.apply(w, x)
        return scores if self.classes is None else jnp.argmax(scores, axis=-1)

    def start(self) -> np.ndarray:
        """The given starting point."""
        return np.asarray(self.initial())


@dataclass(frozen=True)
class Custom:
    """Any JAX loss: `example_losses(w, x, y) -> (m,)`, gradients by autodiff."""

    dim: int
    example_losses: Callable[[Array, Array, Array], Array]
    initial: Callable[[], np.ndarray]
    name: str = "custom"

    @property
    def classes(self) -> int | None:
        """Unknown to Tacita: labels are passed to the loss as they are."""
        return None

    def losses(self, w: Array, x: Array, y: Array) -> Array:
        """The user's losses."""
        return self.example_losses(w, x, y)

    def grad(self, w: Array, x: Array, y: Array, weights: Array) -> Array:
        """Reverse-mode derivative of the weighted loss."""
        return jax.grad(lambda v: jnp.sum(weights * self.losses(v, x, y)))(w)

    def predict(self, w: Array, x: Array) -> Array:
        """Not defined for a bare loss."""
        check.refuse("a custom loss makes no predictions; record its loss instead")

    def start(self) -> np.ndarray:
        """The given starting point."""
        return np.asarray(self.initial())
