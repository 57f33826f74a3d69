"""Variants that are GTVMin with a choice of losses, graph and coupled coordinates.

Each is compared with the centralised training that it stands for.
"""

import jax
import numpy as np
import pytest

import tacita
from tacita.problem import Penalty, graph, mlp

NODES, FEATURES, ROWS = 8, 4, 6


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(2)
    truth = np.array([1.0, -1.0, 0.5, 0.0]) + 0.4 * rng.normal(size=(NODES, FEATURES))
    x = rng.normal(size=(NODES, ROWS, FEATURES))
    y = np.einsum("nmd,nd->nm", x, truth) + 0.1 * rng.normal(size=(NODES, ROWS))
    return x, y


def flat(x, y, nodes=None):
    """Rows, targets and owners as `from_arrays` takes them, of some nodes or all."""
    kept = np.arange(len(x)) if nodes is None else np.asarray(nodes)
    owner = np.repeat(kept, x.shape[1])
    return x[kept].reshape(-1, x.shape[-1]), y[kept].ravel(), owner


def test_single_model_is_reached_as_alpha_grows(rows):
    problem = tacita.from_arrays(*flat(*rows), model="linear", graph=graph.star(NODES))
    x, y, _ = flat(*rows)
    pooled = np.linalg.lstsq(x, y, rcond=None)[0]
    np.testing.assert_allclose(problem.solve(), pooled, atol=1e-10)
    gaps = [
        np.abs(tacita.GTVMin(problem, alpha).solve() - pooled).max()
        for alpha in (1e2, 1e4, 1e6)
    ]
    # The distance to the pooled answer falls as 1 / alpha.
    assert gaps[0] / gaps[1] == pytest.approx(100, rel=0.1)
    assert gaps[2] < 1e-4


def test_single_model_without_a_server_is_fed_avg_with_one(rows):
    problem = tacita.from_arrays(*flat(*rows), model="linear", graph=graph.ring(NODES))
    server = tacita.simulate(problem, tacita.FedAvg(local_steps=1), 400, record=())
    peers = tacita.GTVMin(problem, 1e5).solve()
    np.testing.assert_allclose(
        peers, np.broadcast_to(server.params, peers.shape), atol=1e-3
    )


def test_unlabelled_nodes_take_the_mean_of_their_neighbours(rows):
    unlabelled = [1, 4, 5]
    labelled = [i for i in range(NODES) if i not in unlabelled]
    network = graph.erdos_renyi(NODES, edges=14, seed=1)
    problem = tacita.from_arrays(
        *flat(*rows, labelled), model="linear", graph=network, unlabelled=unlabelled
    )
    assert problem.n_agents == NODES and problem.counts[unlabelled].tolist() == [0] * 3
    models = tacita.GTVMin(problem, 0.7).solve()
    adjacency = network.adjacency().toarray()
    mean = adjacency @ models / adjacency.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(models[unlabelled], mean[unlabelled], atol=1e-10)
    assert np.abs(models - mean)[labelled].max() > 0.1
    # Brute force: the whole quadratic as one dense least-squares problem.
    np.testing.assert_allclose(models, dense(rows, labelled, network, 0.7), atol=1e-9)
    run = tacita.simulate(problem, tacita.FedRelax(alpha=0.7), 3000, record=())
    np.testing.assert_allclose(run.agents, models, atol=1e-8)


def dense(rows, labelled, network, alpha):
    x, y = rows
    parts, targets = [], []
    for i in labelled:
        block = np.zeros((ROWS, NODES, FEATURES))
        block[:, i] = x[i]
        parts.append(block.reshape(ROWS, -1) / np.sqrt(ROWS))
        targets.append(y[i] / np.sqrt(ROWS))
    for i, j, weight in network.to_networkx().edges(data="weight"):
        block = np.zeros((FEATURES, NODES, FEATURES))
        block[:, i], block[:, j] = np.eye(FEATURES), -np.eye(FEATURES)
        parts.append(np.sqrt(alpha * weight) * block.reshape(FEATURES, -1))
        targets.append(np.zeros(FEATURES))
    table, target = np.concatenate(parts), np.concatenate(targets)
    return np.linalg.lstsq(table, target, rcond=None)[0].reshape(NODES, FEATURES)


def test_semi_supervised_with_strong_coupling_is_training_on_the_labelled(rows):
    labelled = [0, 2, 3, 6, 7]
    problem = tacita.from_arrays(
        *flat(*rows, labelled),
        model="linear",
        graph=graph.complete(NODES),
        unlabelled=[1, 4, 5],
    )
    x, y, _ = flat(*rows, labelled)
    pooled = np.linalg.lstsq(x, y, rcond=None)[0]
    models = tacita.GTVMin(problem, 1e6).solve()
    np.testing.assert_allclose(models, np.broadcast_to(pooled, (NODES, 4)), atol=1e-5)


