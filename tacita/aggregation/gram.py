"""Distances between letters out of their inner products: one matrix product for all.

A point that is a mix of letters, sum_i c_i x_i, is known by its coefficients c: its
distances to the letters follow from the Gram matrix without another look at them.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from tacita.aggregation.robust_rule import Vectors

#: Columns of a block.
_BLOCK = 2048


def gram(given: Vectors) -> Array:
    """Inner products of the letters, seen from the centre; zero for the unheard.

    Seen from where honest letters lie, wild ones cost the others no digits. Long
    letters are taken in blocks of columns, which stay in a core's cache.
    """

    def product(letters: Array, centre: Array) -> Array:
        seen = jnp.where(given.active[:, None], letters - centre, 0)
        return seen @ seen.T

    n, length = given.letters.shape
    blocks = length // _BLOCK
    if blocks < 2:
        return product(given.letters, given.centre)

    def add(total: Array, block: Array) -> tuple[Array, None]:
        start = block * _BLOCK
        letters = lax.dynamic_slice(given.letters, (0, start), (n, _BLOCK))
        centre = lax.dynamic_slice(given.centre, (start,), (_BLOCK,))
        return total + product(letters, centre), None

    rest = blocks * _BLOCK
    last = product(given.letters[:, rest:], given.centre[rest:])
    return lax.scan(add, last, jnp.arange(blocks))[0]


def squared_distances(given: Vectors) -> Array:
    """(n, n); infinite from and to letters that are not heard, zero to oneself."""
    inner = gram(given)
    lengths = jnp.diagonal(inner)
    apart = jnp.maximum(lengths[:, None] + lengths[None, :] - 2 * inner, 0)
    apart = jnp.where(jnp.eye(len(lengths), dtype=bool), 0, apart)
    both = given.active[:, None] & given.active[None, :]
    return jnp.where(both, apart, jnp.inf)


def distances_to_mix(inner: Array, mix: Array) -> Array:
    """||x_i - sum_j c_j x_j|| for every i; coefficients c sum to 1."""
    towards = inner @ mix
    squared = jnp.diagonal(inner) - 2 * towards + mix @ towards
    return jnp.sqrt(jnp.maximum(squared, 0))
