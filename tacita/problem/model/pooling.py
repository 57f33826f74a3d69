"""The largest number of every window, with a derivative that is fast on CPUs.

JAX's derivative of a pooling sends every result back to its window with a general
scatter, ten times slower than a convolution needs. Where windows lie side by side, each
number knows its window: it is compared with the result, and the first that equals it
gets the derivative, as in JAX.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array


def lies_side_by_side(step: Any) -> bool:
    """Whether a step takes the largest of windows that fill all, without overlap."""
    if step.primitive.name != "reduce_window_max":
        return False
    told, shape = step.params, step.invars[0].aval.shape
    window = told["window_dimensions"]
    return (
        told["window_strides"] == window
        and all(n % k == 0 for n, k in zip(shape, window, strict=True))
        and all(pair == (0, 0) for pair in told["padding"])
        and {*told["base_dilation"], *told["window_dilation"]} == {1}
        and 1 < math.prod(window) <= 16
    )


@functools.lru_cache(maxsize=256)
def pooling(window: tuple[int, ...]) -> Callable[[Array], Array]:
    """The largest of every window."""
    inside = tuple(range(1, 2 * len(window), 2))

    def cut(x: Array) -> Array:
        """Axes in pairs: which window, and where in it."""
        pairs = zip(x.shape, window, strict=True)
        return x.reshape([n for size, k in pairs for n in (size // k, k)])

    def largest(x: Array) -> Array:
        return cut(x).max(axis=inside)

    def forward(x: Array) -> tuple[Array, tuple[Array, Array]]:
        found = largest(x)
        return found, (x, found)

    def backward(kept: tuple[Array, Array], out: Array) -> tuple[Array]:
        x, found = kept
        parts = cut(x)
        equal = parts == jnp.expand_dims(found, inside)
        number = _numbers(parts.shape, window)
        taken = jnp.zeros(parts.shape, bool)  # by an earlier one of the window
        for k, place in enumerate(itertools.product(*map(range, window))):
            here = equal[
                tuple(n for p in place for n in (slice(None), slice(p, p + 1)))
            ]
            taken = taken | (here & (number > k))
        each = jnp.where(equal & ~taken, jnp.expand_dims(out, inside), 0)
        return (each.reshape(x.shape),)

    pool = jax.custom_vjp(largest)
    pool.defvjp(forward, backward)
    return jax.jit(pool)


def _numbers(shape: tuple[int, ...], window: tuple[int, ...]) -> Array:
    """Of every place in its window, in order."""
    number = jnp.zeros(shape, jnp.int32)
    for axis, side in enumerate(window):
        along = jax.lax.broadcasted_iota(jnp.int32, shape, 2 * axis + 1)
        number = number * side + along
    return number
