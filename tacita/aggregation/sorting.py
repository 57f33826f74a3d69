"""Sorting the columns of a matrix: a network of comparisons between whole rows.

XLA sorts a column at a time, with a comparison that is called for every pair. A network
compares the same rows in all columns, which a CPU does many at once; columns are taken
in blocks that stay in its cache. Measured: `bench/robust.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

#: Columns at once.
_BLOCK = 128


def of_sorted(
    rows: Array, function: Callable[[Array], Array], heard: Array | None = None
) -> Array:
    """A function of all columns in rising order, one result for each: (n, d) -> (d,).

    Args:
        rows: The matrix. Numbers that are not any count as infinite.
        function: Of some columns, (n, w) -> (w,).
        heard: Which rows count; the others are infinite. Default all.

    >>> of_sorted(jnp.array([[3.0, 1.0], [2.0, 5.0]]), lambda rising: rising[0])
    Array([2., 1.], dtype=float32)
    """
    n, width = rows.shape
    there = jnp.ones(n, bool) if heard is None else heard

    def of_few(few: Array) -> Array:
        # Block by block, so that no second matrix is filled.
        known = there[:, None] & ~jnp.isnan(few)
        return function(network(jnp.where(known, few, jnp.inf)))

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
    most = of_sorted(distances, lambda rising: rising[last])
    below, at = distances < most, distances == most
    room = keep - jnp.sum(below, axis=0)
    return below | (at & (jnp.cumsum(at, axis=0) <= room))


def network(rows: Array) -> Array:
    """Every column in rising order: K. Batcher's odd-even merge sort, AFIPS 1968."""
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
    merged = 1
    while merged < n:
        apart = merged
        while apart:
            low, partner = rows[: n - apart], rows.copy()
            place = low - apart % merged
            meets = (place >= 0) & (place % (2 * apart) < apart)
            meets &= low // (2 * merged) == (low + apart) // (2 * merged)
            low = low[meets]
            partner[low], partner[low + apart] = low + apart, low
            partners.append(partner)
            lower.append(partner >= rows)
            apart //= 2
        merged *= 2
    if len(partners) % 2:
        partners.append(rows)
        lower.append(rows >= 0)
    shape = (-1, 2, n)
    return np.reshape(partners, shape).astype(np.int32), np.reshape(lower, shape)
