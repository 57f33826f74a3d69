"""Graphs learnt from rows: vectors worked out apart, twins, and refusals."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

import tacita
from tacita.problem import discrepancies, discrepancy, graph, representations
from tacita.problem.graph import from_distances, from_vectors, learned
from tacita.problem.graph.log_degree import scale_for
from tacita.problem.graph.resilience import without_each

KNOWN = json.loads((Path(__file__).parent / "graph_vectors.json").read_text())
EXACT = {"rtol": 1e-9, "atol": 1e-12}
D = np.array(KNOWN["discrepancy"])


@pytest.fixture(scope="module")
def seven() -> tacita.Problem:
    x, y = np.array(KNOWN["x"]), np.array(KNOWN["y"])
    owner = np.repeat(np.arange(7), x.shape[1])
    return tacita.from_arrays(x.reshape(-1, 2), y.ravel(), owner, model="linear")


@pytest.fixture(scope="module")
def labelled() -> tacita.Problem:
    labels = KNOWN["labels"]
    owner = np.repeat(np.arange(4), [len(one) for one in labels])
    x = np.ones((len(owner), 1))
    return tacita.from_arrays(x, np.concatenate(labels), owner, model="softmax")


def matrix(made: graph.Graph) -> np.ndarray:
    return made.adjacency().toarray()


# ------------------------------------------------------------------- discrepancies


def test_representations(seven, labelled):
    at = KNOWN["v"]
    for kind, wanted, options in (
        ("parameters", "parameters", {}),
        ("gradient", "gradients_at_v", {"at": at}),
        ("moments", "moments", {}),
    ):
        found = representations(seven, kind, **options)
        np.testing.assert_allclose(found, KNOWN[wanted], **EXACT)
    shares = representations(labelled, "labels")
    np.testing.assert_allclose(shares, KNOWN["label_histograms"], **EXACT)


def test_discrepancies(seven, labelled):
    for kind, wanted in (
        ("parameters", "discrepancy"),
        ("wald", "wald"),
        ("cross_loss", "cross_loss"),
    ):
        np.testing.assert_allclose(discrepancy(seven, kind), KNOWN[wanted], **EXACT)
    p = discrepancies.chow_p_values(seven)
    np.testing.assert_allclose(p, KNOWN["chow_p_values"], **EXACT)
    overlap = discrepancy(labelled, "label_overlap")
    np.testing.assert_allclose(overlap, KNOWN["label_overlap_discrepancy"], **EXACT)


def test_rows_of_padding_count_for_nothing(seven):
    """One node with fewer rows gives the numbers of that node alone."""
    x, y = np.array(KNOWN["x"]), np.array(KNOWN["y"])
    owner = np.repeat(np.arange(7), 6)
    keep = np.arange(42) != 17  # the last row of node 2
    rows = x.reshape(-1, 2)[keep], y.ravel()[keep], owner[keep]
    fewer = tacita.from_arrays(*rows, model="linear")
    found = representations(fewer, "moments")
    assert np.allclose(found[2, :2], x[2, :5].mean(axis=0))
    np.testing.assert_allclose(
        np.delete(found, 2, 0), np.delete(KNOWN["moments"], 2, 0)
    )
    # Wald by its definition, from lstsq and both covariances.
    fits = [np.linalg.lstsq(a, b, rcond=None) for a, b in _parts(*rows)]
    spare = sum(len(b) - 2 for _, b in _parts(*rows))
    variance = sum(one[1][0] for one in fits) / spare
    spread = [variance * np.linalg.inv(a.T @ a) for a, _ in _parts(*rows)]
    gap = fits[2][0] - fits[5][0]
    wanted = np.sqrt(gap @ np.linalg.inv(spread[2] + spread[5]) @ gap / 2)
    np.testing.assert_allclose(discrepancy(fewer, "wald")[2, 5], wanted, **EXACT)


def _parts(x, y, owner):
    return [(x[owner == i], y[owner == i]) for i in range(7)]


def test_wald_is_one_between_nodes_of_one_model_whatever_their_features():
    rng = np.random.default_rng(0)
    n, m, d = 40, 30, 3
    scale = np.exp(rng.normal(size=(n, 1, d)))
    x = scale * rng.normal(size=(n, m, d))
    y = x @ np.ones(d) + rng.normal(size=(n, m))
    owner = np.repeat(np.arange(n), m)
    rows = x.reshape(-1, d), y.ravel(), owner
    found = discrepancy(tacita.from_arrays(*rows, model="linear"), "wald")
    pairs = np.triu_indices(n, 1)
    assert np.mean(found[pairs] ** 2) == pytest.approx(1.0, abs=0.1)


def test_the_gradient_is_taken_at_the_mean_of_the_own_models(seven):
    at = np.mean(KNOWN["parameters"], axis=0)
    one, other = (representations(seven, "gradient", at=p) for p in (None, at))
    np.testing.assert_allclose(one, other, **EXACT)


# ------------------------------------------------------------------------- methods


@pytest.mark.parametrize(
    "wanted, method, options",
    [
        ("nearest_2", "nearest", {"k": 2}),
        ("nearest_2_mutual", "nearest", {"k": 2, "mutual": True}),
        ("budget_8", "budget", {"edges": 8}),
        ("budget_8.5", "budget", {"edges": 8.5}),
        ("budget_8_connected", "budget", {"edges": 8, "connected": True}),
        ("regular_2", "regular", {"k": 2}),
        ("at_least_1", "at_least", {"k": 1}),
    ],
)
def test_graphs_from_a_discrepancy(wanted, method, options):
    found = matrix(from_distances(D, method, **options))
    np.testing.assert_allclose(found, KNOWN[wanted], **EXACT)


def test_values_of_the_programmes():
    def value(found: np.ndarray) -> float:
        return float((found * D[: len(found), : len(found)]).sum() / 2)

    regular = matrix(from_distances(D, "regular", k=2))
    assert value(regular) == pytest.approx(KNOWN["regular_2_value_over_pairs"], 1e-9)
    at_least = matrix(from_distances(D, "at_least", k=1))
    assert value(at_least) == pytest.approx(KNOWN["at_least_1_value"], 1e-9)
    odd = matrix(from_distances(D[:5, :5], "regular", k=1))
    np.testing.assert_allclose(odd, KNOWN["regular_1_of_first_5"], **EXACT)
    assert value(odd) == pytest.approx(KNOWN["regular_1_of_first_5_value"], 1e-9)


def test_log_degree():
    theta = scale_for(D**2, 2)
    assert theta == pytest.approx(KNOWN["log_degree_theta_k2"], 1e-9)
    found = matrix(from_distances(D, "log_degree", k=2))
    np.testing.assert_allclose(found, KNOWN["log_degree"], rtol=1e-6, atol=1e-9)
    objective = (found * theta * D**2).sum() - np.log(found.sum(axis=1)).sum()
    objective += (found**2).sum() / 2
    assert objective == pytest.approx(KNOWN["log_degree_objective"], 1e-9)


def test_edges_that_a_test_cannot_tell_apart(seven):
    found = matrix(learned(seven, "chow", "test"))
    np.testing.assert_array_equal(found, KNOWN["test_edges_level0.05"])
    # At a level of nearly nothing nothing is found, and everybody is joined.
    assert learned(seven, "chow", "test", level=1e-12).n_edges == 21


def test_benjamini_hochberg_by_hand():
    """0.03 alone would be rejected at 0.05, not beside a larger one in four tests."""
    p = np.ones((4, 4))
    values = [0.001, 0.03, 0.04, 0.3, 0.6, 0.9]
    for (i, j), one in zip(combinations(range(4), 2), values, strict=True):
        p[i, j] = p[j, i] = one
    # Thresholds 0.05 k/6: only 0.001 lies below its own.
    found = matrix(from_distances(-np.log(p), "test"))
    assert found[0, 1] == 0 and found.sum() == 10


def test_the_regular_graph_is_that_of_the_transport_problem():
    """(P + P')/2 of the directed problem, whose corners are whole, solves (160)."""
    rng = np.random.default_rng(3)
    for n, degree in ((7, 3), (8, 3), (9, 2)):
        d = rng.random((n, n))
        d = d + d.T
        d[0] *= 0.01  # near to everybody: who may choose takes it too often
        d[:, 0] *= 0.01
        np.fill_diagonal(d, 0)
        found = matrix(from_distances(d, "regular", k=degree))
        np.testing.assert_allclose(found.sum(axis=0), degree, atol=1e-12)
        cells = [(i, j) for i in range(n) for j in range(n) if i != j]
        sums = np.zeros((2 * n, len(cells)))
        for column, (i, j) in enumerate(cells):
            sums[i, column] = sums[n + j, column] = 1
        costs = [d[cell] for cell in cells]
        transport = linprog(
            costs, A_eq=sums, b_eq=np.full(2 * n, degree), bounds=(0, 1)
        )
        assert np.allclose(transport.x, transport.x.round(), atol=1e-9)
        value = float((found * d).sum())
        assert value == pytest.approx(transport.fun, rel=1e-9)


def test_points_and_their_distances_give_one_graph():
    rng = np.random.default_rng(5)
    for dimensions in (3, 12):  # by a tree, and by looking at all
        points = rng.normal(size=(60, dimensions))
        d = discrepancies.euclidean(points)
        for options in ({"k": 3}, {"k": 3, "mutual": True, "weights": "gaussian"}):
            one, other = from_vectors(points, **options), from_distances(d, **options)
            np.testing.assert_allclose(matrix(one), matrix(other), atol=1e-12)


def test_weights_fall_with_the_distance():
    pairs = from_distances(D, "nearest", k=2).pairs()
    lengths = D[pairs[0], pairs[1]]
    gaussian = from_distances(D, "nearest", k=2, weights="gaussian").pairs()[2]
    np.testing.assert_allclose(gaussian, np.exp(-(lengths**2) / np.median(lengths**2)))
    inverse = from_distances(D, "nearest", k=2, weights="inverse").pairs()[2]
    assert np.array_equal(np.argsort(-inverse), np.argsort(lengths))
    far = np.array([[0.0, 1e-9, 1e9], [1e-9, 0, 1e9], [1e9, 1e9, 0]])
    joined = from_distances(far, "budget", edges=2, connected=True, weights="gaussian")
    assert joined.connected and joined.n_edges == 2


def test_equal_distances_and_twins():
    """Nodes at one place, and a graph of renumbered nodes."""
    zero = np.zeros((5, 5))
    assert from_distances(zero, "nearest", k=1).n_edges == 4  # all take the first
    tree = from_distances(zero, "budget", edges=4, connected=True)
    assert tree.connected and tree.n_edges == 4
    order = np.array([4, 2, 6, 0, 1, 5, 3])
    for method in ("nearest", "regular", "log_degree"):
        one = matrix(from_distances(D, method, k=2))
        other = matrix(from_distances(D[np.ix_(order, order)], method, k=2))
        np.testing.assert_allclose(other, one[np.ix_(order, order)], atol=1e-9)


def test_a_learnt_graph_carries_the_ids_and_joins_kinds(seven):
    named = tacita.from_arrays(
        np.array(KNOWN["x"]).reshape(-1, 2),
        np.ravel(KNOWN["y"]),
        np.repeat(list("abcdefg"), 6),
        model="linear",
    )
    for kind in ("parameters", "gradient", "moments", "cross_loss", "wald", "chow"):
        made = learned(named, kind, "nearest", k=2)
        assert made.nodes == tuple("abcdefg")
    kinds = np.array(KNOWN["kinds"])
    i, j, _ = learned(seven, "wald", k=2).pairs()
    assert np.array_equal(kinds[i], kinds[j])
    own = learned(seven, KNOWN["parameters"], k=2)
    np.testing.assert_array_equal(matrix(own), KNOWN["nearest_2"])


# ---------------------------------------------------------------------- resilience


def test_resilience_agrees_with_the_vectors():
    told = KNOWN["resilience"]
    a = np.array(told["graph"])
    pairs = np.argwhere(np.triu(a))
    made = graph.Graph.from_edges(6, pairs, a[pairs[:, 0], pairs[:, 1]])
    found = graph.resilience(made, losses=3, draws=4)
    assert found.lambda_2 == pytest.approx(told["lambda_2"], 1e-9)
    np.testing.assert_allclose(found.worst, told["worst_removals_3"], atol=1e-12)
    first_order = np.array(told["edge_sensitivity"])[pairs[:, 0], pairs[:, 1]]
    np.testing.assert_allclose(graph.edge_sensitivity(made), first_order, **EXACT)
    assert found.random.shape == (4, 3) and np.all(
        found.random[:, :1] >= found.worst[0]
    )
    assert np.all(np.diff(found.random, axis=1) <= 1e-12)
    assert "after 3 lost" in str(found)


def test_losing_each_edge_is_found_from_one_decomposition():
    made = graph.erdos_renyi(20, p=0.3, seed=1)
    i, j, weights = made.pairs()
    fast = without_each(made.laplacian().toarray(), i, j, weights)
    for k in range(made.n_edges):
        left = np.delete(np.stack([i, j], axis=1), k, axis=0)
        slow = graph.Graph.from_edges(20, left).spectrum().lambda_2
        assert fast[k] == pytest.approx(slow, abs=1e-9)


def test_the_spectrum_of_the_vectors():
    told = KNOWN["spectrum"]
    made = from_distances(D, "nearest", k=3)
    np.testing.assert_array_equal(matrix(made), told["graph_nearest_3"])
    assert made.spectrum().lambda_2 == pytest.approx(told["lambda_2"], 1e-9)
    least = made.spectrum().degree_min
    assert 7 / 6 * least == pytest.approx(told["bound_156"], 1e-9)


# ------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: from_distances(D, "nearst"), "did you mean 'nearest'"),
        (lambda: from_distances(D[:3]), "expected distances of shape"),
        (lambda: from_distances(D - 1.0), "expected distances >= 0"),
        (lambda: from_distances(np.triu(D)), "symmetric"),
        (lambda: from_distances(D, k=7), "expected k < 7"),
        (lambda: from_distances(D, "regular", k=2, mutual=True), "mutual= is for"),
        (lambda: from_distances(D, "test", k=2), "k= is for"),
        (lambda: from_distances(D, "budget", k=2, edges=3), "k or edges"),
        (lambda: from_distances(D, "budget", edges=22), r"edges in \(0, 21\]"),
        (lambda: from_distances(D, "budget", edges=3, connected=True), "has 6 edges"),
        (lambda: from_distances(D, "at_least", k=2, edges=6), "7 edges or more"),
        (lambda: from_distances(D, "log_degree", k=1), "expected k from 2"),
        (lambda: scale_for(np.ones((3, 3)), 2), "expected 4 nodes or more"),
        (lambda: from_distances(D, weights="gauss"), "did you mean 'gaussian'"),
        (lambda: from_vectors(np.eye(3), "nearest", level=0.1), "level= is for"),
        (lambda: from_vectors(np.eye(3), colour=1), "unknown option colour"),
        (lambda: graph.resilience(graph.ring(4), losses=5), "losses <= 4"),
    ],
)
def test_bad_input_is_refused(call, words):
    with pytest.raises(tacita.TacitaError, match=words) as error:
        call()
    assert "\n" not in str(error.value)


def test_what_does_not_fit_the_rows_is_refused(seven, labelled):
    for call, words in (
        (lambda: learned(seven, "walt"), "did you mean 'wald'"),
        (lambda: learned(seven, "labels"), "between classes"),
        (lambda: learned(labelled, "wald", k=2), "not linear"),
        (lambda: learned(seven, "wald", "test"), "needs p-values"),
        (lambda: learned(seven, "wald", at=[0.0, 0.0]), "at= is the point"),
        (lambda: learned(seven, np.ones((3, 2))), "expected discrepancy of shape"),
    ):
        with pytest.raises(tacita.TacitaError, match=words):
            call()
    few = tacita.from_arrays(np.eye(3), np.ones(3), [0, 1, 1], model="linear")
    with pytest.raises(tacita.TacitaError, match="node 0 has too few"):
        discrepancy(few, "chow")
