"""Random numbers: those of `jax.random`, bit by bit, in less time.

On a CPU, JAX hashes with a loop that runs five times whatever is hashed, which keeps
compilation short and costs more than all the arithmetic where an agent draws a few
numbers. Here the hash is written out, so that a number is made from its place to its
value in one pass, 1.3 to 6 times faster (`bench/clipping.py`).

The hash is Threefry-2x32, with 20 rounds unless fewer are asked for (J. Salmon et al.,
"Parallel random numbers: as easy as 1, 2, 3", SC 2011).
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

#: By how many bits words are turned, in odd and in even groups of four rounds.
_TURNS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = np.uint32(0x1BD11BDA)
_BITS = {np.dtype(np.float32): np.uint32, np.dtype(np.float64): np.uint64}


def uniform(key: Array, shape: tuple[int, ...], dtype: Any = float) -> Array:
    """In [0, 1), as `jax.random.uniform(key, shape, dtype)` draws them."""
    kind = _kind(dtype)
    if not is_written_out(key, kind, shape):
        return jax.random.uniform(key, shape, kind)
    return _below_one(key, shape, kind)


def normal(key: Array, shape: tuple[int, ...], dtype: Any = float) -> Array:
    """N(0, 1), as `jax.random.normal(key, shape, dtype)` draws them.

    >>> key = jax.random.key(0)
    >>> mine, theirs = (f(key, (3,), "float32") for f in (normal, jax.random.normal))
    >>> bool((mine == theirs).all())
    True
    """
    kind = _kind(dtype)
    if not is_written_out(key, kind, shape):
        return jax.random.normal(key, shape, kind)
    # Uniform in (-1, 1), then the inverse of the normal distribution function.
    least = np.nextafter(kind.type(-1), kind.type(0))
    spread = _below_one(key, shape, kind) * (kind.type(1) - least) + least
    return kind.type(math.sqrt(2)) * lax.erf_inv(lax.max(least, spread))


def words(key: Array, shape: tuple[int, ...]) -> Array:
    """64 random bits each, as `jax.random.bits(key, shape, "uint64")` draws them."""
    if not is_written_out(key, np.float64, shape):
        return jax.random.bits(key, shape, np.uint64)
    return _bits(key, shape, np.uint64)


def _kind(dtype: Any) -> np.dtype:
    """The precision asked for, or what is there of it."""
    return np.dtype(jax.dtypes.canonicalize_dtype(dtype))


def is_written_out(key: Array, kind: Any, shape: tuple[int, ...] = ()) -> bool:
    """Whether JAX hashes as here: its default for the usual precisions."""
    if np.dtype(kind) not in _BITS or math.prod(shape) >= 2**32:
        return False
    by_place = jax.config.jax_threefry_partitionable  # pyright: ignore[reportAttributeAccessIssue]
    typed = jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
    return by_place and typed and str(jax.random.key_impl(key)) == "threefry2x32"


def _below_one(key: Array, shape: tuple[int, ...], kind: np.dtype) -> Array:
    """Uniform in [0, 1): random bits behind the binary point of 1, less 1."""
    word = _BITS[kind]
    unused = jnp.finfo(kind).bits - jnp.finfo(kind).nmant
    fraction = lax.shift_right_logical(_bits(key, shape, word), word(unused))
    one = kind.type(1)
    return lax.bitcast_convert_type(fraction | one.view(word), kind) - one


def _bits(key: Array, shape: tuple[int, ...], word: Any) -> Array:
    """Random bits, one word for every place."""
    found = hashed_places(key, math.prod(shape))
    first, second = (half.reshape(shape) for half in found)
    if word is np.uint32:
        return first ^ second
    return first.astype(word) << word(32) | second.astype(word)


def hashed_places(key: Array, count: int, rounds: int = 20) -> tuple[Array, Array]:
    """Two random words for every place below `count`."""
    return _threefry(jax.random.key_data(key), lax.iota(np.uint32, count), rounds)


def _threefry(key: Array, place: Array, rounds: int) -> tuple[Array, Array]:
    """Two random words for every place: the hash of (0, place) under the key."""
    parts = key[0], key[1], key[0] ^ key[1] ^ _PARITY
    x, y = jnp.broadcast_to(parts[0], place.shape), place + parts[1]
    for number in range(rounds):
        group, within = divmod(number, 4)
        turn = _TURNS[group % 2][within]
        x = x + y
        y = x ^ (y << np.uint32(turn) | y >> np.uint32(32 - turn))
        if within == 3:
            x = x + parts[(group + 1) % 3]
            y = y + parts[(group + 2) % 3] + np.uint32(group + 1)
    return x, y
