"""Nodes with losses of their own: exact answers, and the same by letters."""

from __future__ import annotations

import cvxpy
import numpy as np
import pytest

import tacita
from tacita.problem import (
    Graph,
    GTVMin,
    Huber,
    Linear,
    Logistic,
    Penalty,
    PerAgent,
    graph,
)

N, D, ROWS, ALPHA, L2 = 6, 3, 8, 0.2, 0.05
KINDS = ["linear", "huber", "logistic"] * 2
NETWORK = graph.ring(N)


def rows_of(kinds, seed=0):
    """Rows of nodes with near truths; classes for those that predict them."""
    random = np.random.default_rng(seed)
    x = random.standard_normal((N, ROWS, D))
    truth = np.array([1.0, -2.0, 0.5]) + 0.3 * random.standard_normal((N, D))
    y = np.einsum("nmd,nd->nm", x, truth) + 0.3 * random.standard_normal((N, ROWS))
    y[:, 0] += 20  # a wild label each
    classify = np.isin(kinds, ["logistic", "hinge"])
    return x, np.where(classify[:, None], np.sign(y), y)


def problem_of(kinds, **options) -> tacita.Problem:
    x, y = rows_of(kinds)
    return tacita.from_arrays(
        x.reshape(-1, D),
        y.ravel(),
        np.repeat(np.arange(N), ROWS),
        model=dict(enumerate(kinds)),
        graph=NETWORK,
        **({"l2": L2} | options),
    )


def loss_of(kind, residuals, y, scores):
    if kind == "linear":
        return cvxpy.sum_squares(residuals)
    if kind == "huber":
        return cvxpy.sum(cvxpy.huber(residuals, 1.0))
    if kind == "absolute":
        return cvxpy.norm1(residuals)
    margins = cvxpy.multiply(y, scores)
    if kind == "hinge":
        return cvxpy.sum(cvxpy.pos(1 - margins))
    return cvxpy.sum(cvxpy.logistic(-margins))


