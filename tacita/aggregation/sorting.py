"""Sums of ranks of the columns of a matrix: networks of comparisons between whole rows.

XLA sorts a column at a time, with a comparison that is called for every pair. A network
compares the same rows in all columns, which a CPU does many at once; columns are taken
in blocks that stay in its cache. Few rows with many columns have every comparison
written out, which keeps values in registers and takes long to compile; all others take
a loop over the network's stages. Measured: `bench/robust.py`.
"""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

#: Columns at once.
_BLOCK = 128

#: Comparisons are written out for no more rows than this, and if every one of them,
#: which takes some 2 ms to compile, serves at least so many columns.
_MOST_ROWS, _COLUMNS_EACH = 128, 32

Rank = Array | int


def rank_sum(rows: Array, first: Rank, end: Rank, heard: Array | None = None) -> Array:
    """Of every column in rising order, the sum of ranks first, ..., end - 1.

    Args:
        rows: The matrix, (n, d). Numbers that are not any count as infinite.
        first: The lowest rank that counts.
        end: The rank after the last that counts.
        heard: Which rows count; the others are infinite. Default all.

    >>> rank_sum(jnp.array([[3.0, 1.0], [2.0, 5.0]]), 0, 1)
    Array([2., 1.], dtype=float32)
    """
    n, width = rows.shape
    there = jnp.ones(n, bool) if heard is None else heard
    counts = (jnp.arange(n) >= first) & (jnp.arange(n) < end)
    written_out = n <= _MOST_ROWS and len(_comparisons(n)) * _COLUMNS_EACH <= width
    summed = _by_comparisons if written_out else _by_stages

    def of_few(few: Array) -> Array:
        # Block by block, so that no second matrix is filled.
        known = there[:, None] & ~jnp.isnan(few)
        return summed(jnp.where(known, few, jnp.inf), counts)

    if width <= _BLOCK:
        return of_few(rows)

    def block(k: Array, done: Array) -> Array:
        # The last block goes back over columns that are done.
        first = jnp.minimum(k * _BLOCK, width - _BLOCK)
        few = jax.lax.dynamic_slice(rows, (0, first), (n, _BLOCK))
        return jax.lax.dynamic_update_slice(done, of_few(few), (first,))

    return jax.lax.fori_loop(0, -(-width // _BLOCK), block, jnp.zeros_like(rows[0]))


def nearest(distances: Array, keep: Array | int) -> Array:
    """Which of every column are its `keep` least; ties go to the lower number."""
    last = jnp.maximum(keep - 1, 0)
    most = rank_sum(distances, last, last + 1)
    near = distances <= most

    def the_first() -> Array:
        below, at = distances < most, distances == most
        room = keep - jnp.sum(below, axis=0, dtype=jnp.int32)
        return below | (at & (jnp.cumsum(at, axis=0, dtype=jnp.int32) <= room))

    # Running sums take half as long as all else, and are for ties only.
    tied = jnp.any(jnp.sum(near, axis=0, dtype=jnp.int32) > keep)
    return jax.lax.cond(tied, the_first, lambda: near)


def _by_comparisons(rows: Array, counts: Array) -> Array:
    """The sum of the ranks that count, every comparison an operation of its own.

    All of it must become one loop over the columns, so it holds nothing but
    comparisons, selections by them, products and sums: ranks are left out by a product
    with zero, for which infinity has to be finite.
    """
    most = jnp.finfo(rows.dtype).max
    # XLA may not merge this into the loop, which it could not vectorise any more.
    finite = jax.lax.optimization_barrier(jnp.clip(rows, -most, most))
    values = list(finite)
    for low, high in _comparisons(len(rows)):
        a, b = values[low], values[high]
        values[low], values[high] = jnp.where(a < b, a, b), jnp.where(a < b, b, a)
    share = counts.astype(rows.dtype)
    total = values[0] * share[0]
    for rank in range(1, len(values)):
        total = total + values[rank] * share[rank]
    total = jax.lax.optimization_barrier(total)
    return jnp.where(jnp.abs(total) < most, total, jnp.sign(total) * math.inf)


def _by_stages(rows: Array, counts: Array) -> Array:
    """The sum of the ranks that count, stage after stage over all rows."""
    return jnp.sum(jnp.where(counts[:, None], _sorted(rows), 0), axis=0)


def _sorted(rows: Array) -> Array:
    """Every column in rising order."""
    partners, lower = _stages(len(rows))

    def stage(values: Array, partner: Array, low: Array) -> Array:
        other = values.at[partner].get(mode="promise_in_bounds", unique_indices=True)
        return jnp.where((values < other) == low[:, None], values, other)

    def two(values: Array, tables: tuple[Array, Array]) -> tuple[Array, None]:
        partner, low = tables
        # Always so. XLA would make one slow loop of two stages that nothing parts, and
        # with one stage in a step it would copy all values once more.
        between = jax.lax.cond(
            partner[0, 0] >= 0,
            lambda v: stage(v, partner[0], low[0]),
            lambda v: -v,
            values,
        )
        return stage(between, partner[1], low[1]), None

    tables = jnp.asarray(partners), jnp.asarray(lower)
    return jax.lax.scan(two, rows, tables)[0]


@functools.cache
def _stages(n: int) -> tuple[np.ndarray, np.ndarray]:
    """For pairs of stages, (pairs, 2, n): each row's partner, and which is the lower.

    A row without a partner in a stage is its own.
    """
    rows = np.arange(n)
    partners, lower = [], []
    for low, apart in _network(n):
        partner = rows.copy()
        partner[low], partner[low + apart] = low + apart, low
        partners.append(partner)
        lower.append(partner >= rows)
    if len(partners) % 2:
        partners.append(rows)
        lower.append(rows >= 0)
    shape = (-1, 2, n)
    return np.reshape(partners, shape).astype(np.int32), np.reshape(lower, shape)


@functools.cache
def _comparisons(n: int) -> list[tuple[int, int]]:
    """The rows that are compared, one pair after the other."""
    return [(int(k), int(k) + apart) for low, apart in _network(n) for k in low]


def _network(n: int) -> list[tuple[np.ndarray, int]]:
    """K. Batcher's odd-even merge sort, AFIPS 1968.

    For every stage the lower row of each pair, and how far below it the other is.
    """
    rows, stages = np.arange(n), []
    merged = 1
    while merged < n:
        apart = merged
        while apart:
            low = rows[: n - apart]
            place = low - apart % merged
            meets = (place >= 0) & (place % (2 * apart) < apart)
            meets &= low // (2 * merged) == (low + apart) // (2 * merged)
            stages.append((low[meets], apart))
            apart //= 2
        merged *= 2
    return stages
