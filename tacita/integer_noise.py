"""Noise of exact integers: a number is rounded to a grid, and hidden by a draw on it.

    x -> step (rint(x / step) + Z),   step = std / SPREAD,   Z = sum_l k_l T(u_l)

with the table T of `tacita.gaussian_table` and fixed multiples k_l, so that Z is a
discrete Gaussian of standard deviation SPREAD. All that depends on x is an integer with
integer noise: there are no low bits of floating-point numbers that tell more than a
theorem about real numbers knows (I. Mironov, "On significance of the least significant
bits for differential privacy", CCS 2012). What rounding costs is in
`docs/proof-secure-sums.md`, for a sum of one letter.

Words come from the key, whatever generator it is of: JAX's in simulations, ChaCha20 in
a federation. They are looked up without a loop: cells are finer the further out in the
tails, so that none holds more than one boundary.
"""

from __future__ import annotations

import hashlib
import math
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.gaussian_table import BASE, REACH, draw, table
from tacita.host_call import host_call
from tacita.random_numbers import normal, words
from tacita.trees import one_of

#: Of the draws in one number: each at most a third of the noise before it.
MULTIPLES = (1, 85, 7253, 618_965)
#: Their standard deviation together, in steps.
SPREAD = BASE * math.sqrt(sum(k * k for k in MULTIPLES))
#: What a number may be on the grid: more would not fit into 64 bits with its noise.
_MOST_STEPS = 2.0**62
#: JAX's own generators.
_FOR_SIMULATIONS = ("threefry2x32", "rbg", "unsafe_rbg")
#: A cell is a side, the leading zeros of a word, and this many bits after them.
_BITS = 8


def noise_kind() -> Any:
    """The field that says which noise there is."""
    return one_of("float", "integers")


def refuse_single(kind: str, dtype: Any) -> None:
    """Refuse integers where sums of rows are in single precision.

    Sums of m rows round by up to m^2 2^-24 of what a record changes, which is no bound.
    """
    if kind == "integers" and dtype != np.float64:
        check.refuse(
            f"noise of exact integers needs numbers in double precision, got {dtype}; "
            "make the problem with dtype='float64', or use noise_kind='float'"
        )


def noised(key: Array, value: Array, std: Any, kind: str) -> Array:
    """The value with noise of this standard deviation in every entry."""
    return with_noise(value, draws(key, value.shape, value.dtype, kind), std)


def draws(key: Array, shape: tuple[int, ...], dtype: Any, kind: str) -> Array:
    """N(0, 1) as floating-point numbers, or SPREAD times that as integers."""
    if kind == "float":
        return normal(key, shape, dtype)
    return integers(key, shape, jnp.asarray(MULTIPLES))


def with_noise(value: Array, drawn: Array, std: Any) -> Array:
    """The value with what `draws` gave, scaled to `std`; on the grid for integers."""
    # A schedule's is in double precision; one that is made of what was received may
    # have any sign, and noise has none.
    std = jnp.abs(jnp.asarray(std, value.dtype))
    if jnp.issubdtype(drawn.dtype, jnp.floating):
        return value + std * drawn
    step = jnp.where(std > 0, std, 1) / SPREAD
    # What is no number counts as zero: it must not show.
    known = jnp.where(jnp.isnan(value), 0, value) / step
    whole = jnp.rint(jnp.clip(known, -_MOST_STEPS, _MOST_STEPS)).astype(drawn.dtype)
    released = step * (whole + drawn).astype(value.dtype)
    return jnp.where(std > 0, released, value)


def integers(key: Array, shape: tuple[int, ...], each: Any) -> Array:
    """sum_l k_l T(u_l), as signed integers; multiples may be filled up with zeros.

    The low halves of words matter only where a high half ties with a boundary's, once
    in 2^50 words: they are drawn only then, and in simulations never, which moves the
    law of one draw by 4e-16 in total variation.
    """
    first = words(key, (len(each), *shape))
    drawn, ties = _looked_up(first)
    if str(jax.random.key_impl(key)) not in _FOR_SIMULATIONS:
        drawn = jax.lax.cond(
            jnp.any(ties), lambda: _of_whole_words(key, first), lambda: drawn
        )
    return jnp.tensordot(each, drawn, axes=1)


def _of_whole_words(key: Array, first: Array) -> Array:
    """T of words with these high halves; so seldom that nothing is compiled for it."""
    about = jax.random.key_data(key), first
    return host_call(_on_host, first.shape, np.int64, *about, vmap_method="sequential")


def _on_host(key: Any, first: Any) -> np.ndarray:
    high = np.asarray(first)
    seed = np.asarray(key).astype("<u4").tobytes()
    low = hashlib.shake_256(b"low halves" + seed).digest(8 * high.size)
    return draw(high.ravel(), np.frombuffer(low, "<u8")).reshape(high.shape)


def _looked_up(word: Array) -> tuple[Array, Array]:
    """T by the high halves of words, and whether a low half has to decide."""
    first = jnp.asarray(table().first)
    upper = word >> np.uint64(63)
    inner = jnp.where(upper == 1, ~word, word)
    zeros = jax.lax.clz(inner)
    after = (inner << jnp.minimum(zeros + np.uint64(1), np.uint64(63))) >> np.uint64(
        64 - _BITS
    )
    cell = (upper * np.uint64(65) + zeros) * np.uint64(2**_BITS) + after
    below = jnp.asarray(_cells())[cell.astype(jnp.int32)]
    inside = below < len(first)
    next_one = first[jnp.minimum(below, len(first) - 1)]
    more = inside & (next_one < word)
    ties = inside & (next_one == word)
    return below.astype(jnp.int64) + more - REACH, ties


@cache
def _cells() -> np.ndarray:
    """For every cell, how many boundaries lie below the smallest of its words."""
    first = table().first
    starts = np.zeros((2, 65, 2**_BITS), np.uint64)
    for zeros in range(1, 65):
        free = 63 - zeros  # bits after the leading one
        for after in range(2**_BITS):
            if free < 0:
                low = high = 0
            elif free >= _BITS:
                low = (1 << free) + (after << (free - _BITS))
                high = low + (1 << (free - _BITS)) - 1
            else:
                low = high = (1 << free) + (after >> (_BITS - free))
            starts[0, zeros, after] = low
            starts[1, zeros, after] = 2**64 - 1 - high
    return np.searchsorted(first, starts.ravel(), side="left").astype(np.int32)