def by_a_solver(kinds, norm=cvxpy.sum_squares, weights=None):
    x, y = rows_of(kinds)
    rho = np.ones(N) if weights is None else weights
    w, total = cvxpy.Variable((N, D)), 0
    for i, kind in enumerate(kinds):
        scores = x[i] @ w[i]
        total += rho[i] * loss_of(kind, scores - y[i], y[i], scores) / ROWS
        total += L2 / 2 * cvxpy.sum_squares(w[i])
        total += ALPHA * norm(w[i] - w[(i + 1) % N])
    made = cvxpy.Problem(cvxpy.Minimize(total))
    made.solve(solver="CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    return w.value, made.value


def slope_by_hand(kinds, w):
    """The gradient of GTVMin in NumPy, node by node."""
    x, y = rows_of(kinds)
    slopes = np.zeros((N, D))
    for i, kind in enumerate(kinds):
        s = x[i] @ w[i]
        each = {
            "linear": 2 * (s - y[i]),
            "huber": 2 * np.clip(s - y[i], -1, 1),
            "logistic": -y[i] / (1 + np.exp(y[i] * s)),
        }[kind]
        slopes[i] = x[i].T @ each / ROWS + L2 * w[i]
        for j in ((i - 1) % N, (i + 1) % N):
            slopes[i] += 2 * ALPHA * (w[i] - w[j])
    return slopes


def test_gtvmin_is_solved_exactly():
    gtv = GTVMin(problem_of(KINDS), ALPHA)
    w = gtv.solve()
    expected, value = by_a_solver(KINDS)
    np.testing.assert_allclose(w, expected, atol=1e-6)
    assert gtv.objective(w) == pytest.approx(value, abs=1e-8)
    assert np.abs(slope_by_hand(KINDS, w)).max() < 1e-8
    elsewhere = np.random.default_rng(5).standard_normal((N, D))
    by_hand = slope_by_hand(KINDS, elsewhere)
    np.testing.assert_allclose(gtv.gradient(elsewhere), by_hand, atol=1e-12)


@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.parametrize("penalty, norm", [("l1", cvxpy.norm1), ("l2", cvxpy.norm2)])
def test_with_norms(penalty, norm):
    gtv = GTVMin(problem_of(KINDS), ALPHA, penalty)
    expected, value = by_a_solver(KINDS, norm)
    w = gtv.solve()
    assert gtv.objective(w) == pytest.approx(value, abs=1e-8)
    np.testing.assert_allclose(w, expected, atol=1e-5)


@pytest.mark.long
def test_losses_with_kinks_beside_smooth_ones_and_agents_with_weights():
    kinds = ["absolute", "linear", "hinge", "logistic", "huber", "linear"]
    weights = np.linspace(0.5, 1.5, N)
    gtv = GTVMin(problem_of(kinds).with_weights(weights), ALPHA)
    expected, value = by_a_solver(kinds, weights=weights)
    w = gtv.solve()
    assert gtv.objective(w) == pytest.approx(value, abs=1e-7)
    np.testing.assert_allclose(w, expected, atol=1e-5)
    relax = tacita.FedRelax(alpha=ALPHA)
    run = tacita.simulate(gtv.problem, relax, 200, record=())
    np.testing.assert_allclose(run.agents, w, atol=1e-7)


def test_one_model_for_losses_with_kinks_and_smooth_ones():
    kinds = ["absolute", "linear", "hinge", "logistic", "huber", "linear"]
    weights = np.linspace(0.5, 1.5, N)
    problem = problem_of(kinds).with_weights(weights)
    x, y = rows_of(kinds)
    w = cvxpy.Variable(D)
    total = N * L2 / 2 * cvxpy.sum_squares(w)
    for i, kind in enumerate(kinds):
        scores = x[i] @ w
        total += weights[i] * loss_of(kind, scores - y[i], y[i], scores) / ROWS
    made = cvxpy.Problem(cvxpy.Minimize(total))
    made.solve(solver="CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    found = problem.solve()
    np.testing.assert_allclose(found, w.value, atol=1e-7)
    assert problem.loss(found) == pytest.approx(made.value, abs=1e-10)
    with pytest.raises(tacita.TacitaError, match="losses with kinks has no h"):
        problem_of(kinds, h=tacita.problem.prox.L1(0.1)).solve()


@pytest.mark.long
def test_nodes_with_kinks_that_nothing_holds():
    """Without an edge, or on a coordinate that is not coupled: their own minimiser."""
    x, y = rows_of(["absolute"] * N)
    x, y, agent = x[:3, :, 0].reshape(-1, 1), y[:3].ravel(), np.repeat([0, 1, 2], ROWS)
    kinds = {0: "linear", 1: "linear", 2: "absolute"}
    pair = Graph.from_edges([0, 1, 2], [(0, 1)])
    nodes = tacita.from_arrays(x, y, agent, model=kinds, graph=pair)
    last = agent == 2
    alone = tacita.from_arrays(x[last], y[last], agent[last], model="absolute")
    found = GTVMin(nodes, ALPHA, penalty="l2").solve()
    np.testing.assert_allclose(found[2], alone.solve(), rtol=1e-8)
    row = Graph.from_edges([0, 1, 2], [(0, 1), (1, 2)])
    nodes = tacita.from_arrays(x, y, agent, model=kinds, graph=row, intercept=True)
    gtv = GTVMin(nodes, ALPHA, penalty=Penalty(kind="l2", coordinates=[False, True]))
    w = gtv.solve()
    for step in np.eye(6).reshape(6, 3, 2) * 1e-5:
        assert min(gtv.objective(w + step), gtv.objective(w - step)) > gtv.objective(w)


def test_kinks_everywhere_under_norms():
    gtv = GTVMin(problem_of(["absolute"] * N), ALPHA, penalty="l2")
    expected, value = by_a_solver(["absolute"] * N, norm=cvxpy.norm2)
    np.testing.assert_allclose(gtv.solve(), expected, atol=1e-4)
    assert gtv.objective(gtv.solve()) == pytest.approx(value, abs=1e-8)


def test_what_nobody_holds_is_refused_in_words():
    free = Penalty(kind="squared", coordinates=[True, True, False])
    for kind in ("huber", "absolute"):
        nodes = problem_of([kind] * N, l2=0.0)
        with pytest.raises(tacita.TacitaError, match="not coupled may be left open"):
            tacita.simulate(nodes, tacita.FedRelax(alpha=ALPHA, penalty=free), 1)


@pytest.mark.long
def test_a_proof_where_the_dual_is_known():
    found = GTVMin(problem_of(["linear", "logistic"] * 3), ALPHA, "l2").certificate()
    assert abs(found.gap) < 1e-8
    with pytest.raises(tacita.TacitaError, match="the dual needs"):
        GTVMin(problem_of(KINDS), ALPHA, "l2").certificate()


ALGORITHMS = {
    "FedGD": (tacita.FedGD(alpha=ALPHA), 1500),
    "FedRelax": (tacita.FedRelax(alpha=ALPHA), 150),
    "PrimalDual": (tacita.PrimalDual(alpha=ALPHA, penalty="squared"), 1500),
}


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_nodes_find_it_by_letters(name):
    problem = problem_of(KINDS)
    algorithm, rounds = ALGORITHMS[name]
    run = tacita.simulate(problem, algorithm, rounds, record=())
    exact = algorithm.goal(problem)
    np.testing.assert_allclose(exact, GTVMin(problem, ALPHA).solve(), atol=1e-9)
    np.testing.assert_allclose(run.agents, exact, atol=1e-8, rtol=0)
    alone = tacita.debug(problem, algorithm, 1, record=())
    both = tacita.simulate(problem, algorithm, 1, record=())
    np.testing.assert_allclose(alone.agents, both.agents, atol=1e-12)


@pytest.mark.long
def test_stochastic_steps_come_near():
    problem = problem_of(KINDS)
    shrinking = tacita.schedule.Polynomial(start=0.05, decay=0.01)
    batches = tacita.Minibatch(size=4)
    steps = tacita.FedSGD(alpha=ALPHA, step_size=shrinking, oracle=batches)
    run = tacita.simulate(problem, steps, 4000, record=())
    exact = GTVMin(problem, ALPHA).solve()
    assert np.abs(run.agents - exact).max() < 0.25 * np.abs(exact).max()


def test_one_kind_by_name_is_the_plain_model():
    plain = problem_of(["huber"] * N)
    assert plain.model == Huber(D) and plain.population.rows.kind is None
    np.testing.assert_allclose(
        GTVMin(plain, ALPHA).solve(), by_a_solver(["huber"] * N)[0], atol=1e-6
    )


def test_one_model_for_all_with_losses_of_their_own():
    """sum_i f_i at one w: the gradient of the sum vanishes."""
    problem = problem_of(KINDS)
    w = problem.solve()
    tied = np.broadcast_to(w, (N, D))
    assert np.abs(slope_by_hand(KINDS, tied).sum(axis=0)).max() < 1e-9
    run = tacita.simulate(problem, tacita.ServerGD(), 3000, record=())
    np.testing.assert_allclose(run.model.params, w, atol=1e-8)


def test_private_gradients_are_clipped_row_by_row():
    problem = problem_of(KINDS, bound=3.0)
    w = np.random.default_rng(2).standard_normal(D)
    oracle = tacita.Clipped(norm=0.5)
    step = tacita.FedGD(alpha=0.0, step_size=1.0, oracle=oracle, need_connected=False)
    run = tacita.simulate(problem, step, 1, start=w, record=())
    x, y, _ = problem.stacked()
    for i, kind in enumerate(KINDS):
        s = x[i] @ w
        each = {
            "linear": 2 * (s - y[i]),
            "huber": 2 * np.clip(s - y[i], -1, 1),
            "logistic": -y[i] / (1 + np.exp(y[i] * s)),
        }[kind]
        rows = each[:, None] * x[i]
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        cut = (rows * np.minimum(1, 0.5 / lengths)).mean(axis=0) + L2 * w
        np.testing.assert_allclose(run.agents[i], w - cut, atol=1e-12)


def test_errors_of_nodes_are_those_of_their_own_losses():
    problem = problem_of(KINDS)
    w = GTVMin(problem, ALPHA).solve()
    x, y = rows_of(KINDS)
    told = tacita.validate(
        problem,
        w,
        (x.reshape(-1, D), y.ravel(), np.repeat(np.arange(N), ROWS)),
    )
    np.testing.assert_allclose(told.train, told.validation, rtol=1e-12)
    square = np.mean((x[0] @ w[0] - y[0]) ** 2)
    assert told.train[0] == pytest.approx(square)
    assert told.train[2] == pytest.approx(
        np.mean(np.log1p(np.exp(-y[2] * (x[2] @ w[2]))))
    )
    assert problem.model_of(1) == Huber(D)


def test_what_does_not_fit_is_refused():
    x, y = np.eye(3), [1.0, -1.0, 7.0]
    make = tacita.from_arrays
    with pytest.raises(tacita.TacitaError, match="label 7 in y of logistic agents"):
        make(x, y, [0, 1, 2], model={0: "linear", 1: "linear", 2: "logistic"})
    with pytest.raises(tacita.TacitaError, match="none for agent 2"):
        make(x, y, [0, 1, 2], model={0: "linear", 1: "huber"})
    with pytest.raises(tacita.TacitaError, match="agent 3, which has no rows"):
        make(x, y, [0, 1, 2], model=dict.fromkeys(range(4), "linear"))
    with pytest.raises(tacita.TacitaError, match="has rows of 2 numbers, those of X"):
        make(x, y, [0, 1, 2], model={0: Linear(3), 1: Linear(2), 2: Linear(3)})
    with pytest.raises(tacita.TacitaError, match="one number of parameters"):
        PerAgent((Linear(3), Linear(2)))
    with pytest.raises(tacita.TacitaError, match="test rows are no agent's"):
        make(
            x,
            y,
            [0, 1, 2],
            model={0: "linear", 1: "huber", 2: "linear"},
            test=(x, y),
        )
    several = PerAgent((Linear(3), Logistic(3)))
    with pytest.raises(tacita.TacitaError, match="models of several kinds"):
        several.predict(np.zeros(3), x)
