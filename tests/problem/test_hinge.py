"""The hinge loss: exact answers, alone and on graphs, as scikit-learn's and cvxpy's."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from sklearn.svm import LinearSVC

import tacita
from tacita.problem import GTVMin, Hinge

L2 = 0.05


@pytest.fixture(scope="module")
def nodes() -> tacita.Problem:
    random = np.random.default_rng(0)
    x = random.standard_normal((60, 2))
    y = np.where(x @ [1.0, -1.0] + random.standard_normal(60) > 0, "yes", "no")
    return tacita.from_arrays(
        x,
        y,
        np.arange(60) % 5,
        model="hinge",
        classes=("no", "yes"),
        l2=L2,
        graph=tacita.problem.graph.ring(5),
    )


def test_the_optimum_is_that_of_a_support_vector_machine(nodes):
    """One agent's share of l2 is L2, and the mean is over 12 rows of each of five."""
    x, y, _ = nodes.stacked()
    machine = LinearSVC(
        C=1 / (L2 * 60),
        loss="hinge",
        fit_intercept=False,
        tol=1e-12,
        max_iter=10**7,
        random_state=0,
    )
    machine.fit(x.reshape(60, 2), y.ravel())
    np.testing.assert_allclose(nodes.solve(), machine.coef_[0], atol=1e-5)


@pytest.mark.parametrize("penalty", ["squared", "l1"])
def test_gtvmin_cannot_be_bettered(nodes, penalty):
    gtv = GTVMin(nodes.with_weights(np.linspace(0.5, 1.5, 5)), 0.05, penalty)
    w = gtv.solve()
    here = gtv.objective(w)
    for step in np.random.default_rng(1).standard_normal((40, 5, 2)):
        assert gtv.objective(w + 1e-4 * step) >= here - 1e-11


def test_fed_relax_finds_the_same_models(nodes):
    exact = GTVMin(nodes, alpha=0.05).solve()
    run = tacita.simulate(nodes, tacita.FedRelax(alpha=0.05), 80, record=())
    np.testing.assert_allclose(run.agents, exact, atol=1e-6)
    assert (
        tacita.simulate(
            nodes, tacita.FedAvg(step_size=0.2), 60, record=("accuracy",)
        ).metrics["accuracy"][-1]
        > 0.7
    )


def test_slopes_by_hand_and_by_differentiation():
    rng = np.random.default_rng(2)
    w, x = rng.normal(size=3), rng.normal(size=(9, 3))
    y, weights = np.where(rng.random(9) < 0.5, -1.0, 1.0), rng.random(9)
    model = Hinge(3)
    with jax.enable_x64(True):
        found = jax.grad(lambda v: (weights * model.losses(v, x, y)).sum())(w)
        by_hand = model.grad(w, x, y, weights)
    np.testing.assert_allclose(by_hand, found, atol=1e-14)


def test_steps_by_theory_are_refused(nodes):
    with pytest.raises(tacita.TacitaError, match="smoothness of Hinge"):
        tacita.simulate(nodes, tacita.FedAvg(), 2)
