"""Exchanged convolutions: the same values and derivatives, wherever they stand."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tacita.problem.model import convolutions
from tacita.problem.model.convolutions import with_fast_derivatives
from tacita.problem.model.networks import cnn

LAST = ("NHWC", "HWIO", "NHWC")
FIRST = ("NCHW", "OIHW", "NCHW")
#: Axes, rows, strides, padding, gaps, and sides of the kernel; one row takes the way of
#: single records, and so does a kernel of one entry.
KINDS = [
    (LAST, 2, (2, 1), "SAME", (1, 1), (3, 2)),
    (LAST, 1, (1, 2), [(2, 0), (1, 3)], (2, 1), (3, 2)),
    (FIRST, 2, (3, 2), "VALID", (1, 2), (3, 2)),
    (FIRST, 1, (1, 1), "SAME", (1, 1), (3, 2)),
    (FIRST, 2, (2, 3), [(0, 1), (2, 0)], (1, 1), (1, 1)),
]


def arrays(axes, rows, sides):
    rng = np.random.default_rng(0)
    x, kernel = rng.normal(size=(rows, 9, 8, 3)), rng.normal(size=(*sides, 3, 4))
    if axes is FIRST:
        x, kernel = x.transpose(0, 3, 1, 2), kernel.transpose(3, 2, 0, 1)
    return jnp.asarray(x), jnp.asarray(kernel)


def test_derivatives_are_those_of_jax():
    """Strides, gaps, uneven padding and axes of any order, all in one program."""

    def total(kind, x, kernel):
        axes, _, strides, padding, gaps, _ = kind
        told = {"rhs_dilation": gaps, "dimension_numbers": axes}
        out = jax.lax.conv_general_dilated(x, kernel, strides, padding, **told)
        return jnp.sum(jnp.sin(out))

    def both(pairs):
        found = []
        for kind, pair in zip(KINDS, pairs, strict=True):
            one = lambda x, k, kind=kind: total(kind, x, k)  # noqa: E731
            fast = with_fast_derivatives(one)
            found.append([jax.grad(f, (0, 1))(*pair) for f in (one, fast)])
        return found

    with jax.enable_x64(True):
        pairs = [arrays(axes, rows, sides) for axes, rows, *_, sides in KINDS]
        for plain, fast in jax.jit(both)(pairs):
            for expected, got in zip(plain, fast, strict=True):
                np.testing.assert_allclose(got, expected, rtol=0, atol=1e-12)


def test_programs_of_large_kernels_stay_short():
    """A kernel of a million entries, which anybody may ask for, took hours to trace."""

    def total(function, kernel, x):
        return jnp.sum(jnp.sin(function(kernel, x)))

    def by_kernel(kernel, x):
        return jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME")

    exchanged = with_fast_derivatives(by_kernel)
    fast, plain = (
        jax.grad(lambda *a, f=f: total(f, *a)) for f in (exchanged, by_kernel)
    )
    rng = np.random.default_rng(2)
    with jax.enable_x64(True):
        x = jnp.asarray(rng.normal(size=(1, 1, 4, 4)))
        kernel = jnp.asarray(rng.normal(size=(1, 1, 33, 33)))
        assert str(jax.make_jaxpr(fast)(kernel, x)).count("\n") < 300
        np.testing.assert_allclose(fast(kernel, x), plain(kernel, x), atol=1e-12)


def convolve(x, kernel):
    return jax.lax.conv_general_dilated(x, kernel, (1,), "SAME")


def in_a_loop(kernel, x):
    step = lambda y, _: (jnp.tanh(convolve(y, kernel)), None)  # noqa: E731
    return jax.lax.scan(step, x, None, length=2)[0]


def in_a_choice(kernel, x):
    branches = [lambda y: convolve(y, kernel), lambda y: y]
    return jax.lax.cond(jnp.sum(x) > -1e9, *branches, x)


def kept_by_nobody(kernel, x):
    return jax.checkpoint(convolve)(x, kernel)


@pytest.mark.parametrize("place", [in_a_loop, in_a_choice, kept_by_nobody])
def test_they_are_found_inside_others(place, monkeypatch):
    rng = np.random.default_rng(1)
    x = jnp.asarray(rng.normal(size=(2, 3, 5)), jnp.float32)
    kernel = jnp.asarray(rng.normal(size=(3, 3, 3)), jnp.float32)
    used = []
    wrapped = convolutions._by_kernel  # pyright: ignore
    monkeypatch.setattr(
        convolutions, "_by_kernel", lambda *a: used.append(1) or wrapped(*a)
    )
    fast = jax.make_jaxpr(
        jax.grad(lambda k: jnp.sum(with_fast_derivatives(place)(k, x)))
    )
    assert fast(kernel).out_avals[0].shape == kernel.shape
    assert used


def test_what_has_groups_or_none_is_left_alone():
    x, kernel = jnp.ones((1, 4, 6)), jnp.ones((4, 1, 3))
    grouped = lambda k: jax.lax.conv_general_dilated(  # noqa: E731
        x, k, (1,), "SAME", feature_group_count=4
    )
    for function in (grouped, jnp.sin):
        told = [
            str(jax.make_jaxpr(f)(kernel))
            for f in (function, with_fast_derivatives(function))
        ]
        assert told[0] == told[1]


def test_a_network_scores_as_before_and_its_curvature_is_there():
    model = cnn((4, 4, 1), 3, (2,))
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.normal(size=(3, 16)), jnp.float32)
    y, w = jnp.asarray([0, 1, 2]), jnp.asarray(model.start())
    np.testing.assert_array_equal(
        jax.jit(model.scores)(w, x), jax.jit(model.apply)(w, x)
    )
    one = jnp.full(3, 1 / 3, jnp.float32)

    def along(v):
        grad = lambda u: model.grad(u, x, y, one)  # noqa: E731
        return jax.jvp(grad, (w,), (v,))[1]

    def against(v):
        return jax.grad(lambda u: model.grad(u, x, y, one) @ v)(w)

    v = jnp.asarray(rng.normal(size=model.dim), jnp.float32)
    first, second = jax.jit(lambda v: (along(v), against(v)))(v)
    np.testing.assert_allclose(first, second, atol=1e-5)
