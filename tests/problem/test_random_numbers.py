"""Random numbers are those of JAX, whatever the shape, precision and kind of key."""

import jax
import numpy as np
import pytest

from tacita.random_numbers import normal, uniform

PAIRS = [(normal, jax.random.normal), (uniform, jax.random.uniform)]


@pytest.mark.few(8)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 5), (2, 0)])
@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_the_same_bits_as_jax(ours, theirs, dtype: str, shape: tuple[int, ...]):
    with jax.enable_x64(True):
        for seed in range(3):
            key = jax.random.key(seed)
            mine = jax.jit(lambda k: ours(k, shape, dtype))(key)
            wanted = jax.jit(lambda k: theirs(k, shape, dtype))(key)
            assert mine.dtype == wanted.dtype
            np.testing.assert_array_equal(mine, wanted)


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_the_same_bits_for_many_keys_at_once(ours, theirs):
    keys = jax.random.split(jax.random.key(1), 50)
    mine = jax.vmap(lambda k: ours(k, (9,)))(keys)
    np.testing.assert_array_equal(mine, jax.vmap(lambda k: theirs(k, (9,)))(keys))


@pytest.mark.parametrize("key", [jax.random.key(0, impl="rbg"), jax.random.PRNGKey(0)])
@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_other_keys_are_left_to_jax(ours, theirs, key):
    np.testing.assert_array_equal(ours(key, (4,)), theirs(key, (4,)))


@pytest.mark.parametrize(("ours", "theirs"), PAIRS)
def test_another_way_of_hashing_is_left_to_jax(ours, theirs):
    key = jax.random.key(0)
    with jax.threefry_partitionable(False):
        np.testing.assert_array_equal(ours(key, (4,)), theirs(key, (4,)))
