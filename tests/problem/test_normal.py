"""Noise is that of JAX, whatever the shape, the precision and the kind of key."""

import jax
import numpy as np
import pytest

from tacit.problem.normal import normal


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 5), (2, 0)])
def test_the_same_bits_as_jax(dtype: str, shape: tuple[int, ...]):
    with jax.enable_x64(True):
        for seed in range(3):
            key = jax.random.key(seed)
            ours = jax.jit(lambda k: normal(k, shape, dtype))(key)
            theirs = jax.jit(lambda k: jax.random.normal(k, shape, dtype))(key)
            assert ours.dtype == theirs.dtype
            np.testing.assert_array_equal(ours, theirs)


def test_the_same_bits_for_many_keys_at_once():
    keys = jax.random.split(jax.random.key(1), 50)
    ours = jax.vmap(lambda k: normal(k, (9,), "float32"))(keys)
    theirs = jax.vmap(lambda k: jax.random.normal(k, (9,), "float32"))(keys)
    np.testing.assert_array_equal(ours, theirs)


def test_other_keys_are_left_to_jax():
    key = jax.random.key(0, impl="rbg")
    np.testing.assert_array_equal(
        normal(key, (4,), "float32"), jax.random.normal(key, (4,), "float32")
    )
    raw = jax.random.PRNGKey(0)
    np.testing.assert_array_equal(
        normal(raw, (4,), "float32"), jax.random.normal(raw, (4,), "float32")
    )


def test_another_way_of_hashing_is_left_to_jax():
    key = jax.random.key(0)
    with jax.threefry_partitionable(False):
        np.testing.assert_array_equal(
            normal(key, (4,), "float32"), jax.random.normal(key, (4,), "float32")
        )
