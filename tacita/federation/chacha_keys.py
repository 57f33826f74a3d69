"""Keys of a cryptographic generator for JAX: ChaCha20, with secrets of 256 bits.

In a federation whoever reads letters tries to guess what hides them. JAX's own keys
have 64 bits, and its generator is made for simulations. A key of this kind works with
all of `jax.random`; its words come from the package `cryptography`, on the host:

    bits(key)       = ChaCha20(key, nonce 0)
    split(key)[i]   = bytes 32 i to 32 i + 31 of ChaCha20(key, nonce 1)
    fold_in(key, i) = the first 32 bytes of ChaCha20(key, nonce 2 + 2^32 i)

so that whoever knows what was drawn with one key knows nothing of any other.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend.random import define_prng_impl

from tacita.aggregation.secure.derive import stream
from tacita.host_call import host_call

#: What parts the three uses of a key.
_BITS, _SPLIT, _FOLD = 0, 1, 2
#: Words of a key.
_KEY = 8


def chacha_key(secret: bytes) -> Array:
    """The key that 32 secret bytes stand for."""
    words = np.frombuffer(secret, "<u4").astype(np.uint32)
    return jax.random.wrap_key_data(jnp.asarray(words), impl=_CHACHA20)


def _bits(key: Array, bit_width: int, shape: tuple[int, ...]) -> Array:
    return _words(key, np.dtype(f"uint{bit_width}"), shape, _BITS)


def _split(key: Array, shape: tuple[int, ...]) -> Array:
    return _words(key, np.dtype(np.uint32), (*shape, _KEY), _SPLIT)


def _fold_in(key: Array, data: Array | int) -> Array:
    about = key, jnp.asarray(data, np.uint32)
    return host_call(_folded, (_KEY,), np.uint32, *about, vmap_method="expand_dims")


def _words(key: Array, kind: np.dtype, shape: tuple[int, ...], tag: int) -> Array:
    made = partial(_streams, kind=kind, shape=shape, tag=tag)
    return host_call(made, shape, kind, key, vmap_method="expand_dims")


def _streams(
    key: Any, *, kind: np.dtype, shape: tuple[int, ...], tag: int
) -> np.ndarray:
    """The words of every key along the first axes."""
    each = np.asarray(key).reshape(-1, _KEY)
    made = [stream(_bytes(one), tag, math.prod(shape), kind) for one in each]
    return np.stack(made).reshape((*np.shape(key)[:-1], *shape))


def _folded(key: Any, data: Any) -> np.ndarray:
    """The children of keys, one for each number along the first axes."""
    numbers = np.asarray(data)
    axes = np.broadcast_shapes(np.shape(key)[:-1], numbers.shape)
    each = np.broadcast_to(np.asarray(key), (*axes, _KEY)).reshape(-1, _KEY)
    found = np.broadcast_to(numbers, axes).ravel().tolist()
    made = [
        stream(_bytes(one), _FOLD + (number << 32), _KEY, np.uint32)
        for one, number in zip(each, found, strict=True)
    ]
    return np.stack(made).reshape(*axes, _KEY)


def _bytes(key: np.ndarray) -> bytes:
    return key.astype("<u4").tobytes()


def _seed(seed: Any) -> Array:
    raise TypeError("a key of ChaCha20 is made of 32 secret bytes, not of a seed")


_CHACHA20 = define_prng_impl(
    key_shape=(_KEY,),
    seed=_seed,
    split=_split,
    random_bits=_bits,
    fold_in=_fold_in,
    name="chacha20",
    tag="chacha20",
)
