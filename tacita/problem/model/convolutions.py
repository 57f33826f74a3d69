"""Convolutions whose derivatives are fast inside loops, in any network.

XLA's CPU backend runs the derivatives that JAX makes of a convolution about fifteen
times slower inside a loop than outside: their axes stand in an order that its fast
kernels do not know, and only outside of loops are they put right. Here they are put
right before. Gradients of single records, which a batch of convolutions would make
slow again, are products of matrices: patches of the input times the results.

Whose network it is does not matter: its convolutions are found in what JAX traced of it
and exchanged there, and its poolings too. Values stay the same to the bit, or to
rounding where channels come first; derivatives to rounding.
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
from jax.extend import core
from jax.extend.core import primitives

from tacita.problem.model.pooling import lies_side_by_side, pooling

#: Calls with derivatives of their own: what is inside does not matter for those.
_OWN_DERIVATIVES = ("custom_jvp_call", "custom_vjp_call")
#: Entries of a kernel that get a step each in a program: a million would take hours.
_MOST_PATCHES = 1024


def with_fast_derivatives(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function of arrays, convolutions and poolings exchanged."""

    @functools.wraps(function)
    def exchanged(*args: Any) -> Any:
        closed, shape = jax.make_jaxpr(function, return_shape=True)(*args)
        if not _has_any(closed.jaxpr):
            return function(*args)
        fast = core.jaxpr_as_fun(closed.replace(jaxpr=_exchanged(closed.jaxpr)))
        return jax.tree.unflatten(
            jax.tree.structure(shape), fast(*jax.tree.leaves(args))
        )

    return exchanged


def _has_any(jaxpr: Any) -> bool:
    return any(
        _is_plain(step)
        or lies_side_by_side(step)
        or any(map(_has_any, core.jaxprs_in_params(step.params)))
        for step in jaxpr.eqns
    )


def _exchanged(jaxpr: Any) -> Any:
    """The same steps, with fast ones for some, also inside loops and calls."""
    return jaxpr.replace(eqns=[_exchanged_step(step) for step in jaxpr.eqns])


def _exchanged_step(step: Any) -> Any:
    function = None
    if _is_plain(step):
        function = _convolution(**step.params)
    elif lies_side_by_side(step):
        function = pooling(step.params["window_dimensions"])
    if function is not None:
        shapes = [jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype) for v in step.invars]
        (fast,) = jax.make_jaxpr(function)(*shapes).jaxpr.eqns
        return fast.replace(invars=step.invars, outvars=step.outvars)
    if step.primitive.name in _OWN_DERIVATIVES:
        return step
    inside = {name: _inside(value) for name, value in step.params.items()}
    return step.replace(params=inside)


def _inside(value: Any) -> Any:
    """A parameter of a step, its programs exchanged if it has any."""
    if isinstance(value, core.Jaxpr):
        return _exchanged(value)
    if isinstance(value, core.ClosedJaxpr):
        return value.replace(jaxpr=_exchanged(value.jaxpr))
    if isinstance(value, tuple) and any(
        isinstance(one, core.Jaxpr | core.ClosedJaxpr) for one in value
    ):
        return tuple(map(_inside, value))
    return value


def _is_plain(step: Any) -> bool:
    """Whether a step is a convolution of the usual kind, without groups."""
    if step.primitive is not primitives.conv_general_dilated_p:
        return False
    told = step.params
    alone = told["feature_group_count"] == told["batch_group_count"] == 1
    return alone and all(gap == 1 for gap in told["lhs_dilation"])


@functools.lru_cache(maxsize=1024)
def _convolution(**told: Any) -> Callable[[Array, Array], Array]:
    """One convolution, with the parameters of its step, and its derivatives."""
    image, filters, result = told["dimension_numbers"]
    # As the fast kernels want them: (rows, sides..., channels), (sides..., in, out).
    in_order = (image[0], *image[2:], image[1])
    kernel_order = (*filters[2:], filters[1], filters[0])
    out_order = (result[0], *result[2:], result[1])

    def plain(x: Array, kernel: Array) -> Array:
        strides, gaps, padding = _steps(told)
        out = jax.lax.conv_general_dilated(
            x.transpose(in_order),
            kernel.transpose(kernel_order),
            strides,
            padding,
            rhs_dilation=gaps,
            dimension_numbers=_orders(len(strides)),
            precision=told["precision"],
            preferred_element_type=told["preferred_element_type"],
        )
        return out.transpose(_undone(out_order))

    def forward(x: Array, kernel: Array) -> tuple[Array, tuple[Array, Array]]:
        # Plain, so that derivatives of derivatives may be of any kind.
        return plain(x, kernel), (x, kernel)

    def backward(kept: tuple[Array, Array], out: Array) -> tuple[Array, Array]:
        x, kernel = kept
        x, kernel = x.transpose(in_order), kernel.transpose(kernel_order)
        out = out.transpose(out_order).astype(x.dtype)
        by_x = _by_input(x.shape, kernel, out, told)
        by_kernel = _by_kernel(x, kernel.shape, out, told)
        return (
            by_x.transpose(_undone(in_order)),
            by_kernel.transpose(_undone(kernel_order)),
        )

    convolve = jax.custom_vjp(plain)
    convolve.defvjp(forward, backward)
    return jax.jit(convolve)


