"""A graph cut over devices: each has a part of the nodes and the edges into them.

The letters that its nodes receive are read from those of its own nodes and, behind
them, those that cross the cut (`mesh/borders.py`). They are added in the order in which
one device adds them. Tables of all devices have one shape, since all run one program.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from tacita import check
from tacita.mesh.borders import Borders, planned
from tacita.mesh.devices import mesh_of
from tacita.mesh.places import Places
from tacita.problem.graph.graph import Graph
from tacita.problem.graph.layout import Array, Layout, layout_in_parts
from tacita.problem.graph.sparse import Slots, sum_by_layout


class CutSums(NamedTuple):
    """Routes of one letter to all neighbours, of which sums are received.

    Attributes:
        borders: What crosses.
        layout: How a device adds; every array has a first axis of devices.
    """

    borders: Borders
    layout: Layout

    def deliver(self, letters: jax.Array) -> jax.Array:
        """What the nodes of this device receive, of its letters and others'."""
        own = jax.tree.map(lambda table: table[0], self.layout)
        return sum_by_layout(own, self.borders.with_arrived(letters))


class CutSlots(NamedTuple):
    """Routes of letters that are read one by one.

    Attributes:
        borders: What crosses.
        found: Where the letter in every slot lies, (nodes, slots), counted through
            letters, or through letters along edges.
        mask: Which slots are edges, (nodes, slots).
        neighbour: Who is at the other end, by number in all, (nodes, slots).
        weight: Of the edges, (nodes, slots).
    """

    borders: Borders
    found: Array
    mask: Array
    neighbour: Array
    weight: Array

    def deliver(self, outbox: jax.Array) -> jax.Array:
        """What the nodes of this device receive, one letter along every edge."""
        flat = outbox.reshape(-1, *outbox.shape[2:])
        inbox = self.borders.with_arrived(flat)[self.found]
        kept = self.mask[(..., *(None,) * (outbox.ndim - 2))]
        return jnp.where(kept, inbox, jnp.zeros((), outbox.dtype))


def cut_sums(graph: Graph, places: Places) -> CutSums:
    """Cut a graph along which sums are received."""
    devices, here = places.devices, places.here
    senders, receivers = np.asarray(graph.senders), np.asarray(graph.receivers)
    borders, found = planned(senders, receivers // here, devices, here)
    counts = np.zeros(devices * here, np.int32)
    counts[: graph.n_nodes] = graph.neighbour_counts
    weights = np.asarray(graph.weights)
    return CutSums(
        borders, layout_in_parts(found, weights, counts, graph.n_nodes, devices)
    )


def cut_slots(slots: Slots, places: Places, per_edge: bool) -> CutSlots:
    """Cut a graph along which letters are received one by one.

    Args:
        slots: All nodes' edges.
        places: Where nodes lie.
        per_edge: Whether a node writes another letter along each of its edges, and not
            one for all.
    """
    devices, here = places.devices, places.here
    mask, neighbour = np.asarray(slots.mask), np.asarray(slots.neighbour)
    width = mask.shape[1]
    letters = neighbour.astype(np.int64)
    if per_edge:
        letters = letters * width + np.asarray(slots.back)
    readers = np.broadcast_to(np.arange(len(mask))[:, None] // here, mask.shape)
    per_node = width if per_edge else 1
    borders, places_of = planned(letters[mask], readers[mask], devices, here * per_node)

    def filled(values: Any, dtype: Any) -> np.ndarray:
        table = np.zeros((devices * here, width), dtype)
        table[: len(mask)][mask] = values
        return table

    return CutSlots(
        borders,
        found=filled(places_of, np.int32),
        mask=filled(True, bool),
        neighbour=filled(neighbour[mask], np.int32),
        weight=filled(np.asarray(slots.weight)[mask], np.float64),
    )


def letters_across(graph: Graph, mesh: Any, per_edge: bool = False) -> int:
    """Letters that cross from one device to another in a round of a mesh.

    Args:
        graph: The network.
        mesh: A number of devices, or a `tacita.Mesh`, as in `tacita.simulate`.
        per_edge: Whether nodes write another letter along each of their edges.

    On a ring cut in two, each end of the two edges that are cut writes one:

    >>> from tacita.problem.graph import ring
    >>> letters_across(ring(8), 2)
    4
    """
    chosen = mesh_of(mesh)
    places = Places.of(graph.n_nodes, chosen.blocks)
    if chosen.devices is None or chosen.devices > places.blocks:
        check.refuse(
            f"expected mesh a number of devices up to {places.blocks}, the blocks of "
            f"{graph.n_nodes} nodes, got mesh={mesh!r}"
        )
    if chosen.devices == 1:
        return 0
    places = places._replace(devices=chosen.devices)
    senders, receivers = np.asarray(graph.senders), np.asarray(graph.receivers)
    readers = receivers // places.here
    if per_edge:
        return int(np.sum(senders // places.here != readers))
    return planned(senders, readers, places.devices, places.here).borders.letters
