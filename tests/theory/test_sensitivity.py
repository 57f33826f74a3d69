"""Exact gains and influences: known numbers, and what really happens to models."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

import tacita
from tacita.problem import Graph, graph
from tacita.theory import descent, gtv
from tacita.theory.sensitivity import Sensitivity, moved, two_notions

KNOWN = json.loads((Path(__file__).parents[1] / "trust" / "vectors.json").read_text())
TOLD = KNOWN["bounds"]
ALPHA = TOLD["alpha"]


def known(x=None, y=None, adjacency=None) -> tacita.Problem:
    x = np.array(TOLD["x"] if x is None else x)
    y = np.array(TOLD["y"] if y is None else y)
    weights = np.array(TOLD["adjacency"] if adjacency is None else adjacency)
    owner = np.repeat(np.arange(len(x)), x.shape[1])
    made = x.reshape(-1, x.shape[2]), y.ravel(), owner, "linear"
    edges = np.argwhere(np.triu(weights))
    network = Graph.from_edges(len(x), edges, weights[tuple(edges.T)])
    return tacita.from_arrays(*made, graph=network)


@pytest.fixture(scope="module")
def told() -> Sensitivity:
    return Sensitivity(known(), ALPHA)


def close(found, wanted) -> None:
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


def test_gains_and_bounds_are_the_known_ones(told: Sensitivity):
    close(told.models, TOLD["models"])
    close(told.label_gain, TOLD["exact_gain"])
    change = np.sum(np.square(TOLD["label_change"]))
    close(told.printed_bound * change, TOLD["bound_8.1_printed"])
    close(told.mended_bound * change, TOLD["bound_8.1_with_1_over_m"])


def test_gains_are_those_of_agents_with_weights(told: Sensitivity):
    """Against what moving single labels and features really does."""
    x, y = np.array(TOLD["x"]), np.array(TOLD["y"])
    rho = np.linspace(0.5, 3.0, len(x))
    weighted = Sensitivity(told.problem.with_weights(rho), ALPHA)

    def models(x, y) -> np.ndarray:
        return gtv.linear_optimum(known(x, y).with_weights(rho), ALPHA).ravel()

    units = np.eye(y.size).reshape(-1, *y.shape)
    labels = np.stack([models(x, one) for one in units])  # linear in labels
    close(weighted.label_gain, np.linalg.norm(labels, 2) ** 2)
    assert weighted.label_gain <= weighted.mended_bound
    # All weights doubled are the coupling halved.
    twice = Sensitivity(told.problem.with_weights(np.full(len(x), 2.0)), 2 * ALPHA)
    close(twice.label_gain, told.label_gain)
    close(twice.feature_gain, told.feature_gain)
    close(twice.printed_bound, told.printed_bound)


def test_changes_of_labels_edges_and_features_are_the_known_ones():
    before = known()
    y = np.array(TOLD["y"]) + np.array(TOLD["label_change"])
    close(moved(before, known(y=y), ALPHA).distance ** 2, TOLD["moved"])
    cut = np.array(TOLD["adjacency"])
    cut[0, 3] = cut[3, 0] = 0.0
    for key, after in {
        "edge_0_3_removed": known(adjacency=cut),
        "features_moved": known(x=TOLD["features_moved"]["x"]),
    }.items():
        found = moved(before, after, ALPHA)
        close(found.distance, TOLD[key]["moved"])
        close(found.bound, TOLD[key]["bound"])


def test_the_gain_of_labels_is_reached_and_never_passed(told: Sensitivity):
    rng, before = np.random.default_rng(0), told.models
    base, y = told.problem, np.array(TOLD["y"])
    columns = []
    for k in range(y.size):
        change = np.zeros(y.size)
        change[k] = 1.0
        after = gtv.linear_optimum(known(y=y + change.reshape(y.shape)), ALPHA)
        columns.append((after - before).ravel())
    whole = np.stack(columns, axis=1)
    assert told.label_gain == pytest.approx(np.linalg.norm(whole, 2) ** 2, rel=1e-9)
    influence = told.label_influences()
    d, m = base.dim, y.shape[1]
    for i, j in rng.integers(0, base.n_agents, (6, 2)):
        block = whole[i * d : (i + 1) * d, j * m : (j + 1) * m]
        assert influence[i, j] == pytest.approx(np.linalg.norm(block, 2) ** 2, rel=1e-9)


def test_the_gain_of_features_is_that_of_small_changes(told: Sensitivity):
    """By differences, every entry of every row of every node."""
    x, step, columns = np.array(TOLD["x"]), 1e-6, []
    for place in np.ndindex(x.shape):
        ends = []
        for sign in (1, -1):
            other = x.copy()
            other[place] += sign * step
            ends.append(gtv.linear_optimum(known(x=other), ALPHA).ravel())
        columns.append((ends[0] - ends[1]) / (2 * step))
    whole = np.stack(columns, axis=1)
    assert told.feature_gain == pytest.approx(np.linalg.norm(whole, 2) ** 2, rel=1e-6)
    size = x.shape[1] * x.shape[2]
    block = whole[0:2, 2 * size : 3 * size]
    found = told.feature_influences()[0, 2]
    assert found == pytest.approx(np.linalg.norm(block, 2) ** 2, rel=1e-6)


def test_what_a_lost_edge_does_is_computed_without_losing_it(told: Sensitivity):
    first, second, _ = graph_of(told).pairs()
    for k, found in enumerate(told.edge_influences()):
        cut = np.array(TOLD["adjacency"])
        cut[first[k], second[k]] = cut[second[k], first[k]] = 0.0
        really = moved(told.problem, known(adjacency=cut), ALPHA).distance
        assert found == pytest.approx(really, rel=1e-9)


def graph_of(told: Sensitivity) -> Graph:
    assert told.problem.graph is not None
    return told.problem.graph


def test_an_edge_that_alone_holds_a_node_moves_it_without_end():
    x, y = np.ones((4, 1)), np.arange(4.0)
    pair = tacita.from_arrays(
        x, y, [0, 0, 1, 1], "linear", graph=graph.star(3), unlabelled=[2]
    )
    assert np.isinf(Sensitivity(pair, 1.0).edge_influences()).tolist() == [False, True]


def test_a_large_network_agrees_with_a_small_one(told: Sensitivity, monkeypatch):
    """Lanczos steps instead of the matrix."""
    monkeypatch.setattr("tacita.theory.sensitivity._DENSE", 0)
    assert dataclasses.replace(told).label_gain == pytest.approx(told.label_gain, 1e-9)


def test_two_notions_pull_apart(told: Sensitivity):
    table = two_notions(told.problem, [0.1, 1.0, 10.0])
    assert np.all(np.diff(table["deviation"]) < 0)
    assert np.all(np.diff(table["neighbour_gain"]) > 0)
    relax = TOLD["relax"]
    sigma = told.problem.moduli.strong_convexity[relax["node"]]
    close(gtv.relax_robustness(sigma, ALPHA, relax["degree"]), relax["gain_174"])


def test_perturbed_descent():
    told = TOLD["perturbed_descent"]
    found = descent.perturbed_error(told["kappa"], told["start"], told["eps"])
    close(found, told["bound_88_mended"])


def test_perturbed_descent_is_what_descent_does_at_worst():
    """Errors that all push the same way reach the bound."""
    away, errors = 1.5, [0.3, 0.0, 0.2, 0.4]
    for error in errors:
        away = 0.7 * away + error
    assert descent.perturbed_error(0.7, 1.5, errors) == pytest.approx(away, rel=1e-12)


def test_other_models_are_refused():
    curved = tacita.from_arrays(np.eye(3), [0, 1, 1], [0, 1, 2], graph=graph.ring(3))
    with pytest.raises(tacita.TacitaError, match="linear models only"):
        Sensitivity(curved, 1.0)
