"""Models without a hand-written gradient: any JAX function.

They are traced in the precision of their parameters: what a user's code makes of its
own, such as `jnp.zeros(n)`, must not lift a model of float32 to float64.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.problem.model.convolutions import with_fast_derivatives
from tacita.problem.model.linear import pick
from tacita.problem.model.pieces import added_up, one_after_another, rows_at_once
from tacita.trees import precision_of


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
        classes: Number of classes, or None for regression.
        name: Shown in reports.
        shapes: Of the arrays that make up the flat vector, in turn; () if not told.
        recipe: How the same network is built anew, or None if only its maker knows.
        loss: Function (scores, y) -> (m,), y being class codes if there are classes;
            None for cross-entropy, or squared error for regression.
    """

    dim: int
    apply: Callable[[Array, Array], Array]
    initial: Callable[[], np.ndarray]
    classes: int | None = None
    name: str = "model"
    shapes: tuple[tuple[int, ...], ...] = ()
    recipe: Recipe | None = None
    loss: Callable[[Array, Array], Array] | None = None

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

    def scores(self, w: Array, x: Array) -> Array:
        """What the model says of every row; refused if it says too much or little."""
        if not self._rows_apart or not len(x):
            return self._scores(w, x)
        size = rows_at_once(self._scores, w, x)
        return one_after_another(functools.partial(self._scores, w), x, size)

    def _scores(self, w: Array, x: Array) -> Array:
        """Of all rows at once."""
        with precision_of(w.dtype):
            scores = with_fast_derivatives(self.apply)(w, x)
        expected = x.shape[:1] if self.classes is None else (len(x), self.classes)
        if self.loss is None and scores.shape != expected:
            one = "one score" if self.classes is None else f"{self.classes} scores"
            check.refuse(
                f"expected {one} of every row, shape {expected}, got {scores.shape}"
            )
        return scores

    @property
    def _rows_apart(self) -> bool:
        """Whether no row's loss depends on others, as in networks that are built here.

        What a user wrote may look at all rows of a batch, to normalise them.
        """
        return self.recipe is not None and self.loss is None

    def losses(self, w: Array, x: Array, y: Array) -> Array:
        """Cross-entropy, squared error, or the loss that was given."""
        return self.losses_of(self.scores(w, x), y)

    def losses_of(self, scores: Array, y: Array) -> Array:
        """The losses, given the scores."""
        if self.loss is not None:
            with precision_of(scores.dtype):
                return self.loss(scores, y)
        if self.classes is None:
            return (scores - y) ** 2
        return jax.nn.logsumexp(scores, axis=-1) - pick(scores, y)

    def grad(self, w: Array, x: Array, y: Array, weights: Array) -> Array:
        """Reverse-mode derivative of the weighted loss."""
        one = functools.partial(_grad, self.losses)
        if not self._rows_apart or not len(x):
            return one(w, x, y, weights)
        rows = x, y, jnp.broadcast_to(weights, x.shape[:1])
        return added_up(one, w, rows, rows_at_once(self._scores, w, x))

    def predict(self, w: Array, x: Array) -> Array:
        """The best class, or the value."""
        scores = self.scores(w, x)
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
        with precision_of(w.dtype):
            return with_fast_derivatives(self.example_losses)(w, x, y)

    def grad(self, w: Array, x: Array, y: Array, weights: Array) -> Array:
        """Reverse-mode derivative of the weighted loss."""
        return _grad(self.losses, w, x, y, weights)

    def predict(self, w: Array, x: Array) -> Array:
        """Not defined for a bare loss."""
        check.refuse("a custom loss makes no predictions; record its loss instead")

    def start(self) -> np.ndarray:
        """The given starting point."""
        return np.asarray(self.initial())


def _grad(
    losses: Callable[..., Array], w: Array, x: Array, y: Array, weights: Array
) -> Array:
    """The derivative by w of the weighted losses, in the precision of w throughout."""
    with precision_of(w.dtype):
        return jax.grad(lambda v: jnp.sum(weights * losses(v, x, y)))(w)
