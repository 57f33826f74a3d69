"""Exchanged poolings: values and derivatives of JAX, ties included."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from tacita.problem.model.convolutions import with_fast_derivatives


def pooled(x, window, strides, padding="VALID"):
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, strides, padding)


def test_derivatives_are_those_of_jax_where_numbers_are_equal_too():
    """Of few whole numbers, so that most windows hold their largest twice."""
    rng = np.random.default_rng(0)
    x = jnp.asarray(rng.integers(0, 3, (2, 6, 4, 3)), jnp.float32)

    def total(x, exchange):
        parts = []
        for window in ((1, 2, 2, 1), (1, 3, 4, 1), (2, 2, 1, 3)):
            pool = lambda v, w=window: pooled(v, w, w)  # noqa: E731
            out = (with_fast_derivatives(pool) if exchange else pool)(x)
            weights = jnp.arange(1.0, out.size + 1).reshape(out.shape)
            parts.append((out, jnp.sum(out * weights)))
        return sum(part for _, part in parts), [out for out, _ in parts]

    both = jax.jit(lambda x: [jax.grad(total, has_aux=True)(x, e) for e in (0, 1)])
    (plain, before), (fast, after) = both(x)
    np.testing.assert_array_equal(fast, plain)
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one, other)


def test_windows_that_overlap_or_leave_some_out_are_left_alone():
    for shape, window, strides, padding in (
        ((4, 4), (2, 2), (1, 1), "VALID"),
        ((5, 4), (2, 2), (2, 2), "VALID"),
        ((5, 4), (2, 2), (2, 2), "SAME"),
        ((4, 4), (1, 1), (1, 1), "VALID"),
    ):
        x = jnp.ones(shape)
        pool = lambda v, told=(window, strides, padding): pooled(v, *told)  # noqa: E731
        told = str(jax.make_jaxpr(with_fast_derivatives(pool))(x))
        assert told == str(jax.make_jaxpr(pool)(x))
    side = str(
        jax.make_jaxpr(with_fast_derivatives(lambda v: pooled(v, (2, 2), (2, 2))))(
            jnp.ones((4, 4))
        )
    )
    assert "reduce_window" not in side
