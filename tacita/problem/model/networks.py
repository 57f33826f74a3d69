"""Small networks for images and tables.

Builders return the same object for the same arguments, so that two problems made alike
share one compiled program.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ParamSpec

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.problem.model.differentiable import Differentiable, Recipe
from tacita.problem.model.layers import Headed, Layers, Perceptron, perceive

Sizes = ParamSpec("Sizes")


def _remembered(
    build: Callable[Sizes, Differentiable],
) -> Callable[Sizes, Differentiable]:
    """Build a network once for the same arguments, whether sizes are listed or not."""
    signature = inspect.signature(build)

    @functools.lru_cache
    def built(recipe: Recipe) -> Differentiable:
        arguments: dict[str, Any] = dict(recipe.arguments)
        return replace(build(**arguments), recipe=recipe)  # pyright: ignore

    @functools.wraps(build)
    def network(*args: Sizes.args, **options: Sizes.kwargs) -> Differentiable:
        told = signature.bind(*args, **options)
        told.apply_defaults()
        named = ((name, _fixed(value)) for name, value in told.arguments.items())
        return built(Recipe(build.__name__, tuple(named)))

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


def _dense(sizes: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Shapes of matrix and bias of every layer between these sizes."""
    pairs = zip(sizes[:-1], sizes[1:], strict=True)
    return tuple(shape for a, b in pairs for shape in ((a, b), (b,)))


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
    layers = Layers(_dense(sizes))

    def apply(w: Array, x: Array) -> Array:
        scores = perceive(layers, w, x)[0]
        return scores[:, 0] if classes is None else scores

    name = f"mlp{list(sizes)}"
    return layers.network(apply, seed, classes, name, Perceptron)


@_remembered
def cnn(
    image: Sequence[int],
    classes: int,
    channels: Sequence[int] = (16, 32),
    kernel: int = 3,
    hidden: Sequence[int] = (),
    seed: int = 0,
) -> Differentiable:
    """A small convolutional network: convolutions, ReLU, 2x2 pooling, dense layers.

    Args:
        image: Height, width and channels of one row of x (flat rows are reshaped).
        classes: Number of classes.
        channels: Output channels of the convolutions, one pooling after each.
        kernel: Side of the convolutions' kernels.
        hidden: Sizes of dense layers between the convolutions and the classes.
        seed: Of the starting point.

    For handwritten digits as in B. McMahan et al., "Communication-efficient learning of
    deep networks from decentralized data", 2017:

    >>> cnn((28, 28, 1), 10, (32, 64), kernel=5, hidden=(512,)).dim
    1663370
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
    check.count(kernel=kernel)
    shapes: list[tuple[int, ...]] = []
    for a, b in zip((depth, *channels[:-1]), channels, strict=True):
        shapes += [(kernel, kernel, a, b), (b,)]
    flat = height * width // shrink**2 * channels[-1]
    dense = (flat, *_counts("hidden", hidden), _outputs(classes))
    body, head = Layers(tuple(shapes)), Layers(_dense(dense))

    def encode(w: Array, x: Array) -> Array:
        parts = body.unpack(w)
        x = x.reshape(x.shape[0], *image)
        for filters, bias in zip(parts[::2], parts[1::2], strict=True):
            x = jax.nn.relu(convolve(x, filters) + bias)
            b, h, v, c = x.shape
            x = x.reshape(b, h // 2, 2, v // 2, 2, c).max(axis=(2, 4))
        return x

    def apply(w: Array, x: Array) -> Array:
        own, rest = jax.lax.split(w, [body.dim, head.dim])
        return perceive(head, rest, encode(own, x))[0]

    layers = Layers((*body.shapes, *head.shapes))
    kind = functools.partial(Headed, body=body, encode=encode)
    return layers.network(apply, seed, classes, f"cnn{[*channels, *hidden]}", kind)


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
    layers = Layers((*shapes, (widths[-1], _outputs(classes)), (classes,)))

    def apply(w: Array, x: Array) -> Array:
        parts = iter(layers.unpack(w))

        def normalised(x: Array) -> Array:
            return normalise(x, next(parts), next(parts), groups)

        x = x.reshape(x.shape[0], *image)
        x = jax.nn.relu(normalised(convolve(x, next(parts))))
        for stage, channels in enumerate(widths):
            stride = 1 if stage == 0 else 2
            y = jax.nn.relu(normalised(convolve(x, next(parts), stride)))
            y = normalised(convolve(y, next(parts)))
            same = x.shape[-1] == channels
            x = jax.nn.relu(y + (x if same else convolve(x, next(parts), stride)))
        return x.mean(axis=(1, 2)) @ next(parts) + next(parts)

    name = f"resnet10[{width}]"
    return layers.network(apply, seed, classes, name)


def normalise(x: Array, scale: Array, shift: Array, groups: int) -> Array:
    """Every record's channels, in so many groups, to mean 0 and deviation 1.

    Scales are differences from 1, so that all start at zero.
    """
    rows, channels = len(x), x.shape[-1]

    def of_groups(each: Array) -> Array:
        """Means over groups of what there is of every channel, (rows, channels)."""
        parts = each.reshape(rows, groups, -1).mean(axis=-1, keepdims=True)
        alike = jnp.broadcast_to(parts, (rows, groups, channels // groups))
        return alike.reshape(rows, 1, 1, channels)

    # Over places first: sums of whole rows of channels are vectors.
    mean = of_groups(x.mean(axis=(1, 2)))
    spread = of_groups(((x - mean) ** 2).mean(axis=(1, 2)))
    return (x - mean) * ((1 + scale) / jnp.sqrt(spread + 1e-5)) + shift


def convolve(x: Array, kernel: Array, stride: int = 1) -> Array:
    """A convolution whose output is as large as its input, but for the stride."""
    return jax.lax.conv_general_dilated(
        x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
