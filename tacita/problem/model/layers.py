"""Layers of networks: pieces of a flat vector, and gradients of dense layers."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.problem.model.convolutions import with_fast_derivatives
from tacita.problem.model.differentiable import Differentiable
from tacita.trees import precision_of


@dataclass(frozen=True)
class Layers:
    """Names the pieces of a flat vector: weight and bias of every layer in turn."""

    shapes: tuple[tuple[int, ...], ...]

    @property
    def dim(self) -> int:
        """Length of the flat vector."""
        return sum(math.prod(s) for s in self.shapes)

    def unpack(self, w: Array) -> list[Array]:
        """The pieces of a flat vector: their derivatives are joined, not padded."""
        sizes = [math.prod(s) for s in self.shapes]
        parts = jax.lax.split(w, sizes)
        return [p.reshape(s) for p, s in zip(parts, self.shapes, strict=True)]

    def pack(self, parts: list[Array]) -> Array:
        """The flat vector of all pieces."""
        return jnp.concatenate([part.ravel() for part in parts])

    def no_shifts(self, rows: int, dtype: Any) -> list[Array]:
        """Zeros to be added to every dense layer's outputs."""
        return [jnp.zeros((rows, shape[0]), dtype) for shape in self.shapes[1::2]]

    def glorot(self, seed: int) -> np.ndarray:
        """Glorot-normal weights and zero biases (arrays of one axis are biases)."""
        rng = np.random.default_rng(seed)
        parts = []
        for s in self.shapes:
            if len(s) == 1:
                parts.append(np.zeros(s))
            else:
                receptive = math.prod(s[:-2])
                spread = math.sqrt(2 / (receptive * (s[-2] + s[-1])))
                parts.append(rng.normal(0, spread, s).ravel())
        return np.concatenate(parts).astype(np.float32)

    def network(
        self,
        apply: Any,
        seed: int,
        classes: int | None,
        name: str,
        kind: Callable[..., Differentiable] = Differentiable,
    ) -> Differentiable:
        """The model that reads its arrays by these shapes."""
        check.seed(seed=seed)

        def initial() -> np.ndarray:
            return self.glorot(seed)

        return kind(self.dim, apply, initial, classes, name, self.shapes)


class LayerGradient(NamedTuple):
    """What a layer's part of every row's gradient is made of.

    Of row r, the gradient by the layer's matrix is inputs[r] times outputs[r]
    transposed, and the gradient by its bias is outputs[r].
    """

    inputs: Array  # (rows, inputs)
    outputs: Array  # (rows, outputs): derivatives of the losses by the outputs

    def added_up(self, weights: Array) -> tuple[Array, Array]:
        """The weighted sum of the rows' gradients, by the matrix and by the bias."""
        scaled = jnp.reshape(weights, (-1, 1)) * self.outputs
        return self.inputs.T @ scaled, scaled.sum(axis=0)


class RowGradients(NamedTuple):
    """Every row's gradient: of dense layers in factors, of what comes before as it is.

    Dense layers have most of a network's parameters: their part of a row's gradient is
    never built.
    """

    before: Array  # (rows, parameters before the dense layers)
    layers: list[LayerGradient]

    def added_up(self, weights: Array) -> Array:
        """The weighted sum of the rows' gradients, flat."""
        first = jnp.broadcast_to(weights, self.before.shape[:1]) @ self.before
        parts = [part for layer in self.layers for part in layer.added_up(weights)]
        return jnp.concatenate([part.ravel() for part in (first, *parts)])


@dataclass(frozen=True)
class Layered(Differentiable, ABC):
    """A network that ends in dense layers, with ReLU between them."""

    @abstractmethod
    def row_gradients(self, w: Array, x: Array, y: Array) -> RowGradients:
        """The gradient of every row's loss."""

    def _loss(
        self, layers: Layers, w: Array, x: Array, y: Array, shifts: list[Array]
    ) -> tuple[Array, list[Array]]:
        """The summed loss of rows that enter the dense layers, and these' inputs."""
        scores, inputs = perceive(layers, w, x, shifts)
        scores = scores[:, 0] if self.classes is None else scores
        return jnp.sum(self.losses_of(scores, y)), inputs


@dataclass(frozen=True)
class Perceptron(Layered):
    """Dense layers alone; made by `mlp`."""

    def grad(self, w: Array, x: Array, y: Array, weights: Array) -> Array:
        """As for any model, a little faster."""
        return self.row_gradients(w, x, y).added_up(weights)

    def row_gradients(self, w: Array, x: Array, y: Array) -> RowGradients:
        """The rows' gradients, layer by layer and in factors: none is ever built."""
        layers = Layers(self.shapes)
        nothing = layers.no_shifts(x.shape[0], w.dtype)
        outputs, inputs = jax.grad(
            lambda shifts: self._loss(layers, w, x, y, shifts), has_aux=True
        )(nothing)
        none = jnp.zeros((x.shape[0], 0), w.dtype)
        return RowGradients(none, list(map(LayerGradient, inputs, outputs)))


@dataclass(frozen=True)
class Headed(Layered):
    """Dense layers behind features that have parameters as well; made by `cnn`.

    Args:
        body: Arrays of the features, the first in the flat vector.
        encode: Function (w, x) -> features of every row, w being those of the body.
    """

    body: Layers = Layers(())
    encode: Callable[[Array, Array], Array] | None = None

    def row_gradients(self, w: Array, x: Array, y: Array) -> RowGradients:
        """By the body's parameters as they are, those of the head in factors."""
        assert self.encode is not None
        head = Layers(self.shapes[len(self.body.shapes) :])
        own, rest = jax.lax.split(w, [self.body.dim, head.dim])
        encode = with_fast_derivatives(self.encode)

        def one(row: Array, label: Array) -> tuple[Any, Any]:
            def loss(v: Array, shifts: list[Array]) -> tuple[Array, list[Array]]:
                with precision_of(w.dtype):
                    seen = encode(v, row[None])
                return self._loss(head, rest, seen, label[None], shifts)

            nothing = head.no_shifts(1, w.dtype)
            return jax.grad(loss, (0, 1), has_aux=True)(own, nothing)

        (before, outputs), inputs = jax.vmap(one)(x, y)
        flat = [[part[:, 0] for part in parts] for parts in (inputs, outputs)]
        return RowGradients(before, list(map(LayerGradient, *flat)))


def perceive(
    layers: Layers, w: Array, x: Array, shifts: Any = None
) -> tuple[Array, list[Array]]:
    """Scores, and every layer's inputs; `shifts` are added to the layers' outputs."""
    parts = layers.unpack(w)
    x, inputs = x.reshape(x.shape[0], -1), []
    for k, (matrix, bias) in enumerate(zip(parts[::2], parts[1::2], strict=True)):
        x = jax.nn.relu(x) if k else x
        inputs.append(x)
        x = x @ matrix + bias
        x = x if shifts is None else x + shifts[k]
    return x, inputs
