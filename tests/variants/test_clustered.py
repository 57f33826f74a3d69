"""Clustered federated learning: planted clusters, and one training per cluster."""

import numpy as np
import pytest

import tacita
from tacita.problem import cluster_nodes, graph, representations, solve_clusters
from tacita.problem.gtv.clusters import METHODS, in_order, part

NODES, FEATURES, ROWS = 24, 3, 8
TRUTH = np.array([[2.0, -1.0, 0.0], [-1.0, 2.0, 1.0], [0.0, 0.0, -2.0]])


@pytest.fixture(scope="module")
def planted():
    """Three kinds of nodes, mixed; dense edges within a kind, few between."""
    rng = np.random.default_rng(0)
    kind = in_order(rng.permutation(np.arange(NODES) % 3))
    x = rng.normal(size=(NODES, ROWS, FEATURES))
    y = np.einsum("nmd,nd->nm", x, TRUTH[kind]) + 0.2 * rng.normal(size=(NODES, ROWS))
    same = kind[:, None] == kind[None]
    drawn = rng.random((NODES, NODES)) < np.where(same, 0.7, 0.04)
    network = graph.Graph.from_edges(NODES, np.argwhere(np.triu(drawn, 1)))
    rows = (x.reshape(-1, FEATURES), y.ravel(), np.repeat(np.arange(NODES), ROWS))
    problem = tacita.from_arrays(*rows, model="linear", graph=network)
    return problem, rows, kind


@pytest.mark.parametrize("method", METHODS)
def test_planted_clusters_are_found_from_parameters(planted, method):
    problem, _, kind = planted
    found = cluster_nodes(representations(problem), 3, method)
    np.testing.assert_array_equal(found, kind)


def test_planted_clusters_are_found_by_the_network_lasso(planted):
    problem, _, kind = planted
    gtv = tacita.GTVMin(problem, alpha=0.3, penalty="l2")
    np.testing.assert_array_equal(in_order(gtv.clusters(gtv.solve())), kind)


def test_parameters_are_every_nodes_own_least_squares(planted):
    problem, (x, y, agent), _ = planted
    found = representations(problem)
    for i in range(NODES):
        exact = np.linalg.lstsq(x[agent == i], y[agent == i], rcond=None)[0]
        np.testing.assert_allclose(found[i], exact, atol=1e-10)


def test_gradients_are_taken_at_one_point(planted):
    problem, (x, y, agent), _ = planted
    point = np.array([0.5, 0.0, -1.0])
    found = representations(problem, "gradient", at=point)
    own = agent == 7
    exact = 2 * x[own].T @ (x[own] @ point - y[own]) / ROWS
    np.testing.assert_allclose(found[7], exact, atol=1e-12)


def test_a_cluster_trains_as_if_its_rows_were_pooled(planted):
    problem, (x, y, agent), kind = planted
    models = solve_clusters(problem, kind)
    for group in range(3):
        rows = kind[agent] == group
        pooled = np.linalg.lstsq(x[rows], y[rows], rcond=None)[0]  # equal rows a node
        for i in np.flatnonzero(kind == group):
            np.testing.assert_allclose(models[i], pooled, atol=1e-9)
        np.testing.assert_allclose(pooled, TRUTH[group], atol=0.15)
    alone = part(problem, [4, 2])
    assert alone.ids == (4, 2) and alone.counts.tolist() == [ROWS, ROWS]


def test_numbers_follow_the_first_node_and_bad_input_is_refused(planted):
    problem, _, _ = planted
    assert in_order(["b", "a", "b", "c"]).tolist() == [0, 1, 0, 2]
    with pytest.raises(tacita.TacitaError, match="clusters <= 2"):
        cluster_nodes([[0.0], [1.0]], 3)
    with pytest.raises(tacita.TacitaError, match="did you mean 'k-means'"):
        cluster_nodes([[0.0], [1.0]], 1, "kmeans")
    with pytest.raises(tacita.TacitaError, match="unknown kind"):
        representations(problem, "histogram")
    few = tacita.from_arrays(np.eye(3), np.ones(3), [0, 1, 1], model="linear")
    with pytest.raises(tacita.TacitaError, match="do not determine"):
        representations(few)
