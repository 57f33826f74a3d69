"""Graphs: storage, spectrum, builders and delivery against independent references."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest

from tacita.check import TacitaError
from tacita.problem.graph import (
    Graph,
    complete,
    erdos_renyi,
    exchange,
    grid,
    kilometres,
    nearest_neighbours,
    neighbour_sum,
    random_regular,
    ring,
    star,
)


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


def weighted(g, seed=0):
    """The same networkx graph with random weights."""
    rng = np.random.default_rng(seed)
    for _, _, data in g.edges(data=True):
        data["weight"] = float(rng.uniform(0.1, 3.0))
    return g


def two_triangles():
    return Graph.from_edges(6, [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)])


# Small, hubs beyond one row of the layout, several buckets, isolated nodes, no edges.
NETWORKS = {
    "ring": nx.cycle_graph(7),
    "star with a hub of many rows": nx.star_graph(299),
    "power law": nx.barabasi_albert_graph(400, 3, seed=1),
    "random, with isolated nodes": nx.gnp_random_graph(300, 0.008, seed=2),
    "dense": nx.gnp_random_graph(70, 0.8, seed=3),
    "no edges": nx.empty_graph(4),
    "one node": nx.empty_graph(1),
    "path of two": nx.path_graph(2),
    "full row": nx.circulant_graph(100, range(1, 17)),
    "one beyond a full row": nx.complete_graph(34),
}
everyone = pytest.mark.parametrize("name", NETWORKS)


def network(name):
    g = weighted(NETWORKS[name].copy())
    return g, Graph.from_networkx(g)


# ------------------------------------------------------------------------- storage


@everyone
def test_matrices_agree_with_networkx(name):
    g, graph = network(name)
    order = sorted(g)
    expected = (
        nx.laplacian_matrix(g, order).toarray() if g.edges else 0 * np.eye(len(g))
    )
    np.testing.assert_allclose(graph.laplacian().toarray(), expected, atol=1e-14)
    adjacency = nx.to_numpy_array(g, order)
    np.testing.assert_array_equal(graph.adjacency().toarray(), adjacency)
    np.testing.assert_allclose(graph.degrees, adjacency.sum(axis=1), atol=1e-14)
    np.testing.assert_array_equal(graph.neighbour_counts, (adjacency > 0).sum(axis=1))
    assert graph.max_degree == pytest.approx(adjacency.sum(axis=1).max())
    assert (graph.n_nodes, graph.n_edges) == (g.number_of_nodes(), g.number_of_edges())
    assert graph.connected == nx.is_connected(g)


@everyone
def test_edges_are_flat_sorted_and_symmetric(name):
    _, graph = network(name)
    edges = list(zip(graph.receivers.tolist(), graph.senders.tolist(), strict=True))
    assert edges == sorted(edges)
    assert len(set(edges)) == len(edges) == 2 * graph.n_edges
    weight = dict(zip(edges, graph.weights.tolist(), strict=True))
    assert all(weight[j, i] == a for (i, j), a in weight.items())
    assert graph.receivers.dtype == graph.senders.dtype == np.int32


def test_networkx_round_trip_with_names():
    g = weighted(nx.relabel_nodes(nx.path_graph(4), dict(enumerate("dbca"))))
    graph = Graph.from_networkx(g)
    assert graph.nodes == ("a", "b", "c", "d")
    assert nx.utils.graphs_equal(graph.to_networkx(), g)
    # Missing weights count 1; weight=None ignores those that are there.
    del g.edges["d", "b"]["weight"]
    assert Graph.from_networkx(g).to_networkx().edges["b", "d"]["weight"] == 1.0
    assert Graph.from_networkx(g, weight=None).weights.tolist() == [1.0] * 6


def test_order_of_nodes_edges_and_ends_does_not_matter():
    pairs, weights = [("x", "y"), ("z", "y"), ("x", "w")], [1.0, 2.0, 3.0]
    one = Graph.from_edges("wxyz", pairs, weights)
    flipped = [(b, a) for a, b in pairs[::-1]]
    two = Graph.from_edges("zyxw", np.array(flipped), np.array(weights[::-1]))
    assert one.nodes == two.nodes == ("w", "x", "y", "z")
    np.testing.assert_array_equal(one.adjacency().toarray(), two.adjacency().toarray())
    assert one.adjacency()[1, 2] == 1.0 and one.adjacency()[0, 1] == 3.0


def test_number_ids_that_are_not_positions():
    graph = Graph.from_edges(np.array([30, 10, 20]), np.array([[30, 10]]), [2.0])
    assert graph.nodes == (10, 20, 30)
    assert graph.adjacency().toarray().tolist() == [[0, 0, 2], [0, 0, 0], [2, 0, 0]]
    assert Graph.from_edges([2, 0, 1], [(2, 1)]).nodes == range(3)


# ------------------------------------------------------------------------- spectrum


@pytest.mark.parametrize("n", [6, 7, 501, 2000, 2001])
def test_spectrum_of_a_ring(n):
    values = 2 - 2 * np.cos(2 * np.pi * np.arange(n) / n)
    found = ring(n).spectrum()
    assert found.lambda_2 == pytest.approx(np.sort(values)[1], rel=1e-5)
    assert found.lambda_n == pytest.approx(values.max(), rel=1e-6)
    assert (found.degree_min, found.degree_max) == (2.0, 2.0)


@pytest.mark.parametrize("n", [10, 1200])
def test_spectrum_of_star_complete_and_grid(n):
    found = star(n).spectrum()
    assert found == pytest.approx((1.0, n, 1.0, n - 1), rel=1e-6)
    found = complete(n).spectrum()
    assert found == pytest.approx((n, n, n - 1, n - 1), rel=1e-9)
    found = grid(n // 5, 5).spectrum()
    side = 2 - 2 * np.cos(np.pi * np.arange(n // 5) / (n // 5))
    short = 2 - 2 * np.cos(np.pi * np.arange(5) / 5)
    values = np.sort((side[:, None] + short).ravel())
    assert found.lambda_2 == pytest.approx(values[1], rel=1e-5)
    assert found.lambda_n == pytest.approx(values[-1], rel=1e-6)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "g",
    [
        nx.barabasi_albert_graph(800, 2, seed=4),
        nx.random_labeled_tree(700, seed=5),
        nx.barbell_graph(300, 3),
        nx.connected_watts_strogatz_graph(900, 4, 0.1, seed=6),
    ],
    ids=["power law", "tree", "barbell", "small world"],
)
def test_sparse_spectrum_agrees_with_dense(g):
    graph = Graph.from_networkx(weighted(g, seed=7))
    exact = np.linalg.eigvalsh(graph.laplacian().toarray())
    found = graph.spectrum()
    assert graph.n_nodes > 500
    assert found.lambda_2 == pytest.approx(exact[1], rel=1e-5)
    assert found.lambda_n == pytest.approx(exact[-1], rel=1e-6)
    assert found.degree_max == pytest.approx(graph.degrees.max())


def test_long_ring_needs_the_factorisation():
    n = 20_000
    found = ring(n).spectrum()
    assert found.lambda_2 == pytest.approx(2 - 2 * np.cos(2 * np.pi / n), rel=1e-4)
    assert found.lambda_n == pytest.approx(4.0, rel=1e-5)


def test_lambda_2_is_zero_exactly_when_disconnected():
    assert two_triangles().spectrum().lambda_2 == 0.0
    assert erdos_renyi(900, p=0.001, connected=False).spectrum().lambda_2 == 0.0
    assert Graph.from_edges(1, []).spectrum() == (0.0, 0.0, 0.0, 0.0)
    assert Graph.from_edges(3, []).spectrum() == (0.0, 0.0, 0.0, 0.0)
    assert Graph.from_edges(600, []).spectrum() == (0.0, 0.0, 0.0, 0.0)
    one_edge = Graph.from_edges(600, [(0, 1)]).spectrum()
    assert one_edge == pytest.approx((0.0, 2.0, 0.0, 1.0))
    assert two_triangles().spectrum().lambda_n == pytest.approx(3.0)


# ------------------------------------------------------------------------- delivery


@everyone
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_neighbour_sum_is_the_dense_product(name, dtype):
    _, graph = network(name)
    letters = np.random.default_rng(8).standard_normal((graph.n_nodes, 3)).astype(dtype)
    received = neighbour_sum(graph, letters)
    assert received.dtype == dtype
    expected = graph.adjacency().toarray() @ letters.astype(np.float64)
    scale = 1 + graph.max_degree
    np.testing.assert_allclose(received, expected, atol=scale * np.finfo(dtype).eps * 8)


def test_neighbour_sum_takes_any_trailing_axes():
    _, graph = network("power law")
    letters = np.random.default_rng(9).standard_normal((graph.n_nodes, 2, 3))
    expected = np.einsum("ij,jab->iab", graph.adjacency().toarray(), letters)
    np.testing.assert_allclose(neighbour_sum(graph, letters), expected, atol=1e-12)
    flat = neighbour_sum(graph, letters[:, 0, 0])
    np.testing.assert_allclose(flat, expected[:, 0, 0], atol=1e-12)


@pytest.mark.few(2)
@everyone
def test_neighbour_sum_under_jit_vmap_and_grad(name):
    _, graph = network(name)
    letters = np.random.default_rng(10).standard_normal((4, graph.n_nodes, 3))
    each = np.stack([neighbour_sum(graph, one) for one in letters])
    batched = jax.jit(jax.vmap(neighbour_sum, (None, 0)))(graph, letters)
    np.testing.assert_allclose(batched, each, atol=1e-12)
    moved = jax.device_put(graph)
    assert isinstance(moved, Graph) and isinstance(moved.weights, jax.Array)
    np.testing.assert_allclose(neighbour_sum(moved, letters[0]), each[0], atol=1e-12)
    # The gradient of ||A x||^2 / 2 is A A x, with A symmetric.
    slope = jax.grad(lambda x: jnp.sum(neighbour_sum(graph, x) ** 2) / 2)(letters[0])
    np.testing.assert_allclose(slope, neighbour_sum(graph, each[0]), atol=1e-10)


def test_the_graph_is_an_argument_not_a_constant():
    traces = []

    @jax.jit
    def total_variation(graph, w):
        """trace(W' L W), with everything read from the traced graph."""
        traces.append(graph.n_nodes)
        pull = graph.degrees[:, None] * w - neighbour_sum(graph, w)
        assert graph.n_edges == 6
        return jnp.sum(w * pull)

    w = np.random.default_rng(11).standard_normal((6, 2))
    g = nx.cycle_graph(6)
    for seed in (12, 13):
        graph = Graph.from_networkx(weighted(g, seed))
        expected = np.trace(w.T @ graph.laplacian().toarray() @ w)
        assert float(total_variation(graph, w)) == pytest.approx(expected)
    assert len(traces) == 1
    text = jax.jit(neighbour_sum).lower(ring(5000), np.ones((5000, 1))).as_text()
    assert len(text) < 20_000  # five thousand senders would not fit in here


def test_without_float64_letters_stay_float32():
    with jax.enable_x64(False):
        _, graph = network("power law")
        letters = np.random.default_rng(8).standard_normal((graph.n_nodes, 3))
        received = jax.jit(neighbour_sum)(graph, jnp.asarray(letters, jnp.float32))
        assert received.dtype == np.float32
        expected = graph.adjacency() @ letters
        np.testing.assert_allclose(received, expected, rtol=1e-4, atol=1e-4)
        box = jnp.ones((*graph.slots.mask.shape, 2))
        assert jax.jit(exchange)(graph.slots, box).dtype == np.float32
        moved = jax.device_put(graph)
        assert moved.weights.dtype == np.float32
        np.testing.assert_allclose(
            moved.laplacian().toarray(), graph.laplacian().toarray(), atol=1e-5
        )


def test_wide_hubs_cost_no_padding():
    layout = star(100_000).layout
    slots = sum(bucket.senders.size for bucket in layout.buckets)
    assert slots < 1.1 * 2 * 99_999
    for n, k in ((1000, 5), (1000, 31)):
        (bucket,) = random_regular(n, k + n * k % 2).layout.buckets
        assert bucket.senders.shape == (k + n * k % 2, n)


@everyone
def test_exchange_swaps_the_letters_of_every_edge(name):
    _, graph = network(name)
    slots, (n, width) = graph.slots, graph.slots.mask.shape
    outbox = np.random.default_rng(14).standard_normal((n, width, 2))
    inbox = np.asarray(exchange(slots, outbox))
    for i in range(n):
        for s in range(width):
            if slots.mask[i, s]:
                j, back = slots.neighbour[i, s], slots.back[i, s]
                assert slots.neighbour[j, back] == i
                np.testing.assert_array_equal(inbox[i, s], outbox[j, back])
            else:
                assert not inbox[i, s].any()
    # Twice is the identity on edges; a NaN on padding goes nowhere.
    real = slots.mask[..., None]
    np.testing.assert_array_equal(exchange(slots, inbox), np.where(real, outbox, 0))
    poisoned = exchange(slots, np.where(real, outbox, np.nan))
    np.testing.assert_array_equal(poisoned, inbox)


@everyone
def test_slots_say_what_the_matrix_says(name):
    _, graph = network(name)
    slots, n = graph.slots, graph.n_nodes
    rebuilt = np.zeros((n, n))
    node = np.broadcast_to(np.arange(n)[:, None], slots.mask.shape)[slots.mask]
    rebuilt[node, slots.neighbour[slots.mask]] = slots.weight[slots.mask]
    np.testing.assert_array_equal(rebuilt, graph.adjacency().toarray())
    np.testing.assert_allclose(slots.weight.sum(axis=1), slots.degree, atol=1e-12)
    np.testing.assert_array_equal(slots.mask.sum(axis=1), slots.neighbour_count)
    # Signs are opposite at the two ends and positive at the smaller index.
    received = np.asarray(exchange(slots, slots.sign[..., None]))[..., 0]
    np.testing.assert_array_equal(received, -slots.sign)
    smaller = np.where(node < slots.neighbour[slots.mask], 1, -1)
    np.testing.assert_array_equal(slots.sign[slots.mask], smaller)
    assert not slots.sign[~slots.mask].any() and not slots.weight[~slots.mask].any()
    for padded in slots[:5]:
        assert padded.shape == (n, max(1, graph.neighbour_counts.max()))


def test_exchange_under_jit_vmap_and_float32():
    _, graph = network("power law")
    shape = (3, *graph.slots.mask.shape, 2)
    outbox = np.random.default_rng(15).standard_normal(shape).astype(np.float32)
    each = np.stack([exchange(graph.slots, one) for one in outbox])
    batched = jax.jit(jax.vmap(exchange, (None, 0)))(graph.slots, outbox)
    assert batched.dtype == np.float32
    np.testing.assert_array_equal(batched, each)
    slots = graph.slots.astype(np.float32)
    assert slots.weight.dtype == slots.sign.dtype == slots.degree.dtype == np.float32
    assert graph.slots is graph.slots


# ------------------------------------------------------------------------- builders


@pytest.mark.parametrize(
    ("graph", "reference"),
    [
        (star(6), nx.star_graph(5)),
        (ring(6), nx.cycle_graph(6)),
        (ring(3), nx.cycle_graph(3)),
        (complete(5), nx.complete_graph(5)),
        (
            grid(3, 4),
            nx.convert_node_labels_to_integers(
                nx.grid_2d_graph(3, 4), ordering="sorted"
            ),
        ),
        (grid(1, 5), nx.path_graph(5)),
        (grid(1, 1), nx.empty_graph(1)),
    ],
    ids=lambda g: f"{type(g).__name__} of {len(g.nodes)}",
)
def test_builders_by_rule(graph, reference):
    found = graph.to_networkx()
    assert set(found) == set(reference)
    assert {frozenset(e) for e in found.edges} == {
        frozenset(e) for e in reference.edges
    }
    assert set(graph.weights.tolist()) <= {1.0}


def test_erdos_renyi_draws_every_pair_equally_often():
    n, draws = 5, 400
    cases: list[dict[str, Any]] = [{"p": 0.3}, {"edges": 3}, {"edges": 7}]
    for options in cases:
        seen = np.zeros((n, n))
        sizes = []
        for seed in range(draws):
            graph = erdos_renyi(n, seed=seed, connected=False, **options)
            seen += graph.adjacency().toarray()
            sizes.append(graph.n_edges)
        rate = options.get("p", options.get("edges", 0) / 10)
        upper = seen[np.triu_indices(n, 1)] / len(sizes)
        noise = np.sqrt(rate * (1 - rate) / len(sizes))
        assert np.abs(upper - rate).max() < 4.5 * noise
        if "edges" in options:
            assert set(sizes) == {options["edges"]}
        else:  # a binomial number of edges
            assert np.var(sizes) == pytest.approx(10 * 0.3 * 0.7, rel=0.35)


def test_erdos_renyi_counts_extremes_and_seeds():
    assert erdos_renyi(50, edges=1225).n_edges == erdos_renyi(50, p=1.0).n_edges == 1225
    assert erdos_renyi(50, p=0.0, connected=False).n_edges == 0
    assert erdos_renyi(2, edges=1).n_edges == 1
    assert erdos_renyi(50, edges=1200).n_edges == 1200
    one, two = erdos_renyi(200, p=0.05, seed=3), erdos_renyi(200, p=0.05, seed=3)
    np.testing.assert_array_equal(one.senders, two.senders)
    other = erdos_renyi(200, p=0.05, seed=4)
    assert not np.array_equal(one.senders, other.senders)
    large = erdos_renyi(100_000, edges=400_000, connected=False)
    assert large.n_edges == 400_000 and not large.connected
    # About every other draw of these is connected: it draws again until one is.
    assert all(erdos_renyi(20, edges=30, seed=s).connected for s in range(20))


@pytest.mark.parametrize("n", [4, 7, 10, 31])
def test_random_regular_is_simple_and_regular_at_every_degree(n):
    for degree in range(1, n):
        if n * degree % 2 == 0:
            graph = random_regular(n, degree, seed=degree, connected=degree > 1)
            assert set(graph.neighbour_counts.tolist()) == {degree}
            assert graph.connected or degree == 1
            assert not graph.adjacency().diagonal().any()


def test_random_regular_is_fast_when_large_and_differs_by_seed():
    graph = random_regular(100_000, 6, seed=1)
    assert set(graph.neighbour_counts.tolist()) == {6} and graph.connected
    other = random_regular(1000, 4, seed=2).senders
    assert not np.array_equal(random_regular(1000, 4, seed=3).senders, other)
    np.testing.assert_array_equal(random_regular(1000, 4, seed=2).senders, other)
    # Random cubic graphs are expanders, lambda_2 near 3 - 2 sqrt(2); lattices are not.
    assert random_regular(2000, 3).spectrum().lambda_2 > 0.1


def test_nearest_neighbours_agree_with_all_distances():
    points = np.random.default_rng(16).standard_normal((80, 2))
    graph = nearest_neighbours(points, k=4, weight=lambda r: np.exp(-(r**2)))
    distance = np.linalg.norm(points[:, None] - points, axis=2)
    near = np.argsort(distance, axis=1)[:, 1:5]
    wanted = np.zeros((80, 80))
    wanted[np.arange(80)[:, None], near] = 1
    wanted = np.maximum(wanted, wanted.T) * np.exp(-(distance**2))
    np.testing.assert_allclose(graph.adjacency().toarray(), wanted, atol=1e-14)
    assert graph.neighbour_counts.min() >= 4


def test_nearest_neighbours_of_points_at_one_place():
    graph = nearest_neighbours(np.zeros((7, 2)), k=2)
    assert graph.neighbour_counts.min() >= 2


# ------------------------------------------------------------------- names, refusals


def test_match_and_named():
    graph = Graph.from_edges(["b", "a", "c"], [("a", "c")])
    assert graph.match(np.array(["c", "b", "a"])) is graph
    assert ring(4).match(np.arange(4)).nodes == range(4)
    named = ring(3).named(["z", "x", "y"])
    assert named.match(("x", "y", "z")) is named
    np.testing.assert_array_equal(named.senders, ring(3).senders)
    assert repr(named) == "Graph(3 nodes, 3 edges)"


def test_require_connected_returns_the_graph():
    graph = ring(5)
    assert graph.require_connected() is graph


NAN = float("nan")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Graph.from_edges(3, [(0, 1), (1, 1)]), "node 1 to itself"),
        (
            lambda: Graph.from_edges(3, [(0, 1), (1, 0)]),
            r"edge \(1, 0\) is given twice",
        ),
        (lambda: Graph.from_edges("ab", ["ab"]), "pairs of nodes, got 'ab'"),
        (
            lambda: Graph.from_edges(3, [(0, 3)]),
            "names 3, which is none of the 3 nodes",
        ),
        (lambda: Graph.from_edges(3, [(-1, 0)]), "names -1"),
        (lambda: Graph.from_edges("ab", [("a", "x")]), "names 'x'"),
        (lambda: Graph.from_edges(3, [(0.5, 1.0)]), "names 0.5"),
        (lambda: Graph.from_edges(3, [(0, 1, 2)]), r"shape \(E, 2\)"),
        (lambda: Graph.from_edges("abc", [("a", "b", "c")]), "pairs of nodes"),
        (
            lambda: Graph.from_edges(3, [(0, 1)], [0.0]),
            r"> 0, got 0.0 on edge \(0, 1\)",
        ),
        (lambda: Graph.from_edges(3, [(0, 1)], [-2.0]), "> 0, got -2.0"),
        (lambda: Graph.from_edges(3, [(0, 1), (1, 2)], [1.0, NAN]), r"nan on edge \(1"),
        (lambda: Graph.from_edges(3, [(0, 1)], [np.inf]), "> 0, got inf"),
        (lambda: Graph.from_edges(3, [(0, 1)], [1.0, 2.0]), r"weights of shape \(1,\)"),
        (lambda: Graph.from_edges(3, [(0, 1)], ["heavy"]), "one number per edge"),
        (lambda: Graph.from_edges(0, []), "whole number >= 1"),
        (lambda: Graph.from_edges([], []), "at least one node"),
        (lambda: Graph.from_edges(["a", "a"], []), "node id 'a' is given twice"),
        (lambda: Graph.from_edges(["a", 1], []), "cannot be sorted; use one type"),
        (lambda: Graph.from_networkx(nx.DiGraph([(0, 1)])), "undirected"),
        (lambda: Graph.from_networkx(nx.MultiGraph([(0, 1)])), "parallel edges"),
        (lambda: Graph.from_networkx(nx.Graph([(0, 0)])), "node 0 to itself"),
        (lambda: two_triangles().require_connected(), "2 parts without an edge"),
        (
            lambda: Graph.from_edges("abc", [("a", "c")]).require_connected(),
            "2 parts: node 'b' has no neighbours; add an edge",
        ),
        (lambda: ring(3).match([0, 1]), "nodes without data: 2; remove"),
        (lambda: ring(3).match([0, 1, 2, 3]), "lacks the agents 3; add"),
        (lambda: ring(9).match("abcdefghi"), r"agents are 'a', 'b', 'c' and 6 more"),
        (lambda: ring(3).match(["0", "1", "2"]), r"graph.named\(ids\)"),
        (lambda: ring(3).named(["a", "b"]), "expected 3 ids"),
        (lambda: neighbour_sum(ring(3), np.ones((4, 2))), "each of the 3 nodes"),
        (lambda: neighbour_sum(ring(3), np.ones((3, 2), int)), "floats, got dtype int"),
        (
            lambda: exchange(ring(3).slots, np.ones((3, 3, 1))),
            r"\(3, 2\) nodes and slots",
        ),
        (lambda: star(10_000).slots, "node 0 has 9999 neighbours"),
        (lambda: star(1), "n a whole number >= 2"),
        (lambda: ring(2), "n a whole number >= 3"),
        (lambda: complete(1), "n a whole number >= 2"),
        (lambda: grid(0, 3), "rows a whole number >= 1"),
        (lambda: erdos_renyi(10), "either p or edges"),
        (lambda: erdos_renyi(10, p=0.5, edges=3), "either p or edges"),
        (lambda: erdos_renyi(10, p=1.5), r"p in \[0, 1\]"),
        (lambda: erdos_renyi(10, edges=46), "at most 45 edges"),
        (
            lambda: erdos_renyi(100, edges=98),
            "no connected graph in 50 draws; raise edg",
        ),
        (lambda: erdos_renyi(100, p=0.01), "or pass connected=False"),
        (lambda: random_regular(5, 3), "n \\* degree even"),
        (lambda: random_regular(4, 4), "degree < n"),
        (lambda: random_regular(6, 1), "degree 1 is not connected"),
        (lambda: nearest_neighbours(np.zeros((3, 2)), k=3), "k < 3"),
        (lambda: nearest_neighbours(np.zeros(3), k=1), r"shape \(n, dimensions\)"),
        (lambda: nearest_neighbours([[0.0], [NAN]], k=1), "positions has 1 NaN"),
        (lambda: nearest_neighbours([[0.0], []], k=1), "rows of different lengths"),
        (lambda: kilometres([[25.0, 60.0], [125.0, 7.0]]), r"latitude in \[-90, 90\]"),
        (
            lambda: nearest_neighbours(np.zeros((3, 1)), k=1, weight=lambda r: r),
            "weights > 0, got 0.0",
        ),
    ],
)
def test_refusals_are_one_line(make, words):
    with pytest.raises(TacitaError, match=words) as refusal:
        make()
    assert "\n" not in str(refusal.value)


def test_a_graph_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        ring(3).nodes = ()  # pyright: ignore[reportAttributeAccessIssue]
