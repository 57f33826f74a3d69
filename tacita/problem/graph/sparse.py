"""Letters along the edges of a graph, for sparse graphs of up to millions of nodes.

Two ways to deliver:

- `neighbour_sum`: every node sends one letter to all its neighbours and receives only
  the weighted sum of theirs. Memory follows the number of edges.
- `Slots` and `exchange`: every node sends another letter along each of its edges.
  Memory follows nodes times the largest number of neighbours.

The sum reads a layout made once per graph (`layout.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from tacita.check import refuse
from tacita.problem.graph.layout import Array, Bucket, Layout

if TYPE_CHECKING:
    from tacita.problem.graph.graph import Graph

#: Padded slots above this number must be reasonably full.
_MANY_SLOTS = 2**22
_MAX_WASTE = 8


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
    return sum_by_layout(graph.layout, letters)


@jax.jit
def sum_by_layout(layout: Layout, letters: jax.Array) -> jax.Array:
    """What the nodes of a layout receive, of letters that it names by their place."""
    if layout.first_row is None:
        return _bucket_sum(layout.buckets[0], letters)
    # Without a branch XLA merges the sum into the loop that uses it, which is slower
    # than both loops together. It cannot know that row numbers are never negative.
    always = layout.first_row[0] >= 0
    return jax.lax.cond(always, _sum_by_buckets, _nothing, layout, letters)


def _nothing(layout: Layout, letters: jax.Array) -> jax.Array:
    assert layout.first_row is not None
    return jnp.zeros((len(layout.first_row), *letters.shape[1:]), letters.dtype)


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
