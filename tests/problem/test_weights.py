"""Agents with weights: pooled rows, twins, GTVMin, and what algorithms then reach."""

from __future__ import annotations

import numpy as np
import pytest

import tacita
from tacita.problem import GTVMin, graph, hold_out, solve_clusters

COUNTS = np.array([3, 12, 5, 8])
WHO = np.repeat(np.arange(4), COUNTS)
RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((28, 2))
Y = X @ [1.0, -2.0] + WHO + RANDOM.standard_normal(28)
WEIGHTS = np.array([0.5, 2.0, 1.0, 3.0])


def made(model="linear", y=Y, **chosen) -> tacita.Problem:
    l2 = 0.1 if model in ("linear", "ridge") else 0.3
    return tacita.from_arrays(X, y, WHO, model, l2=l2, graph=graph.ring(4), **chosen)


def test_samples_are_the_pooled_rows():
    """N times the mean loss of all rows, whoever holds them, and N regularisers."""
    pooled = np.linalg.solve(
        2 * X.T @ X / len(X) + 0.1 * np.eye(2), 2 * X.T @ Y / len(X)
    )
    by_rows = made(weights="samples")
    np.testing.assert_allclose(by_rows.solve(), pooled, atol=1e-12)
    assert np.abs(made().solve() - pooled).max() > 0.01
    one = tacita.from_arrays(X, Y, np.zeros(28, int), "linear", l2=0.1)
    assert by_rows.loss([1.0, 1.0]) == pytest.approx(4 * one.loss([1.0, 1.0]))
    np.testing.assert_allclose(by_rows.weights, COUNTS / 7)


@pytest.mark.parametrize(
    "model", ["linear", "logistic", pytest.param("huber", marks=pytest.mark.long)]
)
def test_a_weight_of_two_is_the_agent_twice(model):
    """Twins: the losses of an agent that is there twice add up."""
    y = np.sign(Y - 1) if model == "logistic" else Y
    chosen = tacita.problem.Huber(2, delta=0.7) if model == "huber" else model
    twice = np.concatenate([X, X[WHO == 1]]), np.concatenate([y, y[WHO == 1]])
    who = np.concatenate([WHO, np.full(12, 9)])
    twins = tacita.from_arrays(*twice, who, chosen, l2=0.0)
    heavy = tacita.from_arrays(
        X, y, WHO, chosen, l2=0.0, weights={0: 1, 1: 2, 2: 1, 3: 1}
    )
    np.testing.assert_allclose(heavy.solve(), twins.solve(), atol=1e-9)
    w = np.array([0.3, -0.2])
    np.testing.assert_allclose(heavy.grad(w), twins.grad(w), atol=1e-12)
    assert heavy.loss(w) == pytest.approx(twins.loss(w))
    np.testing.assert_allclose(
        heavy.moduli.smoothness[1], 2 * twins.moduli.smoothness[1]
    )


long = pytest.mark.long


@pytest.mark.parametrize(
    ("model", "penalty", "method"),
    [
        ("linear", "squared", "factor"),
        pytest.param("linear", "squared", "conjugate_gradients", marks=long),
        pytest.param("logistic", "squared", "auto", marks=long),
        pytest.param("linear", "l2", "auto", marks=long),
    ],
)
def test_gtvmin_has_weights(model, penalty, method):
    y = np.sign(Y - 1) if model == "logistic" else Y
    gtv = GTVMin(made(model, y, weights=WEIGHTS), 0.4, penalty)
    found = gtv.solve(method=method)
    least = gtv.objective(found)
    for away in (1e-3, 1e-1):
        moved = found + away * RANDOM.standard_normal(found.shape)
        assert gtv.objective(moved) > least
    if penalty == "squared":
        assert np.abs(gtv.gradient(found)).max() < 1e-8
    plain = GTVMin(made(model, y), 0.4, penalty).solve(method=method)
    assert gtv.objective(plain) > least + 1e-3


@pytest.mark.parametrize(
    "algorithm", [pytest.param(tacita.FedAvg(), marks=long), tacita.FedRelax(alpha=0.4)]
)
def test_algorithms_reach_the_weighted_optimum(algorithm):
    problem = made(weights=WEIGHTS)
    goal = algorithm.goal(problem)
    run = tacita.simulate(problem, algorithm, 2000, record=())
    reached = run.params if goal.ndim == 1 else run.agents
    np.testing.assert_allclose(reached, goal, atol=1e-9)
    assert np.abs(goal - algorithm.goal(made())).max() > 0.01


def test_letters_that_weigh_as_rows_reach_their_goal():
    by_rows = made(weights="samples").solve()
    algorithm = tacita.FedAvg(weights="samples")
    run = tacita.simulate(made(), algorithm, 2000, record=())
    np.testing.assert_allclose(run.params, by_rows, atol=1e-9)
    for one in (algorithm, tacita.FedProx(eta=1.0, weights="samples")):
        np.testing.assert_allclose(one.goal(made()), by_rows, atol=1e-12)
    # Weights of the problem and of letters multiply.
    twice = made(weights=WEIGHTS)
    goal = made(weights=WEIGHTS * COUNTS / 7).solve()
    np.testing.assert_allclose(algorithm.goal(twice), goal, atol=1e-9)


def test_batches_clusters_and_held_out_rows_keep_weights():
    problem = made(weights=WEIGHTS)
    together = solve_clusters(problem, [0, 0, 0, 0])
    np.testing.assert_allclose(together[0], problem.solve(), atol=1e-9)
    train, held = hold_out(problem, share=0.3)
    assert train.weights.tolist() == held.weights.tolist() == WEIGHTS.tolist()
    whole = {"step_size": 0.01, "local_steps": 1}
    batch = tacita.Minibatch(size=3, sampling="without_replacement")
    few = tacita.from_arrays(X[:6], Y[:6], WHO[:6] // 1 % 2, "linear", weights=[1, 5])
    same = [
        tacita.simulate(few, tacita.FedAvg(oracle=oracle, **whole), 1, record=())
        for oracle in (tacita.problem.Full(), batch)
    ]
    np.testing.assert_allclose(same[0].params, same[1].params, atol=1e-12)


def test_what_weights_do_not_go_with_is_refused():
    for weights, words in (
        ([1.0, 2.0], "weights"),
        ([1.0, -1.0, 1.0, 1.0], "weights >= 0"),
        ([0.0] * 4, "one above 0"),
        ({0: 1.0}, "agent 1"),
        ({k: 1.0 for k in range(5)}, "names agent 4, which has no rows"),
        ("rows", "samples"),
        ("12", "samples"),
        ([[1], 2, 3, 4], "one number per agent"),
    ):
        with pytest.raises(tacita.TacitaError, match=words):
            made(weights=weights)
    with pytest.raises(tacita.TacitaError, match="have no theorem"):
        tacita.private(
            made(weights="samples"),
            tacita.FedAvg(step_size=0.1),
            epsilon=1.0,
            delta=1e-5,
            observer="coordinator",
            rounds=2,
        )
