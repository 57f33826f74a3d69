"""Keys of ChaCha20: the words of `cryptography`, in all of `jax.random`."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tacita import integer_noise
from tacita.aggregation.secure.derive import stream
from tacita.federation.chacha_keys import chacha_key
from tacita.federation.draws import key_for
from tacita.gaussian_table import draw, look_up
from tacita.trees import double_precision, in_double_precision

SECRET = bytes(range(32))


def words(key: jax.Array) -> bytes:
    return np.asarray(jax.random.key_data(key)).astype("<u4").tobytes()


def all_uses(key: jax.Array) -> list[jax.Array]:
    """As algorithms use keys, with everything that JAX does to a program."""
    one, two = jax.random.split(key)
    child = jax.random.fold_in(one, 7)
    many = jax.vmap(lambda k: jax.random.uniform(jax.random.fold_in(two, k), (2,)))
    looped = jax.lax.map(
        lambda k: jax.random.bits(jax.random.fold_in(two, k), (), "uint32"), N
    )
    return [jax.random.bits(child, (5, 2), np.uint32), many(N), looped]


N = np.arange(3)


@in_double_precision
def test_words_are_those_of_the_library_compiled_or_not():
    key = chacha_key(SECRET)
    plain, compiled = all_uses(key), jax.jit(all_uses)(key)
    for a, b in zip(plain, compiled, strict=True):
        np.testing.assert_array_equal(a, b)
    first = stream(SECRET, 1, 16, np.uint32)[:8].tobytes()
    child = stream(first, 2 + (7 << 32), 8, np.uint32).tobytes()
    expected = stream(child, 0, 10, np.uint32).reshape(5, 2)
    np.testing.assert_array_equal(plain[0], expected)
    second = stream(SECRET, 1, 16, np.uint32)[8:].tobytes()
    for number, drawn in zip(N, plain[2], strict=True):
        own = stream(second, 2 + (int(number) << 32), 8, np.uint32).tobytes()
        assert int(drawn) == stream(own, 0, 1, np.uint32)[0]


@in_double_precision
def test_no_two_uses_of_a_key_share_words():
    key = chacha_key(SECRET)
    made = [key, *jax.random.split(key), *(jax.random.fold_in(key, k) for k in N)]
    bits = np.asarray(jax.random.bits(key, (8,))).tobytes()
    assert len({bits, *map(words, made)}) == len(made) + 1


def test_a_seed_makes_no_such_key():
    with pytest.raises(TypeError, match="32 secret bytes, not of a seed"):
        jax.random.key(0, impl=jax.random.key_impl(chacha_key(SECRET)))


def test_purposes_have_keys_of_their_own_with_all_bits_of_the_secret():
    made = {words(key_for(SECRET, f"noise {k}")) for k in range(50)}
    assert len(made) == 50 and {len(one) for one in made} == {32}


@in_double_precision
def test_integers_come_from_whole_words_of_chacha():
    """Compiled, from the same words as the noise of secure sums, by the same table."""
    entries, each = 40, integer_noise.MULTIPLES
    draw = jax.jit(lambda key: integer_noise.integers(key, (entries,), jnp.array(each)))
    found = draw(chacha_key(SECRET))
    first = stream(SECRET, 0, entries * len(each), np.uint64)
    values = look_up(first, lambda at: np.zeros(len(at), np.uint64))
    expected = np.asarray(each) @ values.reshape(len(each), entries)
    np.testing.assert_array_equal(found, expected)


def elsewhere(program, *told):
    """What a compiled program gives in a thread that knows no double precision.

    XLA makes the calls of large programs in such threads.
    """
    with ThreadPoolExecutor(1) as other:
        return np.asarray(other.submit(program, *told).result())


def test_words_keep_their_64_bits_in_any_thread():
    with double_precision():
        key = chacha_key(SECRET)
        program = jax.jit(lambda k: jax.random.bits(k, (9,), np.uint64))
        compiled = program.lower(key).compile()
    expected = stream(SECRET, 0, 9, np.uint64)
    np.testing.assert_array_equal(elsewhere(compiled, key), expected)


def test_low_halves_keep_their_64_bits_in_any_thread():
    key, high = chacha_key(SECRET), stream(SECRET, 0, 9, np.uint64)
    with double_precision():
        told = jnp.asarray(high)
        program = jax.jit(integer_noise._of_whole_words)
        compiled = program.lower(key, told).compile()
    expected = draw(high, np.zeros(9, np.uint64))  # none of these words ties
    np.testing.assert_array_equal(elsewhere(compiled, key, told), expected)
