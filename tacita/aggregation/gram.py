"""Distances between letters out of their inner products: one matrix product for all.

A point that is a mix of letters, sum_i c_i x_i, is known by its coefficients c: its
distances to the letters follow from the Gram matrix without another look at them.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from tacita.aggregation.robust_rule import Vectors

#: Bytes of every letter in a block of columns: a core's cache holds the blocks of all,
#: and their products are too small to be worth several threads.
_BYTES = 2048

#: Letters in a tile: what the inner loops of Eigen's product take at once. More letters
#: than so many are one tile, as short ones are: putting tiles together takes XLA long
#: to compile (0.9 s for 100 letters, 7 s for 500).
_TILE, _MOST = 32, 128


def gram(given: Vectors) -> Array:
    """Inner products of the letters, seen from the centre; zero for the unheard.

    Seen from where honest letters lie, wild ones cost the others no digits. Long
    letters are taken in blocks of columns, and of the products of tiles of letters only
    those on and below the diagonal: the others are the same.
    """
    n, length = given.letters.shape
    width = _BYTES // given.letters.dtype.itemsize
    blocks = length // width
    edges = _edges(n) if blocks > 1 and n <= _MOST else [(0, n)]

    def products(letters: Array, centre: Array) -> list[Array]:
        seen = jnp.where(given.active[:, None], letters - centre, 0)
        return [seen[a:] @ seen[a:b].T for a, b in edges]

    def add(totals: list[Array], block: Array) -> tuple[list[Array], None]:
        start = block * width
        letters = lax.dynamic_slice(given.letters, (0, start), (n, width))
        centre = lax.dynamic_slice(given.centre, (start,), (width,))
        more = products(letters, centre)
        return [t + m for t, m in zip(totals, more, strict=True)], None

    rest = blocks * width if blocks > 1 else 0
    totals = products(given.letters[:, rest:], given.centre[rest:])
    if rest:
        totals = lax.scan(add, totals, jnp.arange(blocks))[0]
    if len(edges) == 1:
        return totals[0]
    lower = jnp.zeros((n, n), totals[0].dtype)
    for (start, _), total in zip(edges, totals, strict=True):
        lower = lax.dynamic_update_slice(lower, total, (start, start))
    below = jnp.arange(n)[:, None] >= jnp.arange(n)[None, :]
    return jnp.where(below, lower, lower.T)


def _edges(n: int) -> list[tuple[int, int]]:
    """The first and the last row, exclusive, of every tile; the last may be longer."""
    starts = range(0, max(n - _TILE // 2, 1), _TILE)
    return list(zip(starts, [*starts[1:], n], strict=True))


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
