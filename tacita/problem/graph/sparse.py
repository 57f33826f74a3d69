"""Letters along the edges of a graph, for sparse graphs of up to millions of nodes.

Two ways to deliver:

- `neighbour_sum`: every node sends one letter to all its neighbours and receives only
  the weighted sum of theirs. Memory follows the number of edges.
- `Slots` and `exchange`: every node sends another letter along each of its edges.
  Memory follows nodes times the largest number of neighbours.

The sum reads a layout made once per graph (sliced ELLPACK; M. Kreutzer et al., "A
unified sparse matrix data format", SIAM J. Sci. Comput. 36(5), 2014): nodes with about
as many neighbours share a bucket, whose slots are gathered and added in one compiled
loop. `bench/graph_delivery.py` has the measurements against other ways to do it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from tacita.check import refuse

if TYPE_CHECKING:
    from tacita.problem.graph.graph import Graph

Array = jax.Array | np.ndarray

#: A node with more neighbours is cut into several rows, so that a hub costs no padding
#: to the others and no long compilation.
_MAX_WIDTH = 32
#: Up to this many slots one padded bucket is cheaper to compile than several.
_SMALL = 4096
#: Padded slots above this number must be reasonably full.
_MANY_SLOTS = 2**22
_MAX_WASTE = 8
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


def build_layout(
    senders: np.ndarray, weights: np.ndarray, neighbour_counts: np.ndarray
) -> Layout:
    """Sort the edges, given by receiver, into buckets of rows of similar length."""
    n = len(neighbour_counts)
    rows_of_node = np.maximum(1, -(-neighbour_counts // _MAX_WIDTH))
    node = np.repeat(np.arange(n, dtype=np.int32), rows_of_node)
    first = np.cumsum(rows_of_node) - rows_of_node
    edges_before = (np.arange(len(node)) - first[node]) * _MAX_WIDTH
    start = (np.cumsum(neighbour_counts) - neighbour_counts)[node] + edges_before
    length = np.minimum(neighbour_counts[node] - edges_before, _MAX_WIDTH)

    level = _LEVELS[length]
    if len(node) * length.max() <= _SMALL:
        level = np.zeros_like(level)
    members = [np.flatnonzero(level == one) for one in np.unique(level)]
    buckets = tuple(
        _bucket(senders, weights, start[rows], length[rows]) for rows in members
    )
    place = np.empty(len(node), np.int32)
    place[np.concatenate(members)] = np.arange(len(node))

    extra = edges_before > 0
    if len(buckets) == 1 and not extra.any():
        return Layout(buckets, None, None, None)
    if not extra.any():
        return Layout(buckets, place, None, None)
    return Layout(buckets, place[first], place[extra], node[extra])


def _bucket(
    senders: np.ndarray, weights: np.ndarray, start: np.ndarray, length: np.ndarray
) -> Bucket:
    slot = np.arange(max(1, length.max()))[:, None]
    filled = slot < length
    if not len(senders):
        return Bucket(np.zeros(filled.shape, np.int32), np.zeros(filled.shape))
    edge = np.where(filled, start + slot, 0)
    return Bucket(senders[edge], np.where(filled, weights[edge], 0.0))


def neighbour_sum(graph: Graph, letters: Any) -> jax.Array:
    """Deliver one letter per node: row i of the result is sum_j A_ij letters[j].

    Works under `jax.jit` with the graph as an argument, and under `jax.vmap` over
    letters. Called often outside a compiled function, `jax.device_put(graph)` once
    saves copying the edges at every call.

    Args:
        graph: The network; A is its symmetric matrix of weights.
        letters: Floats of shape (nodes, ...).

    Returns:
        The weighted sums, with the shape and dtype of `letters`.

    Example:
        >>> from tacita.problem.graph import star
        >>> neighbour_sum(star(3), [[1.0], [2.0], [5.0]]).tolist()
        [[7.0], [1.0], [1.0]]
    """
    letters = jnp.asarray(letters)
    if letters.ndim == 0 or letters.shape[0] != graph.n_nodes:
        refuse(
            f"expected letters with one row for each of the {graph.n_nodes} nodes, "
            f"got shape {letters.shape}"
        )
    if not jnp.issubdtype(letters.dtype, jnp.floating):
        refuse(f"expected letters of floats, got dtype {letters.dtype}")
    return _neighbour_sum(graph.layout, letters)


@jax.jit
def _neighbour_sum(layout: Layout, letters: jax.Array) -> jax.Array:
    if layout.first_row is None:
        return _bucket_sum(layout.buckets[0], letters)
    # Without a branch XLA merges the sum into the loop that uses it, which is slower
    # than both loops together. It cannot know that row numbers are never negative.
    always = layout.first_row[0] >= 0
    return jax.lax.cond(always, _sum_by_buckets, _nothing, layout, letters)


def _nothing(layout: Layout, letters: jax.Array) -> jax.Array:
    return jnp.zeros_like(letters)


def _sum_by_buckets(layout: Layout, letters: jax.Array) -> jax.Array:
    parts = [_bucket_sum(bucket, letters) for bucket in layout.buckets]
    rows = parts[0] if len(parts) == 1 else jnp.concatenate(parts)
    sums = _take(rows, layout.first_row)
    if layout.long_rows is None:
        return sums
    return sums.at[layout.long_nodes].add(
        _take(rows, layout.long_rows),
        indices_are_sorted=True,
        mode="promise_in_bounds",
    )


def _bucket_sum(bucket: Bucket, letters: jax.Array) -> jax.Array:
    """Add slot after slot; unrolled, so that XLA makes one loop without copies."""
    per_letter = (slice(None), *(None,) * (letters.ndim - 1))
    total: Any = 0
    for sender, weight in zip(bucket.senders, bucket.weights, strict=True):
        total += weight.astype(letters.dtype)[per_letter] * _take(letters, sender)
    return total


def _take(rows: jax.Array, index: Array | None) -> jax.Array:
    """Gather rows whose index is known to exist, without a look at its sign."""
    return rows.at[index].get(mode="promise_in_bounds", wrap_negative_indices=False)


class Slots(NamedTuple):
    """Every node's edges in padded slots, neighbours in ascending order.

    Attributes:
        neighbour: Who is at the other end, (nodes, slots) int32; 0 on padding.
        weight: A_ij, (nodes, slots); 0 on padding.
        mask: Which slots are edges, (nodes, slots).
        sign: +1 at the end with the smaller index, -1 at the other, 0 on padding.
        back: The neighbour's slot that points back to me, (nodes, slots) int32.
        degree: Sum of the weights of a node's edges, (nodes,).
        neighbour_count: Number of a node's edges, (nodes,) int32.
    """

    neighbour: Array
    weight: Array
    mask: Array
    sign: Array
    back: Array
    degree: Array
    neighbour_count: Array

    def astype(self, dtype: Any) -> Slots:
        """Bring weight, sign and degree to the dtype of the letters."""
        return self._replace(
            weight=self.weight.astype(dtype),
            sign=self.sign.astype(dtype),
            degree=self.degree.astype(dtype),
        )


def build_slots(graph: Graph) -> Slots:
    """Lay out padded slots; refuses a graph whose hubs would fill memory with padding.

    With S the largest number of neighbours, N S slots are needed for 2 E letters.
    """
    receivers, senders = np.asarray(graph.receivers), np.asarray(graph.senders)
    counts = np.asarray(graph.neighbour_counts)
    n, width = graph.n_nodes, max(1, int(counts.max()))
    if n * width > max(_MANY_SLOTS, _MAX_WASTE * len(senders)):
        refuse(
            f"{n * width:.1e} padded slots for {len(senders):.1e} letters: node "
            f"{graph.nodes[int(counts.argmax())]!r} has {width} neighbours; use an "
            "algorithm that sends one letter to all, or a graph without hubs"
        )
    starts = np.cumsum(counts) - counts
    place = np.arange(len(senders)) - starts[receivers]
    # Edge numbers ordered by (sender, receiver): the k-th is the reverse of edge k.
    numbers = sp.csr_array(
        (np.arange(len(senders)), senders, np.append(starts, len(senders))),
        shape=(n, n),
    )
    reverse = np.asarray(numbers.tocsc().data, np.int64)

    def padded(values: np.ndarray) -> np.ndarray:
        table = np.zeros((n, width), values.dtype)
        table[receivers, place] = values
        return table

    return Slots(
        neighbour=padded(senders),
        weight=padded(np.asarray(graph.weights)),
        mask=padded(np.ones(len(senders), bool)),
        sign=padded(np.where(receivers < senders, 1.0, -1.0)),
        back=padded(place[reverse].astype(np.int32)),
        degree=np.asarray(graph.degrees),
        neighbour_count=counts,
    )


def exchange(slots: Slots, outbox: Any) -> jax.Array:
    """Deliver one letter per edge: inbox[i, s] = outbox[neighbour[i, s], back[i, s]].

    Args:
        slots: The network's slots, from `graph.slots`.
        outbox: Letters of shape (nodes, slots, ...).

    Returns:
        The inbox, like `outbox`; zero on padding.
    """
    outbox = jnp.asarray(outbox)
    if outbox.shape[:2] != np.shape(slots.mask):
        refuse(
            f"expected outbox with {np.shape(slots.mask)} nodes and slots, "
            f"got shape {outbox.shape}"
        )
    return _exchange(slots.neighbour, slots.back, slots.mask, outbox)


@jax.jit
def _exchange(neighbour: Array, back: Array, mask: Array, outbox: Any) -> jax.Array:
    inbox = outbox.at[neighbour, back].get(
        mode="promise_in_bounds", wrap_negative_indices=False
    )
    kept = mask[(..., *(None,) * (outbox.ndim - 2))]
    return jnp.where(kept, inbox, jnp.zeros((), outbox.dtype))