def test_a_node_with_rows_cannot_be_unlabelled(rows):
    with pytest.raises(tacita.TacitaError, match="named as unlabelled but has rows"):
        tacita.from_arrays(*flat(*rows), model="linear", unlabelled=[3])


def test_server_algorithms_refuse_a_node_without_rows(rows):
    problem = tacita.from_arrays(*flat(*rows, range(6)), "linear", unlabelled=[6])
    with pytest.raises(tacita.TacitaError, match="agent 6 has no labelled row"):
        tacita.simulate(problem, tacita.FedAvg(), 2)


def test_personal_coordinates_beside_shared_ones_are_one_joint_regression(rows):
    shared = np.array([True, True, False, False])
    problem = tacita.from_arrays(*flat(*rows), model="linear", graph=graph.ring(NODES))
    gtv = tacita.GTVMin(problem, 1e6, Penalty(kind="squared", coordinates=shared))
    models = gtv.solve()
    # Centralised: columns for the shared two, and for each node's own two.
    x, y = rows
    table = np.zeros((NODES, ROWS, 2 + 2 * NODES))
    table[:, :, :2] = x[:, :, :2]
    for i in range(NODES):
        table[i, :, 2 + 2 * i : 4 + 2 * i] = x[i, :, 2:]
    joint = np.linalg.lstsq(table.reshape(-1, table.shape[-1]), y.ravel(), rcond=None)[
        0
    ]
    np.testing.assert_allclose(
        models[:, :2], np.broadcast_to(joint[:2], (NODES, 2)), atol=1e-5
    )
    np.testing.assert_allclose(models[:, 2:], joint[2:].reshape(NODES, 2), atol=1e-5)


def test_networks_that_share_first_layers_step_as_the_formula_says(rows):
    model = mlp(FEATURES, (3,), None, seed=1)
    first = np.arange(model.dim) < FEATURES * 3 + 3  # hidden weights and biases
    problem = tacita.from_arrays(
        *flat(*rows), model=model, graph=graph.ring(NODES), dtype=np.float64
    )
    penalty = Penalty(kind="squared", coordinates=first)
    algorithm = tacita.FedGD(alpha=0.4, step_size=0.05, penalty=penalty)
    one = tacita.simulate(problem, algorithm, 1, record=()).agents
    two = tacita.simulate(problem, algorithm, 2, record=()).agents
    x, y = rows
    with jax.enable_x64(True):
        for i in range(NODES):
            weights = np.full(ROWS, 1 / ROWS)
            slope = np.asarray(model.grad(one[i], x[i], y[i], weights))
            neighbours = one[i - 1] + one[(i + 1) % NODES]
            pull = 2 * 0.4 * (2 * one[i] - neighbours) * first
            np.testing.assert_allclose(
                two[i], one[i] - 0.05 * (slope + pull), atol=1e-12
            )


def test_few_shot_categories_borrow_from_their_relatives():
    # Detectors of categories in two families; the last of each has two rows only.
    rng = np.random.default_rng(4)
    family = np.repeat(rng.normal(size=(2, 5)), 4, axis=0)
    truth = family + 0.15 * rng.normal(size=(8, 5))
    counts = np.array([40, 40, 40, 2, 40, 40, 40, 2])
    owner = np.repeat(np.arange(8), counts)
    x = rng.normal(size=(len(owner), 5))
    y = np.sum(x * truth[owner], axis=1) + 0.3 * rng.normal(size=len(owner))
    pairs = [(i, j) for f in (0, 4) for i in range(f, f + 4) for j in range(f, i)]
    relatives = graph.Graph.from_edges(8, pairs)
    problem = tacita.from_arrays(x, y, owner, model="ridge", l2=1e-3, graph=relatives)
    alone, together = (
        np.linalg.norm(tacita.GTVMin(problem, alpha).solve() - truth, axis=1)
        for alpha in (0.0, 0.3)
    )
    assert np.all(together[[3, 7]] < 0.4 * alone[[3, 7]])
    # With alpha = 0 a category's detector is its own regression.
    own = owner == 3
    gram = 2 * x[own].T @ x[own] / 2 + 1e-3 * np.eye(5)
    expected = np.linalg.solve(gram, 2 * x[own].T @ y[own] / 2)
    found = tacita.GTVMin(problem, 0.0).solve()[3]
    np.testing.assert_allclose(found, expected, rtol=1e-8)
