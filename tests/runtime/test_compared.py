"""Predictions compared on sets of each edge's own, and by other losses: (64)."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge

import tacita
from tacita.problem import graph
from tacita.theory import gtv
from tacita.variants import compared, estimator_network

NODES, D, ALPHA = 5, 2, 0.4
LINEAR = LinearRegression(fit_intercept=False)
RING = graph.ring(NODES)
PAIRS = [(i, (i + 1) % NODES) for i in range(NODES)]


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(3)
    truth = np.array([1.0, -2.0]) + 2.0 * random.normal(size=(NODES, D))
    agent = np.repeat(np.arange(NODES), 6)
    x = random.normal(size=(len(agent), D))
    return x, np.sum(x * truth[agent], axis=1), agent


def coefficients(run):
    return np.stack([model.coef_ for model in run.estimators])


def test_sets_of_their_own_are_weights_of_edges(rows):
    # On points with X'X / m' = c I an edge couples as one of weight c does, (49).
    scale = dict(zip(PAIRS, [0.5, 1.0, 2.0, 0.25, 1.5], strict=True))
    sets = {
        (j, i): np.tile(np.sqrt(D * c) * np.eye(D), (k + 1, 1))
        for k, ((i, j), c) in enumerate(scale.items())
    }
    network = estimator_network(*rows, LINEAR, RING, sets)
    algorithm = tacita.ModelAgnosticFedRelax(alpha=ALPHA)
    run = tacita.simulate_estimators(network, algorithm, 400, tolerance=1e-13)
    weighted = graph.Graph.from_edges(NODES, list(scale), list(scale.values()))
    problem = tacita.from_arrays(*rows, model="linear", graph=weighted)
    exact = gtv.linear_optimum(problem, ALPHA)
    np.testing.assert_allclose(coefficients(run), exact, atol=1e-9)
    total = tacita.GTVMin(problem, ALPHA).variation(exact)
    assert run.metrics["discrepancy"][-1] == pytest.approx(total, rel=1e-8)
    # A neighbour hears of its edge's points only: 2 (1 + ... + 5) points of 2 rows.
    assert run.communication["bytes"] == run.rounds * 2 * 15 * 2 * 8
    never = tacita.Asynchronous(most_delay=0)
    late = tacita.simulate_estimators(network, algorithm, 4, asynchronous=never)
    np.testing.assert_allclose(
        late.metrics["discrepancy"], run.metrics["discrepancy"][:4], rtol=1e-10
    )


def even(r):
    """log cosh."""
    return jnp.logaddexp(r, -r) - jnp.log(2.0)


SLOPES = {"huber": lambda r: 2 * np.clip(r, -1, 1), even: np.tanh}


@pytest.mark.parametrize("loss", SLOPES)
def test_a_smooth_loss_comes_to_rest_at_the_joint_optimum(rows, loss):
    points = np.random.default_rng(0).normal(size=(7, D))
    network = estimator_network(*rows, LINEAR, RING, points)
    algorithm = tacita.ModelAgnosticFedRelax(alpha=ALPHA, loss=loss)
    run = tacita.simulate_estimators(network, algorithm, 600, tolerance=1e-12)
    w = coefficients(run)
    gaps = np.stack([points @ (w[i] - w[j]) for i, j in PAIRS])
    assert np.abs(gaps).max() > 1  # not all of it is squares
    x, y, agent = rows
    for i in range(NODES):
        mine = agent == i
        slope = 2 * x[mine].T @ (x[mine] @ w[i] - y[mine]) / mine.sum()
        for j in ((i - 1) % NODES, (i + 1) % NODES):
            slope += ALPHA * points.T @ SLOPES[loss](points @ (w[i] - w[j])) / 7
        assert np.abs(slope).max() < 1e-7
    told = sum(np.mean(compared.value(loss, gap)) for gap in gaps)
    assert run.metrics["discrepancy"][-1] == pytest.approx(told, rel=1e-9)


@pytest.mark.long
def test_by_absolute_differences_no_node_can_better_its_own_model(rows):
    points = np.random.default_rng(0).normal(size=(7, D))
    network = estimator_network(*rows, LINEAR, RING, points)
    algorithm = tacita.ModelAgnosticFedRelax(alpha=ALPHA, loss="absolute", damping=0.3)
    run = tacita.simulate_estimators(network, algorithm, 400, tolerance=1e-10)
    w, (x, y, agent) = coefficients(run), rows

    def own(i, v):
        mine = agent == i
        total = np.mean((x[mine] @ v - y[mine]) ** 2)
        for j in ((i - 1) % NODES, (i + 1) % NODES):
            total += ALPHA * np.mean(np.abs(points @ (v - w[j])))
        return total

    for i in range(NODES):
        for step in np.random.default_rng(i).normal(size=(20, D)):
            assert own(i, w[i] + 1e-3 * step) >= own(i, w[i]) - 1e-6


def test_classes_are_compared_on_sets_of_edges(rows):
    x, y, agent = rows
    labels = np.where(y > 0, "yes", "no")
    points = np.random.default_rng(0).normal(size=(6, D))
    one = estimator_network(x, labels, agent, LogisticRegression(), RING, points)
    each = estimator_network(
        x, labels, agent, LogisticRegression(), RING, dict.fromkeys(PAIRS, points)
    )
    algorithm = tacita.ModelAgnosticFedRelax(alpha=ALPHA)
    runs = [tacita.simulate_estimators(n, algorithm, 4) for n in (one, each)]
    for first, second in zip(*(run.estimators for run in runs), strict=True):
        np.testing.assert_allclose(first.coef_, second.coef_, atol=1e-3)
    assert runs[0].metrics["discrepancy"][-1] == pytest.approx(
        runs[1].metrics["discrepancy"][-1], rel=1e-3
    )


def test_what_does_not_fit_is_refused(rows):
    points = np.eye(D)
    make = tacita.ModelAgnosticFedRelax
    with pytest.raises(tacita.TacitaError, match="loss"):
        make(alpha=1.0, loss="cubic")
    with pytest.raises(tacita.TacitaError, match="grows with the size"):
        make(alpha=1.0, loss=lambda r: r)
    network = estimator_network(*rows, Ridge(), RING, points)
    with pytest.raises(tacita.TacitaError, match="numbers are not compared"):
        tacita.simulate_estimators(network, make(alpha=1.0, loss="log"), 1)
    with pytest.raises(tacita.TacitaError, match="has no shared points"):
        estimator_network(*rows, Ridge(), RING, {(0, 1): points})
    with pytest.raises(tacita.TacitaError, match="no edge joins"):
        sets = dict.fromkeys([*PAIRS, (0, 2)], points)
        estimator_network(*rows, Ridge(), RING, sets)
