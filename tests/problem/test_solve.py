"""The exact optimum: against closed forms, optimality conditions and brute force."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import tacita
from tacita.problem import NonConvex, prox, solve, synthetic


def test_linear_least_squares_in_closed_form():
    problem = synthetic.linear(agents=5, features=4, samples=9, l2=0.3, seed=2)
    x, y, counts = problem.stacked()
    # sum_i (1/m_i)||X_i w - y_i||^2 + N (l2/2) ||w||^2
    left = sum(2 * x[i].T @ x[i] / counts[i] for i in range(5)) + 5 * 0.3 * np.eye(4)
    right = sum(2 * x[i].T @ y[i] / counts[i] for i in range(5))
    np.testing.assert_allclose(
        problem.solve(), np.linalg.solve(left, right), rtol=1e-12
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logistic_gradient_vanishes(dtype):
    problem = synthetic.logistic(agents=7, features=4, samples=15, seed=1, dtype=dtype)
    optimum = problem.solve()
    assert optimum.dtype == np.float64
    tolerance = 1e-12 if dtype == np.float64 else 1e-5
    assert np.linalg.norm(problem.grad(optimum)) < tolerance
    assert problem.solve() is not optimum  # a copy: the problem keeps its own


def test_softmax_gradient_vanishes():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 3)), rng.integers(0, 4, 60)
    problem = tacita.from_arrays(x, y, np.arange(60) % 5, model="softmax", l2=0.1)
    assert np.linalg.norm(problem.grad(problem.solve())) < 1e-12


def test_large_problems_are_solved_without_forming_the_hessian():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(80, 400)), rng.integers(0, 4, 80)
    problem = tacita.from_arrays(x, y, np.arange(80) % 4, model="softmax", l2=0.5)
    assert problem.dim == 1600
    assert np.linalg.norm(problem.grad(problem.solve())) < 1e-10


def test_non_convex_regulariser_gives_a_stationary_minimum():
    problem = synthetic.logistic(
        agents=4, features=3, samples=20, seed=3, regulariser=NonConvex(weight=0.2)
    )
    w = problem.solve()
    assert np.linalg.norm(problem.grad(w)) < 1e-12
    rng = np.random.default_rng(0)
    around = [problem.loss(w + 1e-3 * rng.normal(size=3)) for _ in range(50)]
    assert min(around) > problem.loss(w)


PENALTIES = [
    prox.L1(weight=1.5),
    prox.ElasticNet(l1=1.0, l2=0.5),
    prox.GroupLasso(weight=1.0, groups=(0, 0, 1, 1)),
    prox.Box(low=-0.1, high=0.1),
    prox.L2Ball(radius=0.2),
    prox.Simplex(total=1.0),
]


@pytest.mark.few(3)
@pytest.mark.parametrize("h", PENALTIES, ids=lambda h: type(h).__name__)
def test_composite_optimality(h):
    problem = synthetic.logistic(agents=6, features=4, samples=25, l2=0.05, seed=4, h=h)
    w = problem.solve()
    # 0 in grad F(w) + dh(w)  iff  w = prox_{t h}(w - t grad F(w)) for any t > 0
    with jax.enable_x64(True):
        for step in (0.01, 0.3):
            moved = np.asarray(h.prox(w - step * problem.grad(w), step))
            np.testing.assert_allclose(moved, w, atol=1e-12)
    rng = np.random.default_rng(0)
    for _ in range(50):
        near = np.asarray(h.prox(w + 0.02 * rng.normal(size=4), 1e-12), dtype=float)
        assert problem.loss(near) >= problem.loss(w) - 1e-12


def test_another_problem_of_the_same_shape_compiles_nothing():
    compiled = [solve._value, solve._grad, solve._hessian, solve._accelerated]
    sizes = []
    for seed in (4, 5):
        problem = synthetic.logistic(
            agents=6, features=4, samples=25, l2=0.05, seed=seed, h=prox.L1(1.0)
        )
        problem.solve()
        sizes.append([function._cache_size() for function in compiled])  # pyright: ignore
    assert sizes[0] == sizes[1]


def test_l1_optimum_has_exact_zeros():
    problem = synthetic.logistic(
        agents=6, features=8, samples=25, l2=0.05, seed=4, h=prox.L1(weight=1.0)
    )
    w = problem.solve()
    assert 0 < np.sum(w == 0.0) < 8


def test_no_optimum_is_refused_with_a_remedy():
    x = np.array([[1.0], [2.0], [-1.0], [-2.0]])
    separable = tacita.from_arrays(x, np.sign(x[:, 0]), [0, 0, 1, 1])
    with pytest.raises(tacita.TacitaError, match="add l2"):
        separable.solve()
    network = tacita.from_arrays(
        x, [0, 1, 0, 1], [0, 0, 1, 1], model=tacita.problem.mlp(1, (3,), 2)
    )
    with pytest.raises(tacita.TacitaError, match="not computable"):
        network.solve()


def test_moduli_bound_the_hessian():
    problem = synthetic.logistic(agents=5, features=3, samples=30, l2=0.4, seed=6)
    moduli = problem.moduli
    rng = np.random.default_rng(0)
    x, _, _ = problem.stacked()
    for _ in range(20):
        w = 3 * rng.normal(size=3)
        for i in range(5):
            sigmoid = 1 / (1 + np.exp(-x[i] @ w))
            curvature = (sigmoid * (1 - sigmoid))[:, None]
            values = np.linalg.eigvalsh(x[i].T @ (curvature * x[i]) / 30) + 0.4
            assert values[0] >= moduli.strong_convexity[i] - 1e-12
            assert values[-1] <= moduli.smoothness[i] + 1e-12


def test_moduli_of_linear_models_are_exact_also_when_rows_are_few():
    problem = synthetic.linear(agents=3, features=6, samples=4, l2=0.1)
    x, _, _ = problem.stacked()
    for i in range(3):
        values = np.linalg.eigvalsh(2 * x[i].T @ x[i] / 4 + 0.1 * np.eye(6))
        assert problem.moduli.strong_convexity[i] == pytest.approx(0.1)
        assert problem.moduli.smoothness[i] == pytest.approx(values[-1], rel=1e-12)


def test_squares_that_are_not_finite_are_refused():
    far = tacita.from_arrays(
        [[1e200, 1.0], [1.0, 2.0]], [0.5, 1.0], [0, 1], model="linear"
    )
    for asked in (far.solve, lambda: tacita.simulate(far, tacita.FedAvg(), 1)):
        with pytest.raises(tacita.TacitaError, match="up to 1e.200 have squares that"):
            asked()
