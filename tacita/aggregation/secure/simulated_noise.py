"""The noise of a whole sum in a simulation: the table's law, from JAX's generator.

Words have 64 bits here, which moves the law of one draw by 4e-16 in total variation. A
deployment draws 128 bits of ChaCha20 (`noise_table.agent_noise`).

Words are looked up without a loop: cells are finer the further out in the tails, so
that none holds more than one boundary.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita.aggregation.secure.noise_table import REACH, table
from tacita.random_numbers import words

#: A cell is a side, the leading zeros of a word, and this many bits after them.
_BITS = 8


def draw(key: Array, shape: tuple[int, ...], each: Any) -> Array:
    """sum_l k_l T(u_l), as signed integers; multiples may be filled up with zeros."""
    drawn = from_words(words(key, (len(each), *shape)))
    return jnp.tensordot(each, drawn, axes=1)


def from_words(word: Array) -> Array:
    """T of words of 64 bits: how many boundaries lie below, less 3584."""
    first = jnp.asarray(table().first)
    upper = word >> np.uint64(63)
    inner = jnp.where(upper == 1, ~word, word)
    zeros = jax.lax.clz(inner)
    after = (inner << jnp.minimum(zeros + np.uint64(1), np.uint64(63))) >> np.uint64(
        64 - _BITS
    )
    cell = (upper * np.uint64(65) + zeros) * np.uint64(2**_BITS) + after
    below = jnp.asarray(cells())[cell.astype(jnp.int32)]
    more = (below < len(first)) & (first[jnp.minimum(below, len(first) - 1)] < word)
    return below.astype(jnp.int64) + more - REACH


@cache
def cells() -> np.ndarray:
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
