"""The noise of a whole sum in a simulation: the table's law, from JAX's generator.

Words have 64 bits here, which moves the law of one draw by 4e-16 in total variation. A
deployment draws 128 bits of ChaCha20 (`noise_table.agent_noise`).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita.aggregation.secure.noise_table import GUIDE_BITS, REACH, table
from tacita.random_numbers import words

#: Draws in the noise of one sum, at most: rows of multiples are filled up with zeros.
MOST_DRAWS = 16


def draw(key: Array, shape: tuple[int, ...], each: Any) -> Array:
    """sum_l k_l T(u_l) for the multiples that are not zero, as signed integers."""

    def add(number: Any, total: Array) -> Array:
        word = words(jax.random.fold_in(key, number), shape)
        return total + each[number] * from_words(word)

    many = jnp.sum(each > 0)
    return jax.lax.fori_loop(0, many, add, jnp.zeros(shape, jnp.int64))


def from_words(word: Array) -> Array:
    """T of words of 64 bits: how many boundaries lie below, less 3584."""
    known = table()
    guide, first = jnp.asarray(known.guide), jnp.asarray(known.first)
    top = (word >> np.uint64(64 - GUIDE_BITS)).astype(jnp.int32)

    def halve(bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = (low + high) // 2
        below = first[jnp.minimum(middle, len(known.first) - 1)] < word
        below &= low < high
        return jnp.where(below, middle + 1, low), jnp.where(below, high, middle)

    def unsettled(bounds: tuple[Array, Array]) -> Array:
        return jnp.any(bounds[0] < bounds[1])

    # Nearly all words are settled by one comparison, some in the tails need twelve.
    bounds = jax.lax.while_loop(unsettled, halve, (guide[top], guide[top + 1]))
    return bounds[0].astype(jnp.int64) - REACH