def _undone(order: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(order.index(axis) for axis in range(len(order)))


def _by_input(
    shape: tuple[int, ...], kernel: Array, out: Array, told: dict[str, Any]
) -> Array:
    """The derivative by the input: results spread out, with the kernel turned round."""
    strides, gaps, padding = _steps(told)
    sides, margins = len(strides), []
    for k in range(sides):
        reach = (kernel.shape[k] - 1) * gaps[k]
        spread = (out.shape[k + 1] - 1) * strides[k] + 1
        before = reach - padding[k][0]
        margins.append((before, shape[k + 1] - spread - before + reach))
    return jax.lax.conv_general_dilated(
        out,
        jnp.flip(kernel, axis=tuple(range(sides))).swapaxes(-1, -2),
        window_strides=(1,) * sides,
        padding=margins,
        lhs_dilation=strides,
        rhs_dilation=gaps,
        dimension_numbers=_orders(sides),
        precision=told["precision"],
    )


def _by_kernel(
    x: Array, shape: tuple[int, ...], out: Array, told: dict[str, Any]
) -> Array:
    """The derivative by the kernel, of a batch or of a single record."""
    # Mapped over records, a convolution would become one of many groups, which is slow.
    # A kernel of one entry has patches no larger than its input.
    entries = math.prod(shape[:-2])
    patches = entries == 1 or (len(x) == 1 and entries <= _MOST_PATCHES)
    by_kernel = _by_patches if patches else _by_convolution
    return by_kernel(x, shape, out, told)


def _by_convolution(
    x: Array, shape: tuple[int, ...], out: Array, told: dict[str, Any]
) -> Array:
    """The input, channels for rows, under the results as a kernel."""
    strides, gaps, padding = _steps(told)
    sides = len(strides)
    axes, margins = range(1, sides + 1), []
    for k in range(sides):
        spread = (out.shape[k + 1] - 1) * strides[k] + 1
        before = padding[k][0]
        reach = (shape[k] - 1) * gaps[k]
        margins.append((before, reach + spread - x.shape[k + 1] - before))
    found = jax.lax.conv_general_dilated(
        x.transpose(sides + 1, *axes, 0),
        out.transpose(*axes, 0, sides + 1),
        window_strides=gaps,
        padding=margins,
        rhs_dilation=strides,
        dimension_numbers=_orders(sides),
        precision=told["precision"],
    )
    return found.transpose(*axes, 0, sides + 1)


def _by_patches(
    x: Array, shape: tuple[int, ...], out: Array, told: dict[str, Any]
) -> Array:
    """Every patch of the input, times its results: one product of matrices."""
    strides, gaps, padding = _steps(told)
    margins = [(0, 0, 0), *((before, after, 0) for before, after in padding), (0, 0, 0)]
    x = jax.lax.pad(x, jnp.zeros((), x.dtype), margins)
    parts = []
    for place in itertools.product(*map(range, shape[:-2])):
        first = [p * gap for p, gap in zip(place, gaps, strict=True)]
        length = [
            (n - 1) * s + 1 for n, s in zip(out.shape[1:-1], strides, strict=True)
        ]
        last = [a + n for a, n in zip(first, length, strict=True)]
        ends = (len(x), *last, x.shape[-1])
        parts.append(jax.lax.slice(x, (0, *first, 0), ends, (1, *strides, 1)))
    patches = jnp.concatenate(parts, axis=-1).reshape(-1, len(parts) * x.shape[-1])
    flat = out.reshape(-1, out.shape[-1])
    return jnp.matmul(patches.T, flat, precision=told["precision"]).reshape(shape)


def _steps(told: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Strides, gaps between a kernel's entries, padding."""
    return told["window_strides"], told["rhs_dilation"], told["padding"]


def _orders(sides: int) -> jax.lax.ConvDimensionNumbers:
    """Axes as the fast kernels want them."""
    images = (0, sides + 1, *range(1, sides + 1))
    kernels = (sides + 1, sides, *range(sides))
    return jax.lax.ConvDimensionNumbers(images, kernels, images)
