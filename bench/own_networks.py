"""Networks that users wrote: an LSTM, a transformer, CNNs in Flax and in Equinox."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tacita.problem import from_equinox, from_flax, from_function
from tacita.problem.model.differentiable import Differentiable

CHARACTERS, LENGTH = 60, 20
Shapes = tuple[tuple[int, ...], ...]


def lstm(width: int = 128) -> tuple[Differentiable, Shapes]:
    """Over characters; it makes its own zeros."""
    p = _normal(letters=(CHARACTERS, 32), gates=(32 + width, 4 * width))
    p |= _normal(scores=(width, CHARACTERS))

    def apply(p: Any, codes: Any) -> Any:
        def cell(state: Any, x: Any) -> Any:
            h, c = state
            gates = jnp.concatenate([x, h], axis=-1) @ p["gates"]
            i, f, g, o = jnp.split(gates, 4, axis=-1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

        letters = p["letters"][codes].swapaxes(0, 1)
        start = jnp.zeros((codes.shape[0], width))
        return jax.lax.scan(cell, (start, start), letters)[0][0] @ p["scores"]

    return from_function(apply, p, classes=CHARACTERS, whole=True), _shapes(p)


def transformer(
    width: int = 64, heads: int = 4, layers: int = 2
) -> tuple[Differentiable, Shapes]:
    """Over characters: attention and dense layers, normalised before each."""
    p = _normal(letters=(CHARACTERS, width), places=(LENGTH, width))
    p |= _normal(scores=(width, CHARACTERS))
    for k in range(layers):
        p |= {f"{k} {n}": a for n, a in _block(width).items()}

    def normalised(x: Any) -> Any:
        mean = x.mean(axis=-1, keepdims=True)
        return (x - mean) / jnp.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)

    def attended(x: Any, inner: Any, outer: Any) -> Any:
        rows, length, _ = x.shape
        shape = (rows, length, heads, width // heads)
        q, k, v = (part.reshape(shape) for part in jnp.split(x @ inner, 3, axis=-1))
        scores = jnp.einsum("rihd,rjhd->rhij", q, k) / np.sqrt(width // heads)
        seen = jnp.tril(jnp.ones((length, length), bool))
        weights = jax.nn.softmax(jnp.where(seen, scores, -1e9))
        return jnp.einsum("rhij,rjhd->rihd", weights, v).reshape(x.shape) @ outer

    def apply(p: Any, codes: Any) -> Any:
        x = p["letters"][codes] + p["places"]
        for k in range(layers):
            x = x + attended(normalised(x), p[f"{k} attend"], p[f"{k} join"])
            x = x + jax.nn.gelu(normalised(x) @ p[f"{k} widen"]) @ p[f"{k} narrow"]
        return normalised(x[:, -1]) @ p["scores"]

    return from_function(apply, p, classes=CHARACTERS, whole=True), _shapes(p)


def flax_cnn() -> Differentiable:
    """The CNN (32, 64) as a Flax user writes it."""
    from flax import nnx

    class Network(nnx.Module):
        def __init__(self, rngs: nnx.Rngs) -> None:
            self.first = nnx.Conv(1, 32, (3, 3), rngs=rngs)
            self.second = nnx.Conv(32, 64, (3, 3), rngs=rngs)
            self.last = nnx.Linear(3136, 10, rngs=rngs)

        def __call__(self, x: Any) -> Any:
            for layer in (self.first, self.second):
                x = nnx.max_pool(nnx.relu(layer(x)), (2, 2), (2, 2))
            return self.last(x.reshape(len(x), -1))

    return from_flax(Network(nnx.Rngs(0)), classes=10, row=(28, 28, 1))


def equinox_cnn() -> Differentiable:
    """The CNN (32, 64) as an Equinox user writes it."""
    import equinox

    nn, keys = equinox.nn, jax.random.split(jax.random.key(0), 3)
    layers: list[Any] = []
    for a, b, key in ((1, 32, keys[0]), (32, 64, keys[1])):
        layers += [nn.Conv2d(a, b, 3, padding=1, key=key), nn.Lambda(jax.nn.relu)]
        layers += [nn.MaxPool2d(2, 2)]
    dense = nn.Lambda(jnp.ravel), nn.Linear(3136, 10, key=keys[2])
    network = nn.Sequential([*layers, *dense])
    return from_equinox(network, classes=10, row=(1, 28, 28))


def _block(width: int) -> dict[str, np.ndarray]:
    attend = _normal(attend=(width, 3 * width), join=(width, width))
    return attend | _normal(widen=(width, 4 * width), narrow=(4 * width, width))


def _normal(**shapes: tuple[int, ...]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    made = {name: rng.normal(0, 0.1, shape) for name, shape in shapes.items()}
    return {name: array.astype(np.float32) for name, array in made.items()}


def _shapes(parameters: dict[str, np.ndarray]) -> Shapes:
    return tuple(array.shape for _, array in sorted(parameters.items()))
