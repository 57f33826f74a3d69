"""Layers of networks: pieces of a flat vector, and gradients of dense layers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.problem.model.differentiable import Differentiable


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
        kind: type[Differentiable] = Differentiable,
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


@dataclass(frozen=True)
class Perceptron(Differentiable):
    """Dense layers with ReLU between them; made by `mlp`."""

    def grad(self, w: Array, x: Array, y: Array, weights: Array) -> Array:
        """As for any model, a little faster."""
        return self.added_up(self.layer_gradients(w, x, y), weights)

    def added_up(self, layers: list[LayerGradient], weights: Array) -> Array:
        """The weighted sum of the rows' gradients, flat."""
        parts = [part for layer in layers for part in layer.added_up(weights)]
        return Layers(self.shapes).pack(parts)

    def layer_gradients(self, w: Array, x: Array, y: Array) -> list[LayerGradient]:
        """The rows' gradients, layer by layer and in factors: none is ever built."""
        widths = [shape[0] for shape in self.shapes[1::2]]
        nothing = [jnp.zeros((x.shape[0], width), w.dtype) for width in widths]

        def total(shifts: list[Array]) -> tuple[Array, list[Array]]:
            scores, inputs = perceive(Layers(self.shapes), w, x, shifts)
            scores = scores[:, 0] if self.classes is None else scores
            return jnp.sum(self.losses_of(scores, y)), inputs

        outputs, inputs = jax.grad(total, has_aux=True)(nothing)
        return list(map(LayerGradient, inputs, outputs))


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
