"""Letters read back, members found, and a loss that bears wild labels."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import tacita
from tacita.privacy import inversion, membership

VECTORS = json.loads(
    (Path(__file__).parent.parent / "aggregation/vectors.json").read_text()
)
KNOWN = VECTORS["attacks"]


def test_a_linear_model_is_read_back_from_gradient_descent():
    """Exercise 10.1: d + 1 gradients of plain descent from zero are enough."""
    known = KNOWN["linear_inversion"]
    gradients = np.array(known["gradients"])
    points = np.zeros_like(gradients)
    points[1:] = -known["step_size"] * np.cumsum(gradients, axis=0)[:-1]
    found = inversion.linear(points, gradients)
    np.testing.assert_allclose(found.q, known["Q"], atol=1e-8)
    np.testing.assert_allclose(found.b, known["b"], atol=1e-8)
    x = np.array(known["x"])
    np.testing.assert_allclose(found.q, x.T @ x / len(x), atol=1e-8)


def test_a_gradient_is_read_back_from_a_step_on_a_graph():
    """Exercise 9.1: what Alice's next letter tells Bob, who sent her the last one."""
    known = KNOWN["probe"]
    told = [known[name] for name in ("before", "after", "sent")]
    pull = known["alpha"] * known["weight"]
    found = inversion.probed(*told, step_size=known["step_size"], pull=pull)
    np.testing.assert_allclose(found, known["gradient"], atol=1e-9)
    random = np.random.default_rng(0)
    alice, bob = np.array([0, 0, 0, 0]), np.array([1])
    problem = tacita.from_arrays(
        random.standard_normal((5, 2)),
        random.standard_normal(5),
        np.concatenate([alice, bob]),
        model="linear",
        graph=tacita.problem.Graph.from_edges(2, [(0, 1)], weights=[2.0]),
    )
    how = tacita.FedGD(alpha=0.3, step_size=0.1)
    first, second = (
        tacita.simulate(problem, how, rounds, record=()).agents for rounds in (1, 2)
    )
    found = inversion.probed(*(first[0], second[0], first[1]), step_size=0.1, pull=0.6)
    np.testing.assert_allclose(found, problem.grad(first)[0], atol=1e-12)


def test_one_record_is_read_back_up_to_its_sign():
    known = KNOWN["single_record"]
    x, y = np.array(known["x"]), known["y"]
    found = inversion.LinearRows(np.outer(x, x), x * y)
    row, label = inversion.single_record(found)
    np.testing.assert_allclose(row, known["found_x_up_to_sign"], rtol=1e-9)
    assert label == pytest.approx(known["found_y_with_that_sign"])


def test_a_row_is_read_back_from_softmax():
    known = KNOWN["softmax_inversion"]
    row, label = inversion.softmax(known["grad_w"], known["grad_b"])
    np.testing.assert_allclose(row, known["x"], rtol=1e-9)
    assert label == known["label"]


def test_labels_of_a_batch_on_a_fresh_model():
    y = np.array([0, 2, 2, 1, 2])
    fresh = np.full(3, 1 / 3)
    grad_b = np.mean(fresh - np.eye(3)[y], axis=0)
    assert inversion.label_counts(grad_b, len(y), fresh).tolist() == [1, 1, 3]


def test_lira():
    known = KNOWN["lira"]
    given = (known["confidence"], known["inside"], known["outside"])
    assert float(membership.lira(*given)) == pytest.approx(known["score"], rel=1e-9)
    assert membership.caught([5.0] * 10, np.arange(1000.0) / 1000) == 1.0
    assert membership.most_caught(1.0, 1e-5) == pytest.approx(np.e * 1e-3 + 1e-5)


def test_huber_bears_a_wild_label():
    known = VECTORS["robust_loss"]
    x = np.column_stack([known["x"], np.ones(5)])
    model = tacita.problem.Huber(features=2, delta=1.0)
    problem = tacita.from_arrays(x, known["y"], np.zeros(5, int), model=model)
    found = problem.solve()
    np.testing.assert_allclose(found, known["huber_delta1_with_intercept"], rtol=1e-6)
    # A small delta is the absolute loss; its slope is a weighted median.
    one = tacita.problem.Huber(features=1, delta=1e-4)
    made = {"agent": np.zeros(5, int), "model": one}
    slopes = []
    for more in (0.0, 0.5):
        y = np.array(known["y"]) + [0, 0, 0, 0, more]
        slopes.append(tacita.from_arrays(x[:, :1], y, **made).solve()[0])
    assert slopes[0] == pytest.approx(known["least_absolute_slope"], abs=1e-3)
    assert slopes[1] == pytest.approx(slopes[0], abs=1e-9)


@pytest.mark.parametrize(
    ("delta", "words"),
    [
        (0.0, "expected delta > 0"),
        (np.nan, "expected delta > 0"),
        (None, "expected delta a number"),
        (np.ones(2), "expected delta one number"),
    ],
)
def test_a_delta_is_one_positive_number(delta, words):
    with pytest.raises(tacita.TacitaError, match=words):
        tacita.problem.Huber(features=2, delta=delta)


@pytest.mark.parametrize(
    "model",
    [
        tacita.problem.Huber(features=7),
        tacita.problem.Absolute(7),
        tacita.problem.Linear(7),
    ],
)
def test_a_model_of_other_rows_is_refused(model):
    with pytest.raises(tacita.TacitaError, match=r"rows of 7 numbers.*shape \(2,\)"):
        tacita.from_arrays(np.ones((4, 2)), np.ones(4), [0, 0, 1, 1], model=model)


def test_huber_runs_on_a_graph():
    model = tacita.problem.Huber(features=2, delta=0.5)
    random = np.random.default_rng(0)
    x = random.standard_normal((40, 2))
    y = x @ [1.0, -1.0]
    y[::10] += 100.0
    problem = tacita.from_arrays(
        x,
        y,
        np.repeat(np.arange(4), 10),
        model=model,
        graph=tacita.problem.graph.ring(4),
    )
    run = tacita.simulate(problem, tacita.FedGD(alpha=1.0), 2000, record=())
    np.testing.assert_allclose(run.agents, np.tile([1.0, -1.0], (4, 1)), atol=0.2)
