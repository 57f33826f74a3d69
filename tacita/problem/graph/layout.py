"""The edges of a graph as sums over neighbours read them.

Sliced ELLPACK (M. Kreutzer et al., "A unified sparse matrix data format", SIAM J. Sci.
Comput. 36(5), 2014), made once per graph: nodes with about as many neighbours share a
bucket, whose slots are gathered and added in one compiled loop.
`bench/graph_delivery.py` has the measurements against other ways to do it.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np

Array = jax.Array | np.ndarray

#: A node with more neighbours is cut into several rows, so that a hub costs no padding
#: to the others and no long compilation.
_MAX_WIDTH = 32
#: Up to this many slots one padded bucket is cheaper to compile than several.
_SMALL = 4096
#: Bucket of a row by its length: lengths 0-1, 2, 3-4, 5-8, 9-16, 17-32.
_LEVELS = np.array([max(k - 1, 0).bit_length() for k in range(_MAX_WIDTH + 1)])


class Bucket(NamedTuple):
    """Rows of about equal length, slot by slot; padding has weight zero."""

    senders: Array  # (width, rows) int32
    weights: Array  # (width, rows)


class Layout(NamedTuple):
    """How `neighbour_sum` reads the edges.

    Attributes:
        buckets: The rows by length.
        first_row: Row of every node, counted through the buckets; None if row i
            belongs to node i.
        long_rows: Further rows of nodes with many neighbours; None without such.
        long_nodes: The node that every such row adds to; None without such.
    """

    buckets: tuple[Bucket, ...]
    first_row: Array | None
    long_rows: Array | None
    long_nodes: Array | None


class _Rows(NamedTuple):
    """The edges into every node, cut into rows of at most `_MAX_WIDTH`.

    Attributes:
        node: Whose row it is, ascending.
        first: The first row of every node.
        start: The first edge of every row.
        length: Its edges.
        level: Its bucket.
        extra: Whether it is a further row of its node.
    """

    node: np.ndarray
    first: np.ndarray
    start: np.ndarray
    length: np.ndarray
    level: np.ndarray
    extra: np.ndarray


def _rows_of(neighbour_counts: np.ndarray, real: int) -> _Rows:
    """Cut into rows; nodes from `real` on are nobody and go with the shortest."""
    n = len(neighbour_counts)
    rows_of_node = np.maximum(1, -(-neighbour_counts // _MAX_WIDTH))
    node = np.repeat(np.arange(n, dtype=np.int32), rows_of_node)
    first = np.cumsum(rows_of_node) - rows_of_node
    edges_before = (np.arange(len(node)) - first[node]) * _MAX_WIDTH
    start = (np.cumsum(neighbour_counts) - neighbour_counts)[node] + edges_before
    length = np.minimum(neighbour_counts[node] - edges_before, _MAX_WIDTH)
    level, somebody = _LEVELS[length], node < real
    if np.sum(somebody) * length.max() <= _SMALL:
        level = np.zeros_like(level)
    level[~somebody] = level[somebody].min()
    return _Rows(node, first, start, length, level, edges_before > 0)


def build_layout(
    senders: np.ndarray, weights: np.ndarray, neighbour_counts: np.ndarray
) -> Layout:
    """Sort the edges, given by receiver, into buckets of rows of similar length."""
    rows = _rows_of(neighbour_counts, len(neighbour_counts))
    members = [np.flatnonzero(rows.level == one) for one in np.unique(rows.level)]
    buckets = tuple(
        _bucket(senders, weights, rows.start[some], rows.length[some])
        for some in members
    )
    place = np.empty(len(rows.node), np.int32)
    place[np.concatenate(members)] = np.arange(len(rows.node))
    extra = rows.extra
    if len(buckets) == 1 and not extra.any():
        return Layout(buckets, None, None, None)
    if not extra.any():
        return Layout(buckets, place, None, None)
    return Layout(buckets, place[rows.first], place[extra], rows.node[extra])


def _bucket(
    senders: np.ndarray, weights: np.ndarray, start: np.ndarray, length: np.ndarray
) -> Bucket:
    slot = np.arange(max(1, length.max()))[:, None]
    filled = slot < length
    if not len(senders):
        return Bucket(np.zeros(filled.shape, np.int32), np.zeros(filled.shape))
    edge = np.where(filled, start + slot, 0)
    return Bucket(senders[edge], np.where(filled, weights[edge], 0.0))


def layout_in_parts(
    senders: np.ndarray,
    weights: np.ndarray,
    neighbour_counts: np.ndarray,
    real: int,
    parts: int,
) -> Layout:
    """As `build_layout`, for each of some equal parts of the nodes.

    All parts have arrays of one shape, stacked along a first axis: buckets are as long
    as in the part where they are longest. Nodes add in the order of the whole.

    Args:
        senders: Of every edge, given by receiver: where its part finds the letter.
        weights: Of every edge.
        neighbour_counts: Of all nodes, and of nobody at the end of the last part.
        real: How many nodes there are.
        parts: How many.
    """
    rows, here = _rows_of(neighbour_counts, real), len(neighbour_counts) // parts
    part = rows.node // here
    longer = np.bincount(part[rows.extra], minlength=parts)
    levels = np.unique(rows.level)
    place, total, buckets = np.empty(len(rows.node), np.int32), 0, []
    for level in levels:
        members = [
            np.flatnonzero((rows.level == level) & (part == p)) for p in range(parts)
        ]
        # Where parts have unequally many further rows, a last one without edges.
        spare = int(level == levels[-1] and len(set(longer)) > 1)
        size = max(map(len, members)) + spare
        start, length = np.zeros((2, parts, size), np.int64)
        for p, some in enumerate(members):
            start[p, : len(some)] = rows.start[some]
            length[p, : len(some)] = rows.length[some]
            place[some] = total + np.arange(len(some))
        whole = _bucket(senders, weights, start.ravel(), length.ravel())
        buckets.append(
            Bucket(*(_in_parts(np.asarray(table), parts) for table in whole))
        )
        total += size
    if len(buckets) == 1 and not rows.extra.any():
        return Layout(tuple(buckets), None, None, None)
    first_row = place[rows.first].reshape(parts, here)
    if not rows.extra.any():
        return Layout(tuple(buckets), first_row, None, None)
    long_rows = np.full((parts, longer.max()), total - 1, np.int32)
    long_nodes = np.full((parts, longer.max()), here - 1, np.int32)
    for p in range(parts):
        mine = np.flatnonzero(rows.extra & (part == p))
        long_rows[p, : len(mine)] = place[mine]
        long_nodes[p, : len(mine)] = rows.node[mine] % here
    return Layout(tuple(buckets), first_row, long_rows, long_nodes)


def _in_parts(table: np.ndarray, parts: int) -> np.ndarray:
    """(width, parts * rows) as (parts, width, rows)."""
    return table.reshape(len(table), parts, -1).swapaxes(0, 1)
