"""GTVMin with a function h of every node's model: exact, and by letters."""

from __future__ import annotations

import cvxpy
import numpy as np
import pytest

import tacita
from tacita.problem import GTVMin, Penalty, graph, synthetic
from tacita.problem.prox import L1, Box, L2Ball

N, D, ALPHA = 5, 3, 0.3
NODES = synthetic.linear(
    agents=N, features=D, samples=6, spread=1.0, graph=graph.ring(N), dtype=float
)
OWN_WEIGHTS = np.linspace(0.0, 0.8, N)
INF = float("inf")
FUNCTIONS = {
    "l1": L1(0.4),
    "an l1 of its own": L1(OWN_WEIGHTS),
    "not negative": Box(low=0.0, high=INF),
    "box": Box(low=-0.2, high=0.3),
    "ball": L2Ball(0.5),
}
NORMS = {
    "squared": cvxpy.sum_squares,
    "l2": cvxpy.norm2,
    "first": lambda u: cvxpy.abs(u[0]),
}
PENALTIES = {
    "squared": "squared",
    "l2": "l2",
    "first": Penalty(kind="l1", coordinates=[True, False, False]),
}
CASES = [
    *((name, "squared") for name in FUNCTIONS),
    ("l1", "l2"),
    ("box", "first"),
]


def by_a_solver(name, penalty):
    """The minimiser, and its value, by an interior-point method."""
    x, y, counts = NODES.stacked()
    w, total, within = cvxpy.Variable((N, D)), 0, []
    for i in range(N):
        total += cvxpy.sum_squares(x[i] @ w[i] - y[i]) / counts[i]
        total += ALPHA * NORMS[penalty](w[i] - w[(i + 1) % N])
    if "l1" in name:
        own = OWN_WEIGHTS if "own" in name else np.full(N, 0.4)
        total += own @ cvxpy.norm1(w, axis=1)
    elif name == "ball":
        within = [cvxpy.norm2(w, axis=1) <= 0.5]
    else:
        box = FUNCTIONS[name]
        within = [w >= box.low] + ([w <= box.high] if box.high < INF else [])
    made = cvxpy.Problem(cvxpy.Minimize(total), within)
    made.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return w.value, made.value


@pytest.mark.few(3)
@pytest.mark.parametrize("name, penalty", CASES)
def test_gtvmin_is_solved_exactly(name, penalty):
    gtv = GTVMin(NODES, ALPHA, PENALTIES[penalty], h=FUNCTIONS[name])
    w = gtv.solve()
    expected, value = by_a_solver(name, penalty)
    np.testing.assert_allclose(w, expected, atol=1e-6)
    # Finite: constraints are kept, not nearly kept.
    assert gtv.objective(w) == pytest.approx(value, abs=1e-8)


def stationary(w, h, step=0.1):
    """How far a proximal gradient step moves w, in NumPy."""
    x, y, counts = NODES.stacked()
    slopes = np.zeros((N, D))
    for i in range(N):
        slopes[i] = 2 * x[i].T @ (x[i] @ w[i] - y[i]) / counts[i]
        for j in ((i - 1) % N, (i + 1) % N):
            slopes[i] += 2 * ALPHA * (w[i] - w[j])
    forward = w - step * slopes
    return np.abs(w - h(forward, step)).max()


def test_stationary_to_eight_digits():
    boxed = GTVMin(NODES, ALPHA, h=FUNCTIONS["box"]).solve()
    assert stationary(boxed, lambda v, t: np.clip(v, -0.2, 0.3)) < 1e-8
    assert np.any(boxed == 0.3) and np.any(np.abs(boxed) < 0.2)
    sparse = GTVMin(NODES, ALPHA, h=FUNCTIONS["l1"]).solve()

    def shrink(v, t):
        return np.sign(v) * np.maximum(np.abs(v) - 0.4 * t, 0)

    assert stationary(sparse, shrink) < 1e-8
    assert np.any(sparse == 0) and np.any(sparse != 0)


def algorithms(h):
    return {
        "FedGD": (tacita.FedGD(alpha=ALPHA, h=h), 1500),
        "FedRelax": (tacita.FedRelax(alpha=ALPHA, h=h), 100),
        "PrimalDual": (
            tacita.PrimalDual(alpha=ALPHA, penalty="squared", h=h),
            3000,
        ),
    }


@pytest.mark.few(3)
@pytest.mark.parametrize("name", ["FedGD", "FedRelax", "PrimalDual"])
@pytest.mark.parametrize("function", ["an l1 of its own", "ball"])
def test_nodes_find_it_by_letters(name, function):
    algorithm, rounds = algorithms(FUNCTIONS[function])[name]
    run = tacita.simulate(NODES, algorithm, rounds, record=())
    np.testing.assert_allclose(run.agents, algorithm.goal(NODES), atol=1e-8)


def test_stochastic_steps_keep_the_constraint():
    h = FUNCTIONS["not negative"]
    run = tacita.simulate(
        NODES, tacita.FedSGD(alpha=ALPHA, h=h, step_size=0.05), 30, record=()
    )
    assert run.agents.min() >= 0


@pytest.mark.long
def test_logistic_nodes_with_a_ball():
    problem = synthetic.logistic(
        agents=4, features=2, samples=10, graph=graph.ring(4), l2=0.0
    )
    h = L2Ball(0.6)
    exact = GTVMin(problem, 0.1, h=h).solve()
    lengths = np.linalg.norm(exact, axis=1)
    assert lengths.max() == pytest.approx(0.6, abs=1e-9)
    run = tacita.simulate(problem, tacita.FedRelax(alpha=0.1, h=h), 200, record=())
    np.testing.assert_allclose(run.agents, exact, atol=1e-8)


def test_the_strength_is_tuned_with_it():
    gtv = GTVMin(NODES, ALPHA, h=FUNCTIONS["box"])
    chosen = tacita.tune(gtv, alphas=[0.1, 1.0], repeats=1)
    assert chosen.gtv.h is gtv.h


def test_what_does_not_fit_is_refused():
    with pytest.raises(tacita.TacitaError, match="5, one per node"):
        GTVMin(NODES, ALPHA, h=L1(np.ones(D)))
    with pytest.raises(tacita.TacitaError, match="expected h"):
        GTVMin(NODES, ALPHA, h=3.0)
    with pytest.raises(tacita.TacitaError, match="expected h"):
        tacita.FedGD(alpha=ALPHA, h=0.1)
    solver = tacita.solvers.GradientDescent(local_steps=2)
    with pytest.raises(tacita.TacitaError, match="leave solver= out"):
        tacita.simulate(
            NODES, tacita.FedRelax(alpha=ALPHA, h=L1(0.1), solver=solver), 1
        )
    with pytest.raises(tacita.TacitaError, match="h at nodes"):
        GTVMin(NODES, ALPHA, h=L1(0.1)).dual(np.zeros((N, D)))
    sparse = synthetic.linear(agents=N, features=D, graph=graph.ring(N), h=L1(0.1))
    with pytest.raises(tacita.TacitaError, match="added once"):
        GTVMin(sparse, ALPHA)
    with pytest.raises(tacita.TacitaError, match="FedGD"):
        tacita.simulate(sparse, tacita.FedGD(alpha=ALPHA), 1)


def test_a_run_file_holds_it():
    algorithm = tacita.FedGD(alpha=ALPHA, h=L1(0.1))
    table = tacita.job.table_of(algorithm)
    assert table["h"] == {"name": "L1", "weight": 0.1}
