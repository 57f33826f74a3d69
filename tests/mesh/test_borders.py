"""Graphs cut over devices: what crosses, against a count by hand, and what arrives.

No devices are needed: what one of them computes is computed here for each in turn.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tacita
from tacita.mesh.borders import Borders, planned
from tacita.mesh.places import Places
from tacita.problem import graph
from tacita.problem.graph.cut import cut_slots, cut_sums, letters_across
from tacita.problem.graph.sparse import sum_by_layout
from tacita.trees import in_double_precision


def weighted(seed: int, nodes: int, edges: int) -> graph.Graph:
    """Any edges, with any weights; some nodes may have none."""
    bare = graph.erdos_renyi(nodes, edges=edges, seed=seed, connected=False)
    i, j, _ = bare.pairs()
    weights = np.random.default_rng(seed).uniform(0.1, 2.0, len(i))
    return graph.Graph.from_edges(nodes, np.stack([i, j], axis=1), weights)


#: With rows of all lengths, several rows for a node, and parts without a border.
GRAPHS = {
    "ring": graph.ring(14),
    "grid": graph.grid(9, 7),
    "star": graph.star(200),
    "complete": graph.complete(40),
    "random": weighted(0, 60, 150),
    "large": weighted(1, 900, 4000),
    "two parts": graph.Graph.from_edges(8, [(0, 1), (2, 3), (4, 5), (6, 7)]),
    "no edges": graph.Graph.from_edges(8, np.zeros((0, 2), int)),
}


def placed(network: graph.Graph, devices: int) -> Places:
    return Places.of(network.n_nodes)._replace(devices=devices)


def by_hand(network: graph.Graph, here: int) -> tuple[set, set]:
    """Who must tell which other device, and along which edges letters cross."""
    i, j, _ = network.pairs()
    told, along = set(), set()
    for one, two in [*zip(i, j, strict=True), *zip(j, i, strict=True)]:
        if one // here != two // here:
            told.add((int(one), int(two) // here))
            along.add((int(one), int(two)))
    return told, along


def arrived(borders: Borders, everybody: np.ndarray, devices: int) -> list[np.ndarray]:
    """What each device can read, with the letters carried by hand."""
    own = np.split(everybody, devices)
    reach = [[mine] for mine in own]
    for sent, pairs in zip(borders.sent, borders.pairs, strict=True):
        came = {to: own[of][sent[of]] for of, to in pairs}
        assert len(came) == len(pairs), "somebody hears two at once"
        nothing = np.full((sent.shape[1], *everybody.shape[1:]), np.inf)
        for device in range(devices):
            reach[device].append(came.get(device, nothing))
    return [np.concatenate(parts) for parts in reach]


@pytest.mark.few(8)
@pytest.mark.parametrize("devices", [2, 4])
@pytest.mark.parametrize("name", GRAPHS)
@in_double_precision
def test_sums_over_neighbours_need_only_what_crosses(name, devices):
    network = GRAPHS[name]
    places = placed(network, devices)
    routes = cut_sums(network, places)
    told, _ = by_hand(network, places.here)
    assert routes.borders.letters == len(told)
    rng = np.random.default_rng(0)
    letters = np.zeros((places.here * devices, 3))
    letters[: network.n_nodes] = rng.standard_normal((network.n_nodes, 3))
    wanted = network.adjacency().toarray() @ letters[: network.n_nodes]
    found = []
    for device, reach in enumerate(arrived(routes.borders, letters, devices)):
        # Nobody may read what did not arrive: it is not even a number.
        own = jax.tree.map(lambda table, d=device: jnp.asarray(table[d]), routes.layout)
        read = {
            int(k) for b in own.buckets for k in np.unique(b.senders[b.weights > 0])
        }
        assert np.all(np.isfinite(reach[sorted(read)]))
        found.append(sum_by_layout(own, jnp.asarray(np.nan_to_num(reach, posinf=0.0))))
    total = np.concatenate(found)[: network.n_nodes]
    np.testing.assert_allclose(total, wanted, rtol=1e-12, atol=1e-12)
    # Added in the order of one device: the same bits.
    one = graph.neighbour_sum(network, letters[: network.n_nodes])
    assert np.array_equal(total, np.asarray(one))


@pytest.mark.parametrize("per_edge", [True, False])
@pytest.mark.parametrize("name", GRAPHS)
def test_letters_one_by_one_need_only_what_crosses(name, per_edge):
    network, devices = GRAPHS[name], 4
    places, slots = placed(network, devices), network.slots
    routes = cut_slots(slots, places, per_edge)
    told, along = by_hand(network, places.here)
    assert routes.borders.letters == len(along if per_edge else told)
    # A letter says who wrote it and to whom.
    width, n = slots.mask.shape[1], network.n_nodes
    letters = np.full((places.here * devices, width, 2), -1.0)
    letters[:n, :, 0] = np.arange(n)[:, None]
    letters[:n, :, 1] = np.where(slots.mask, slots.neighbour, -1)
    sent = letters.reshape(-1, 2) if per_edge else letters[:, 0]
    tables = [np.split(t, devices) for t in (routes.found, routes.mask)]
    for device, reach in enumerate(arrived(routes.borders, sent, devices)):
        found, mask = (table[device] for table in tables)
        first = device * places.here
        for node, slot in zip(*np.nonzero(mask), strict=True):
            writer, reader = reach[found[node, slot]]
            assert writer == slots.neighbour[first + node, slot]
            assert not per_edge or reader == first + node
    assert np.sum(routes.mask) == 2 * network.n_edges


@pytest.mark.parametrize("devices", [2, 4, 8])
def test_a_grid_sends_its_border_rows_and_no_more(devices):
    """Rows of 16 nodes, some on each device: both sides of every border cross."""
    network = graph.grid(32, 16)
    routes = cut_sums(network, placed(network, devices))
    assert routes.borders.letters == 2 * 16 * (devices - 1)
    # The first and the last have one neighbour, and nobody fills up.
    assert routes.borders.padded == routes.borders.letters
    assert len(routes.borders.sent) == min(2, devices - 1)
    assert letters_across(network, devices) == routes.borders.letters
    assert letters_across(network, devices, per_edge=True) == routes.borders.letters


def test_letters_are_planned_once_for_all_their_readers():
    borders, found = planned(
        np.array([0, 0, 5, 5, 3]), np.array([1, 1, 0, 1, 0]), devices=2, here=4
    )
    assert borders.letters == 2
    assert found.tolist() == [4, 4, 4, 1, 3]
    assert borders.pairs == (((0, 1), (1, 0)),)
    assert borders.sent[0].tolist() == [[0], [1]]


@pytest.mark.parametrize("mesh", [None, 32, 3, "two", tacita.Mesh(blocks=2, devices=4)])
def test_cuts_that_are_none(mesh: Any):
    with pytest.raises(tacita.TacitaError, match="expected (mesh|devices)"):
        letters_across(graph.ring(8), mesh)
    assert letters_across(graph.ring(8), 1) == 0
