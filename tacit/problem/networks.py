"""Models without a hand-written gradient: any JAX function, and small networks.

Builders return the same object for the same arguments, so that two problems made alike
share one compiled program.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, ParamSpec

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacit import check
from tacit.problem.models import pick

Sizes = ParamSpec("Sizes")


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
    """

    dim: int
    apply: Callable[[Array, Array], Array]
    initial: Callable[[], np.ndarray]
    classes: int | None = None
    name: str = "model"
    shapes: tuple[tuple[int, ...], ...] = ()

    def layers(self, *numbers: int) -> np.ndarray:
        """Which parameters make up these layers, for `Penalty(coordinates=...)`.

        A layer is a matrix or a kernel and the biases after it; -1 is the last one.

        >>> mlp(2, (3,), 1).layers(-1).tolist() == [False] * 9 + [True] * 4
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
        """Unknown to Tacit: labels are passed to the loss as they are."""
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


def _slices(shapes: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, int], ...]:
    ends = np.cumsum([math.prod(s) for s in shapes]).tolist()
    return tuple(zip([0, *ends[:-1]], ends, strict=True))


@dataclass(frozen=True)
class _Layers:
    """Names the pieces of a flat vector: weight and bias of every layer in turn."""

    shapes: tuple[tuple[int, ...], ...]

    @property
    def dim(self) -> int:
        return sum(math.prod(s) for s in self.shapes)

    def unpack(self, w: Array) -> list[Array]:
        return [
            w[a:b].reshape(s)
            for (a, b), s in zip(_slices(self.shapes), self.shapes, strict=True)
        ]

    def pack(self, parts: list[Array]) -> Array:
        """The flat vector of all pieces, written in place: faster than joining them."""
        flat = jnp.zeros(self.dim, parts[0].dtype)
        for (first, _), part in zip(_slices(self.shapes), parts, strict=True):
            flat = jax.lax.dynamic_update_slice(flat, part.ravel(), (first,))
        return flat

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
        return _Layers(self.shapes).pack(parts)

    def layer_gradients(self, w: Array, x: Array, y: Array) -> list[LayerGradient]:
        """The rows' gradients, layer by layer and in factors: none is ever built."""
        widths = [shape[0] for shape in self.shapes[1::2]]
        nothing = [jnp.zeros((x.shape[0], width), w.dtype) for width in widths]

        def total(shifts: list[Array]) -> tuple[Array, list[Array]]:
            scores, inputs = _perceive(_Layers(self.shapes), w, x, shifts)
            scores = scores[:, 0] if self.classes is None else scores
            return jnp.sum(self.losses_of(scores, y)), inputs

        outputs, inputs = jax.grad(total, has_aux=True)(nothing)
        return list(map(LayerGradient, inputs, outputs))


def _remembered(
    build: Callable[Sizes, Differentiable],
) -> Callable[Sizes, Differentiable]:
    """Build a network once for the same arguments, whether sizes are listed or not."""
    built = functools.lru_cache(build)

    @functools.wraps(build)
    def network(*args: Sizes.args, **options: Sizes.kwargs) -> Differentiable:
        named = {name: _fixed(value) for name, value in options.items()}
        return built(*map(_fixed, args), **named)

    return network


def _fixed(value: Any) -> Any:
    """Lists and arrays as tuples, which a cache can look up."""
    if isinstance(value, str) or not np.iterable(value):
        return value
    return tuple(_fixed(one) for one in value)


def _counts(name: str, sizes: Any) -> Any:
    """Refuse what is no tuple of whole numbers >= 1."""
    if not isinstance(sizes, tuple):
        check.refuse(f"expected {name} a list of sizes such as (32,), got {sizes!r}")
    for size in sizes:
        check.count(**{name: check.given(**{name: size})})
    return sizes


def _image(image: Any) -> Any:
    if len(_counts("image", image)) != 3:
        check.refuse(f"expected image=(height, width, channels), got image={image!r}")
    return image


def _outputs(classes: Any) -> int:
    return check.count(2, classes=check.given(classes=classes))


@_remembered
def mlp(
    features: int, hidden: Sequence[int], classes: int | None, seed: int = 0
) -> Differentiable:
    """A multi-layer perceptron with ReLU between its layers.

    Args:
        features: Numbers in one row of x (rows of more axes are made flat).
        hidden: Sizes of the layers in between; empty for a linear model.
        classes: Number of classes, or None for regression.
        seed: Of the starting point.

    >>> mlp(3, [4], 2).dim  # 3*4 + 4 and 4*2 + 2
    26
    """
    check.count(features=check.given(features=features))
    _counts("hidden", hidden)
    outputs = 1 if classes is None else _outputs(classes)
    sizes = (features, *hidden, outputs)
    layers = _Layers(
        tuple(
            shape
            for a, b in zip(sizes[:-1], sizes[1:], strict=True)
            for shape in ((a, b), (b,))
        )
    )

    def apply(w: Array, x: Array) -> Array:
        scores = _perceive(layers, w, x)[0]
        return scores[:, 0] if classes is None else scores

    name = f"mlp{list(sizes)}"
    return layers.network(apply, seed, classes, name, Perceptron)


