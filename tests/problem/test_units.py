"""Exact answers do not depend on the units of features and labels."""

import numpy as np
import pytest

import tacita
from tacita.problem import GTVMin, Huber, prox
from tacita.problem.graph import complete, ring
from tacita.tuning.alpha import usual_alphas
from tacita.variants.compared import touching

DICE = np.random.default_rng(7)
X = DICE.normal(size=(24, 2))
LABELS = X @ [1.0, -2.0] + 0.5 * DICE.standard_t(2, size=24)
AGENT = np.arange(24) % 4


def problem_of(model, rows=1.0, labels=1.0, h=None):
    """All terms of the objective are multiplied by the same number."""
    l2, y = 0.1 * rows**2, labels * LABELS
    if model == "absolute":
        l2 = l2 / labels
    if model == "huber":
        model = Huber(2, delta=0.5 * labels)
    if model == "logistic":
        y = np.sign(LABELS)
    given = dict(model=model, l2=l2, graph=ring(4), h=h, dtype=np.float64)
    return tacita.from_arrays(rows * X, y, AGENT, **given)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("model", "rows", "labels"),
    [
        ("linear", 1e-8, 1e-9),
        ("huber", 1e-4, 1e-9),
        ("huber", 1e4, 1e9),
        ("absolute", 1e4, 1e-9),
        ("logistic", 1e-8, 1.0),
    ],
)
def test_solutions_scale_with_their_units(model, rows, labels):
    here, there = problem_of(model), problem_of(model, rows, labels)
    unit = labels / rows
    np.testing.assert_allclose(there.solve(), unit * here.solve(), rtol=1e-9)
    # Squared differences in the unit of the losses; for some also norms.
    squares = 0.3 * rows**2 / (labels if model == "absolute" else 1.0)
    lengths = 0.05 * rows * (labels if model == "linear" else 1.0)
    cases = [(squares, 0.3, "squared"), (lengths, 0.05, "l2")]
    for alpha, first, kind in cases[: 2 if model in ("linear", "absolute") else 1]:
        found = GTVMin(there, alpha, kind).solve()
        expected = unit * GTVMin(here, first, kind).solve()
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9 * unit)


@pytest.mark.parametrize("model", ["linear", "logistic"])
def test_features_of_very_different_sizes_have_a_minimiser(model):
    sizes = np.array([1e8, 1e-8])
    y = LABELS if model == "linear" else np.where(LABELS > 0.5, 1, -1)
    here, there = (
        tacita.from_arrays(X * size, y, AGENT, model=model, dtype=np.float64)
        for size in (1.0, sizes)
    )
    np.testing.assert_allclose(there.solve() * sizes, here.solve(), rtol=1e-9)


def test_the_least_worst_loss_is_found_in_any_unit():
    here, there = problem_of("linear"), problem_of("linear", 1e5, 1e6)
    worst = tacita.AgnosticFedAvg().goal
    expected = 10 * worst(here)
    np.testing.assert_allclose(worst(there), expected, rtol=1e-6)
    assert not np.allclose(expected, 10 * here.solve(), rtol=1e-3)


def test_the_alphas_that_are_tried_have_the_unit_of_the_losses():
    here, there = problem_of("linear"), problem_of("linear", rows=1e-8)
    one, other = (usual_alphas(GTVMin(p, 1.0)) for p in (here, there))
    np.testing.assert_allclose(other, 1e-16 * one, rtol=1e-9)


def test_differences_near_zero_are_small_beside_what_differs():
    gap = np.array([0.0, 0.5, 2.0])
    for unit in (1.0, 1e-9):
        found = unit * touching("absolute", unit * gap, scale=3 * unit)
        np.testing.assert_allclose(found, [1 / 6e-6, 1.0, 0.25])


def test_solutions_with_an_h_scale_with_their_units():
    rows, labels = 1e4, 1e-9
    here = problem_of("linear", h=prox.L1(0.5)).solve()
    there = problem_of("linear", rows, labels, h=prox.L1(0.5 * rows * labels)).solve()
    np.testing.assert_allclose(there, labels / rows * here, rtol=1e-9)


@pytest.mark.parametrize(
    ("model", "rows", "labels"),
    [("linear", 1e3, 1e6), ("linear", 1e-9, 1e9), ("logistic", 1e-9, 1.0)],
)
def test_the_gap_is_closed_in_any_unit(model, rows, labels):
    """Coupled, and alone: without flows slopes are rounding of what adds up to zero."""
    there = problem_of(model, rows, labels)
    losses = 1.0 if model == "logistic" else labels**2
    for alpha in (0.0, 0.3 * rows * (1.0 if model == "logistic" else labels)):
        found = GTVMin(there, alpha, "l2").certificate()
        assert abs(found.gap) < 1e-9 * losses


@pytest.mark.few(2)
@pytest.mark.parametrize("size", [1e-4, 1e9])
@pytest.mark.parametrize("model", ["linear", "logistic"])
def test_the_gap_is_closed_for_features_of_very_different_sizes(model, size):
    y = LABELS if model == "linear" else np.where(LABELS > 0.5, 1, -1)
    there = tacita.from_arrays(X * [1.0, size], y, AGENT, model=model, graph=ring(4))
    assert abs(GTVMin(there, 0.3).certificate().gap) < 1e-9


@pytest.mark.parametrize("rows", [1.0, 1e-9])
def test_a_flow_that_no_model_answers_has_no_dual_value(rows):
    """Slopes of the first node, f(w) = log(1 + exp(-w)), are between -1 and 0."""
    x, y = rows * np.ones((2, 1)), [1, -1]
    pair = tacita.from_arrays(x, y, [0, 1], model="logistic", graph=complete(2))
    gtv = GTVMin(pair, 10 * rows, "l2")
    assert gtv.dual([[0.5 * rows]]) == pytest.approx(2 * np.log(2))
    assert gtv.dual([[1.1 * rows]]) == -np.inf


def test_nodes_that_solve_by_gradient_steps_do_so_in_any_unit():
    solver = tacita.solvers.GradientDescent(local_steps=5)
    ends = []
    for rows in (1.0, 2.0**-30):
        relax = tacita.FedRelax(alpha=0.3 * rows**2, solver=solver)
        run = tacita.simulate(problem_of("linear", rows), relax, 20)
        ends.append(rows * run.agents)
    np.testing.assert_array_equal(*ends)


def test_models_that_rest_far_from_the_minimiser_are_refused():
    """Steps along a feature very much smaller than another are too short."""
    far = tacita.from_arrays(
        X * [1.0, 1e12], LABELS, AGENT, model="linear", graph=ring(4)
    )
    with pytest.raises(tacita.TacitaError, match="scale the features"):
        GTVMin(far, 0.1, "l2").solve()


def test_nodes_of_one_model_are_found_in_any_unit():
    for rows in (1.0, 1e-9, 1e9):
        nodes = problem_of("linear", rows)
        for alpha, clusters in ((10 * rows, 1), (1e-4 * rows, 4)):
            gtv = GTVMin(nodes, alpha, "l2")
            assert len(set(gtv.clusters(gtv.solve()))) == clusters
