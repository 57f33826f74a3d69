"""Rows in pieces: what is computed of a piece fits the processor's cache.

On the way to its scores a network computes much more than it has parameters. Of five
hundred pictures that is gigabytes, and every layer waits for the memory; of a few of
them it stays in the cache, and all pieces together take half to four fifths of the
time. A piece must not be too small either: its gradient is added to those before it.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

#: Bytes of the largest array that is computed of a piece. Measured: 1 to 4 million are
#: alike for networks of 20,000 to 5 million parameters.
_BYTES = 3_000_000
#: So many times the parameters is what is computed of a piece, at least.
_PARAMETERS = 4


def in_pieces(rows: tuple[Array, ...], size: int) -> tuple[Array, ...]:
    """Rows as (pieces, size, ...), evenly; the last is filled up with zeros."""
    count = rows[0].shape[0]
    parts = math.ceil(count / size)
    size = math.ceil(count / parts)

    def cut(leaf: Array) -> Array:
        spare = [(0, parts * size - count)] + [(0, 0)] * (leaf.ndim - 1)
        return jnp.pad(leaf, spare).reshape(parts, size, *leaf.shape[1:])

    return tuple(cut(leaf) for leaf in rows)


def added_up(grad: Any, w: Array, rows: tuple[Array, ...], size: int) -> Array:
    """The sum of `grad(w, *piece)` over pieces of so many rows, weights of rows last.

    Rows that fill up the last piece weigh nothing.
    """
    if len(rows[0]) < 2 * size:
        return grad(w, *rows)

    def one(total: Array, piece: tuple[Array, ...]) -> tuple[Array, None]:
        return total + grad(w, *piece), None

    return jax.lax.scan(one, jnp.zeros_like(w), in_pieces(rows, size))[0]


def one_after_another(function: Any, x: Array, size: int) -> Array:
    """What a function says of every row, asked for so many rows at a time."""
    if len(x) < 2 * size:
        return function(x)
    found = jax.lax.map(lambda piece: function(*piece), in_pieces((x,), size))
    return found.reshape(-1, *found.shape[2:])[: x.shape[0]]


def rows_at_once(function: Any, w: Array, x: Array) -> int:
    """Of how many rows a function (w, x) is best computed at once."""
    told = (jax.ShapeDtypeStruct(a.shape, a.dtype) for a in (w, x))
    return _rows_at_once(function, *told)


@functools.lru_cache(maxsize=256)
def _rows_at_once(function: Any, w: Any, x: Any) -> int:
    steps = jax.make_jaxpr(function)(w, x).jaxpr.eqns
    made = [out.aval for step in steps for out in step.outvars]
    sizes = [m.size // x.shape[0] for m in made if m.shape[:1] == x.shape[:1]]
    fits = _BYTES // (max(sizes, default=1) * w.dtype.itemsize)
    enough = math.ceil(_PARAMETERS * w.size / max(sum(sizes), 1))
    return max(fits, enough, 1)