def _perceive(
    layers: _Layers, w: Array, x: Array, shifts: Any = None
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


@_remembered
def cnn(
    image: Sequence[int],
    classes: int,
    channels: Sequence[int] = (16, 32),
    seed: int = 0,
) -> Differentiable:
    """A small convolutional network: 3x3 convolutions, ReLU, 2x2 pooling, one dense.

    Args:
        image: Height, width and channels of one row of x (flat rows are reshaped).
        classes: Number of classes.
        channels: Output channels of the convolutions, one pooling after each.
        seed: Of the starting point.
    """
    height, width, depth = _image(image)
    if not _counts("channels", channels):
        check.refuse("channels is empty; give one number per convolution, or use mlp")
    shrink = 2 ** len(channels)
    if height % shrink or width % shrink:
        check.refuse(
            f"expected image sides divisible by {shrink} for {len(channels)} "
            f"poolings, got image={image}; pad the images or use fewer channels"
        )
    shapes: list[tuple[int, ...]] = []
    for a, b in zip((depth, *channels[:-1]), channels, strict=True):
        shapes += [(3, 3, a, b), (b,)]
    flat = height * width // shrink**2 * channels[-1]
    layers = _Layers((*shapes, (flat, _outputs(classes)), (classes,)))

    def apply(w: Array, x: Array) -> Array:
        parts = layers.unpack(w)
        x = x.reshape(x.shape[0], *image)
        for kernel, bias in zip(parts[:-2:2], parts[1:-2:2], strict=True):
            x = jax.lax.conv_general_dilated(
                x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )
            x = jax.nn.relu(x + bias)
            b, h, v, c = x.shape
            x = x.reshape(b, h // 2, 2, v // 2, 2, c).max(axis=(2, 4))
        return x.reshape(x.shape[0], -1) @ parts[-2] + parts[-1]

    name = f"cnn{list(channels)}"
    return layers.network(apply, seed, classes, name)


@_remembered
def resnet10(
    image: Sequence[int],
    classes: int,
    width: int = 64,
    groups: int = 4,
    seed: int = 0,
) -> Differentiable:
    """ResNet-10 with group normalisation: four stages of one residual block each.

    K. He et al., CVPR 2016, with one block a stage; Y. Wu, K. He, "Group
    normalization", ECCV 2018. Every record is normalised by itself, so that gradients
    of single records exist, which batch normalisation would not allow.

    Args:
        image: Height, width and channels of one row of x (flat rows are reshaped).
        classes: Number of classes.
        width: Channels of the first stage; each later one has twice as many.
        groups: Channels are normalised in this many groups.
        seed: Of the starting point.
    """
    _image(image)
    if check.count(width=width) % check.count(groups=groups):
        check.refuse(f"expected width divisible by groups={groups}, got width={width}")
    widths = [width * 2**stage for stage in range(4)]
    shapes: list[tuple[int, ...]] = [(3, 3, image[2], width), (width,), (width,)]
    for a, b in zip([width, *widths[:-1]], widths, strict=True):
        shapes += [(3, 3, a, b), (b,), (b,), (3, 3, b, b), (b,), (b,)]
        shapes += [(1, 1, a, b)] if a != b else []
    layers = _Layers((*shapes, (widths[-1], _outputs(classes)), (classes,)))

    def normalise(x: Array, scale: Array, shift: Array) -> Array:
        rows, h, v, c = x.shape
        parts = x.reshape(rows, h * v, groups, c // groups)
        mean = parts.mean(axis=(1, 3), keepdims=True)
        spread = parts.var(axis=(1, 3), keepdims=True)
        x = ((parts - mean) / jnp.sqrt(spread + 1e-5)).reshape(x.shape)
        # Scales are stored as differences from 1, so that all start at zero.
        return x * (1 + scale) + shift

    def apply(w: Array, x: Array) -> Array:
        parts = iter(layers.unpack(w))
        x = x.reshape(x.shape[0], *image)
        x = jax.nn.relu(normalise(_conv(x, next(parts)), next(parts), next(parts)))
        for stage, channels in enumerate(widths):
            stride = 1 if stage == 0 else 2
            y = _conv(x, next(parts), stride)
            y = jax.nn.relu(normalise(y, next(parts), next(parts)))
            y = normalise(_conv(y, next(parts)), next(parts), next(parts))
            same = x.shape[-1] == channels
            x = jax.nn.relu(y + (x if same else _conv(x, next(parts), stride)))
        return x.mean(axis=(1, 2)) @ next(parts) + next(parts)

    name = f"resnet10[{width}]"
    return layers.network(apply, seed, classes, name)


def _conv(x: Array, kernel: Array, stride: int = 1) -> Array:
    return jax.lax.conv_general_dilated(
        x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
