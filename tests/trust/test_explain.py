"""Explainability: known numbers, exercise 8.2, and simple models that can be read."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

import tacita
from tacita.problem import graph
from tacita.theory import gtv
from tacita.trust import explain

TOLD = json.loads((Path(__file__).parent / "vectors.json").read_text())["bounds"]
OURS = TOLD["explainability"]


def network(alpha_zero: bool = False) -> tacita.Problem:
    x, y = np.array(TOLD["x"]), np.array(TOLD["y"])
    owner = np.repeat(np.arange(len(x)), x.shape[1])
    made = x.reshape(-1, x.shape[2]), y.ravel(), owner, "linear"
    return tacita.from_arrays(*made, graph=graph.ring(len(x)))


def test_177_is_the_known_number():
    said = np.array(OURS["test_x"]) @ np.array(TOLD["models"][0])
    found = explain.surprise(said, OURS["guess"])
    assert found == pytest.approx(OURS["value_177_of_model_0"], rel=1e-9)


def test_178_is_the_known_system_and_model():
    rho = OURS["rho"]
    made = explain.toward(network(), OURS["test_x"], OURS["guess"], rho)
    x, y, counts = made.stacked()
    q, b = x[0].T @ x[0] / counts[0], x[0].T @ y[0] / counts[0]
    np.testing.assert_allclose(q, OURS["pieces_178_of_node_0"][0], rtol=1e-9)
    np.testing.assert_allclose(b, OURS["pieces_178_of_node_0"][1], rtol=1e-9)
    alone = gtv.linear_optimum(made, alpha=0.0)[0]
    np.testing.assert_allclose(alone, OURS["model_alone"], rtol=1e-9)


def test_any_model_is_drawn_the_same_way():
    """Rows with weights give the loss L_i + rho E, whatever the model."""
    x = np.random.default_rng(0).normal(size=(11, 2))
    y, owner = np.sign(x[:, 0] + 0.1), [0] * 4 + [1] * 7
    problem = tacita.from_arrays(x, y, owner, "logistic", test=(x[:3], y[:3]))
    user, guess, rho, w = x[:3] + 1.0, np.array([1.0, -1, 1]), 0.7, np.array([0.3, -1])
    made = explain.toward(problem, user, guess, rho)
    alone = tacita.from_arrays(user, guess, [0] * 3, "logistic")
    wanted = problem.loss(w) + 2 * rho * alone.loss(w)
    assert made.loss(w) == pytest.approx(wanted, rel=1e-12)
    np.testing.assert_allclose(
        made.grad(w), problem.grad(w) + 2 * rho * alone.grad(w), rtol=1e-12
    )
    assert made.counts.tolist() == [7, 10]
    # Agents' weights are for their own rows.
    weighted = problem.with_weights([0.5, 3.0])
    made = explain.toward(weighted, user, guess, rho)
    wanted = weighted.loss(w) + 2 * rho * alone.loss(w)
    assert made.loss(w) == pytest.approx(wanted, rel=1e-12)
    with pytest.raises(tacita.TacitaError, match="of weight 0"):
        explain.toward(problem.with_weights([1.0, 0.0]), user, guess, rho)
    bounded = dataclasses.replace(problem, bound=5.0)
    assert explain.toward(bounded, user, guess, rho).bound is None
    told = tacita.simulate(
        made, tacita.FedAvg(step_size=0.1), 2, record=("test_accuracy", "accuracy")
    )
    assert told.metrics["test_accuracy"].size == 2


def test_exercise_8_2_has_the_predicted_optimum():
    """A lone node with s = 1, d = 5, m = 20, and a user near and far."""
    rng, rhos = np.random.default_rng(1), np.array([0.0, 0.25, 0.5, 1.0, 2.5, 5.0, 10])
    d, m, truth = 5, 20, np.ones(5)
    for gap, best in ((0.1, 2.5), (1.0, 0.25)):
        assert explain.best_rho(1.0, d, m, gap) == pytest.approx(best)
        fine = np.linspace(0, 10, 4001)
        predicted = explain.expected_error(fine, 1.0, d, m, gap)
        assert fine[predicted.argmin()] == pytest.approx(best, abs=0.01)
        away = rng.normal(size=d)
        user = truth + away * np.sqrt(gap) / np.linalg.norm(away)
        errors = np.zeros(len(rhos))
        for _ in range(300):
            x, _ = np.linalg.qr(rng.normal(size=(m, d)))
            x *= np.sqrt(m)  # X^T X / m = I exactly
            b = x.T @ (x @ truth + rng.normal(size=m)) / m
            found = (b + rhos[:, None] * user) / (1 + rhos[:, None])
            errors += np.sum((found - truth) ** 2, axis=1) / 300
        wanted = explain.expected_error(rhos, 1.0, d, m, gap)
        np.testing.assert_allclose(errors, wanted, rtol=0.15)
        assert errors.argmin() in (np.searchsorted(rhos, best) + np.array([-1, 0, 1]))


def test_fidelity_is_one_for_what_is_as_simple_and_less_for_what_is_not():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 6))
    steps = np.where(x[:, 0] > 0, 1.0, np.where(x[:, 1] > 0, 2.0, 3.0))
    assert explain.fidelity(x, steps) == pytest.approx(1.0)
    assert explain.fidelity(x, steps.astype(int), classes=True) == 1.0
    few = 2 * x[:, 3] - x[:, 5]
    assert explain.fidelity(x, few, "sparse") == pytest.approx(1.0)
    assert explain.fidelity(x, few, "tree") < 0.9
    many = x @ np.ones(6)
    assert explain.fidelity(x, many, "sparse") == pytest.approx(0.5, abs=0.1)
    assert explain.fidelity(x, np.ones(400)) == 1.0


def test_what_does_not_fit_is_refused():
    for call, words in (
        (lambda: explain.toward(network(), np.ones((2, 3)), [1.0, 2.0], 1.0), "shape"),
        (lambda: explain.toward(network(), np.ones((1, 2)), [1.0], -1.0), "rho"),
        (lambda: explain.explained([1.0, 2.0], [1.0, 1.0]), "differ"),
        (lambda: explain.surprise([1.0], [1.0, 1.0]), "one guess per prediction"),
        (lambda: explain.fidelity(np.eye(2), [0, 1], "sparse", classes=True), "tree"),
    ):
        with pytest.raises(tacita.TacitaError, match=words):
            call()
