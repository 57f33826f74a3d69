"""Products of one agent's rows with a vector, for many agents with little data each.

XLA does the products of many small matrices one after the other on one processor.
Written out as sums they become one loop over all agents, on all processors, together
with what is done next to their results: on a network of a million nodes with five rows
of ten features a gradient is three times faster so (`bench/gtv.py`).
"""

from __future__ import annotations

from typing import Any

from jax import Array

#: Up to these numbers of columns and of rows sums are written out; longer ones gain
#: less and take long to compile, above all second derivatives of sums over rows.
_MOST_FEATURES = 16
_MOST_ROWS = 8


def times(x: Array, w: Array) -> Array:
    """The scores x @ w, of shape (rows,)."""
    features = x.shape[1]
    if features > _MOST_FEATURES:
        return x @ w
    return _sum(x[:, k] * w[k] for k in range(features))


def combine(r: Array, x: Array) -> Array:
    """The rows added up with coefficients, r @ x, of shape (features,)."""
    rows = x.shape[0]
    if rows > _MOST_ROWS:
        # A matrix-vector product this way round keeps x in its row order.
        return r @ x
    return _sum(r[i] * x[i] for i in range(rows))


def gram(x: Array) -> Array:
    """The rows times each other, x @ x.T, of shape (rows, rows)."""
    features = x.shape[1]
    if features > _MOST_FEATURES or x.shape[0] > _MOST_ROWS:
        return x @ x.T
    return _sum(x[:, None, k] * x[None, :, k] for k in range(features))


def _sum(terms: Any) -> Array:
    """Without the zero that Python's `sum` begins with."""
    first, *others = terms
    for term in others:
        first = first + term
    return first
