"""FedRelax, FedGD, PrimalDual and the closed form agree; rates; inner solvers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tacita
from tacita.problem import Penalty, graph, synthetic
from tacita.schedule import Polynomial
from tacita.theory import gtv

GRAPHS = {
    "ring": graph.ring(9),
    "star": graph.star(9),
    "grid": graph.grid(3, 3),
    "random": graph.erdos_renyi(9, p=0.5, seed=3),
}
each_graph = pytest.mark.parametrize("network", GRAPHS.values(), ids=GRAPHS.keys())
ALPHA = 0.7


def nodes(network, **options) -> tacita.Problem:
    chosen = dict(features=3, samples=6, noise=0.5, spread=0.5, seed=5) | options
    return synthetic.linear(agents=9, graph=network, **chosen)


def error(problem, algorithm, rounds, expected, **options) -> float:
    run = tacita.simulate(problem, algorithm, rounds, record=(), **options)
    return float(np.abs(run.agents - expected).max())


@pytest.mark.few(2)
@each_graph
def test_relax_gradient_and_closed_form_agree(network):
    problem = nodes(network)
    expected = gtv.linear_optimum(problem, ALPHA)
    assert error(problem, tacita.FedRelax(alpha=ALPHA), 2000, expected) < 1e-8
    assert error(problem, tacita.FedGD(alpha=ALPHA), 4000, expected) < 1e-8


def test_few_rows_and_damping_lead_to_the_same_models():
    problem = nodes(GRAPHS["grid"], samples=2)
    expected = gtv.linear_optimum(problem, ALPHA)
    assert error(problem, tacita.FedRelax(alpha=ALPHA), 4000, expected) < 1e-8
    damped = tacita.FedRelax(alpha=ALPHA, damping=0.5)
    assert error(problem, damped, 6000, expected) < 1e-8


def test_one_step_is_the_books_update():
    """argmin f_i(v) + alpha sum_j A_ij ||v - w_j||^2, node by node."""
    network = graph.Graph.from_edges(3, [(0, 1), (1, 2)], [0.5, 2.0])
    problem = synthetic.linear(agents=3, features=2, samples=5, graph=network, seed=1)
    start = np.random.default_rng(0).normal(size=(3, 2))
    run = tacita.simulate(problem, tacita.FedRelax(alpha=0.3), 1, start=start)
    a = np.array([[0, 0.5, 0], [0.5, 0, 2.0], [0, 2.0, 0]])
    x, y, _ = problem.stacked()
    for i in range(3):
        left = 2 * x[i].T @ x[i] / 5 + 0.6 * a[i].sum() * np.eye(2)
        right = 2 * x[i].T @ y[i] / 5 + 0.6 * a[i] @ start
        np.testing.assert_allclose(run.agents[i], np.linalg.solve(left, right))


@pytest.mark.long
def test_logistic_models_exactly_and_with_an_inner_solver():
    problem = synthetic.logistic(
        agents=9,
        features=3,
        samples=10,
        l2=0.3,
        heterogeneous=True,
        graph=GRAPHS["star"],
    )
    expected = tacita.GTVMin(problem, 0.2).solve()
    assert error(problem, tacita.FedRelax(alpha=0.2), 300, expected) < 1e-8
    inner = tacita.solvers.GradientDescent(local_steps=3)
    relaxed = tacita.FedRelax(alpha=0.2, solver=inner)
    assert error(problem, relaxed, 1500, expected) < 1e-8


@pytest.mark.few(1)
@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_primal_dual_solves_the_network_lasso(penalty):
    problem = nodes(GRAPHS["random"])
    expected = tacita.GTVMin(problem, 0.1, penalty).solve()
    algorithm = tacita.PrimalDual(alpha=0.1, penalty=penalty)
    assert error(problem, algorithm, 1500, expected) < 1e-8
    if penalty == "l2":  # silent nodes delay it, and change nothing else
        assert error(problem, algorithm, 6000, expected, participation=0.4) < 1e-6


@pytest.mark.long
def test_some_coordinates_are_shared_and_the_others_personal():
    problem = nodes(GRAPHS["grid"])
    shared = Penalty(coordinates=[True, True, False], strength=0.6)
    expected = tacita.GTVMin(problem, ALPHA, shared).solve()
    for algorithm, rounds in [
        (tacita.FedRelax(alpha=ALPHA, penalty=shared), 3000),
        (tacita.FedGD(alpha=ALPHA, penalty=shared), 4000),
        (tacita.PrimalDual(alpha=ALPHA, penalty=shared), 2000),
    ]:
        assert error(problem, algorithm, rounds, expected) < 1e-8
    poor = nodes(GRAPHS["grid"], samples=2)
    with pytest.raises(tacita.TacitaError, match="not coupled"):
        tacita.simulate(poor, tacita.FedRelax(alpha=ALPHA, penalty=shared), 1)


def test_nodes_that_nobody_holds_need_rows_of_their_own():
    """Alone, or with alpha = 0: unique answers, or a refusal in place of nonsense."""
    apart = graph.Graph.from_edges(9, [(i, i + 1) for i in range(7)])
    poor, penalised = nodes(apart, samples=1), nodes(apart, samples=1, l2=0.1)
    relaxed = tacita.FedRelax(alpha=ALPHA, need_connected=False)
    for algorithm, node in [
        (relaxed, 8),
        (replace(relaxed, alpha=0.0), 0),
        (tacita.PrimalDual(alpha=ALPHA, need_connected=False), 8),
    ]:
        with pytest.raises(
            tacita.TacitaError, match=f"not coupled .* rows of node {node}"
        ):
            tacita.simulate(poor, algorithm, 1)
    # Gradient steps end at one of the answers, and must not swing around it.
    inner = tacita.solvers.GradientDescent(local_steps=3)
    for problem, algorithm in [
        (penalised, relaxed),
        (poor, replace(relaxed, solver=inner)),
    ]:
        run = tacita.simulate(problem, algorithm, 30, record=())
        assert np.abs(problem.grad(run.agents)[8]).max() < 1e-12


def test_a_network_that_shares_its_first_layer():
    """(149), Fig. 6.7: one hidden layer, coupled; the output layer is personal."""
    rng = np.random.default_rng(0)
    model = tacita.problem.mlp(4, (5,), 3)
    problem = tacita.from_arrays(
        rng.normal(size=(60, 4)),
        rng.integers(0, 3, 60),
        np.arange(60) % 4,
        model=model,
        graph=graph.ring(4),
    )
    first = np.arange(model.dim) < 4 * 5 + 5
    solver = tacita.solvers.GradientDescent(step_size=0.05, local_steps=5)
    relaxed = tacita.FedRelax(
        alpha=2.0, penalty=Penalty(coordinates=first), solver=solver, damping=0.3
    )
    run = tacita.simulate(problem, relaxed, 60, record=("loss",))
    assert run.metrics["loss"][-1] < run.metrics["loss"][0]
    spread = run.agents.std(axis=0)
    assert spread[first].mean() < 0.3 * spread[~first].mean()
    with pytest.raises(tacita.TacitaError, match="solver="):
        tacita.simulate(problem, tacita.FedRelax(alpha=2.0), 1)


def test_every_node_has_its_own_safe_rate():
    problem = nodes(GRAPHS["star"])
    expected = gtv.linear_optimum(problem, ALPHA)
    rates = gtv.node_step_sizes(problem, ALPHA)
    assert rates.max() > 3 * rates.min()  # the hub must step more carefully
    own = tacita.FedGD(alpha=ALPHA, step_size=rates)
    assert error(problem, own, 3000, expected) < 1e-8
    hessian = gtv.hessian(problem, ALPHA).toarray()
    scaled = np.sqrt(np.repeat(rates, 3))
    assert np.linalg.eigvalsh(scaled[:, None] * hessian * scaled)[-1] <= 1 + 1e-12


@pytest.mark.long
def test_rates_that_shrink():
    """Steps with eta_t = eta / (1 + decay t)^power by hand; and what it is for."""
    problem = nodes(GRAPHS["ring"])
    shrinking = Polynomial(start=0.05, power=0.75, decay=0.5)
    rate = dict(alpha=0.3, step_size=shrinking)
    start = np.random.default_rng(1).normal(size=(9, 3))
    run = tacita.simulate(problem, tacita.FedGD(**rate), 3, start=start)
    w, coupled = start, tacita.GTVMin(problem, 0.3)
    for t in range(3):
        w = w - 0.05 / (1 + 0.5 * t) ** 0.75 * coupled.gradient(w)
    np.testing.assert_allclose(run.agents, w, atol=1e-12)
    expected = coupled.solve()
    errors = [
        tacita.simulate(
            problem,
            tacita.FedSGD(alpha=0.3, step_size=step_size),
            4000,
            seeds=4,
            record=("error",),
            reference=expected,
        ).metrics["error"][:, -400:]
        for step_size in (0.1, Polynomial(start=0.1, decay=0.01))
    ]
    assert errors[1].mean() < 0.4 * errors[0].mean()


def test_default_rates_are_those_of_the_book():
    problem = nodes(GRAPHS["random"])
    q = gtv.hessian(problem, ALPHA).toarray() / 2
    low, *_, high = np.linalg.eigvalsh(q)
    # (83): eta = 1 / (lambda_1 + lambda_d) for the step w - eta * gradient.
    assert gtv.step_size(problem, ALPHA) == pytest.approx(1 / (low + high))
    large = synthetic.linear(
        agents=6000, features=2, samples=1, graph=graph.random_regular(6000, 4)
    )
    bound = 2 * (large.moduli.largest / 2 + 2 * ALPHA * 4)  # (106), times 2
    assert gtv.step_size(large, ALPHA) == pytest.approx(1 / bound)


def test_norms_are_refused_where_gradients_are_needed():
    for kind in (tacita.FedGD, tacita.FedRelax):
        with pytest.raises(tacita.TacitaError, match="PrimalDual"):
            kind(alpha=0.1, penalty="l2")
