"""Penalties beside the usual ones: the largest difference, and a user's own phi."""

from __future__ import annotations

import cvxpy
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tacita
from tacita.problem import GTVMin, Penalty, graph
from tacita.problem.prox import L1, Box, L2Ball

NODES = tacita.problem.synthetic.linear(
    agents=4, features=3, samples=6, spread=1.0, graph=graph.ring(4), dtype=float
)
ALPHA = 0.3


def reference(norm):
    """The minimiser by a convex solver."""
    x, y, counts = NODES.stacked()
    w = cvxpy.Variable((4, 3))
    total = 0
    for i in range(4):
        total += cvxpy.sum_squares(x[i] @ w[i] - y[i]) / counts[i]
        total += ALPHA * norm(w[i] - w[(i + 1) % 4])
    cvxpy.Problem(cvxpy.Minimize(total)).solve(solver="CLARABEL")
    assert w.value is not None
    return w.value


def test_the_largest_difference_agrees_with_a_convex_solver():
    gtv = GTVMin(NODES, ALPHA, "linf")
    found = gtv.certificate()
    np.testing.assert_allclose(found.models, reference(cvxpy.norm_inf), atol=1e-5)
    # The flows, in the dual norm l1, prove it.
    assert abs(found.gap) < 1e-8
    long = np.zeros((4, 3))
    long[0, :2] = 0.2  # 0.28 long in l2, 0.4 in l1: beyond 0.3
    assert gtv.dual(long) == -np.inf


def test_its_prox_and_its_slope():
    phi = Penalty(kind="linf", strength=0.5)
    v = jnp.array([3.0, -1.0, 2.5])
    # The two largest shrink to one size and give t in all: 3 + 2.5 - 2 s = 1.
    assert np.allclose(phi.prox(v, 2.0), [2.25, -1.0, 2.25])
    assert np.allclose(phi.prox(v, 0.0), v) and np.allclose(phi.prox(v, 99.0), 0)
    assert np.allclose(phi.grad(jnp.array([2.0, -2.0, 1.0])), [0.25, -0.25, 0])
    assert np.allclose(phi.grad(jnp.zeros(3)), 0)
    part = Penalty(kind="linf", coordinates=[True, False, True])
    assert np.allclose(jax.jit(part.prox)(v, 1.0), [2.25, -1.0, 2.25])


def test_a_penalty_of_ones_own_agrees_with_a_convex_solver():
    own = GTVMin(NODES, ALPHA, L1(1.0))
    models = own.solve()
    np.testing.assert_allclose(models, reference(cvxpy.norm1), atol=1e-5)
    named = GTVMin(NODES, ALPHA, "l1")
    assert own.objective(models) == pytest.approx(named.objective(models))
    with pytest.raises(tacita.TacitaError, match="the dual needs"):
        own.dual(np.zeros((4, 3)))


def test_what_is_no_penalty_is_refused():
    with pytest.raises(tacita.TacitaError, match="not symmetric"):
        GTVMin(NODES, ALPHA, Box(low=-9.0, high=0.1))
    assert GTVMin(NODES, ALPHA, L2Ball(9.0)).penalty.phi.radius == 9.0
    with pytest.raises(tacita.TacitaError, match="squared"):
        tacita.FedGD(alpha=ALPHA, penalty=L1(1.0))


@pytest.mark.few(1)
@pytest.mark.parametrize("p", [1.5, 3.0])
def test_other_norms_agree_with_a_convex_solver(p):
    gtv = GTVMin(NODES, ALPHA, f"l{p:g}")
    assert gtv.penalty.kind == "lp" and gtv.penalty.p == p
    found = gtv.certificate()
    assert abs(found.gap) < 1e-8  # the proof; power cones have fewer digits
    expected = reference(lambda u: cvxpy.pnorm(u, p))
    np.testing.assert_allclose(found.models, expected, atol=1e-4)
    assert found.primal <= gtv.objective(expected)


@pytest.mark.parametrize("p", [1.2, 2.0, 4.0])
def test_proximal_points_of_norms_are_where_the_slope_vanishes(p):
    phi = Penalty(kind="lp", p=p, strength=0.5)
    with jax.enable_x64(True):
        v = jnp.array([3.0, -1.0, 2.5, 0.0])
        u = phi.prox(v, 2.0)
        # t strength grad ||u||_p + u - v = 0, the gradient written out.
        whole = np.sum(np.abs(u) ** p) ** (1 / p)
        slope = np.sign(u) * (np.abs(u) / whole) ** (p - 1)
        np.testing.assert_allclose(slope + u, v, atol=1e-10)
        np.testing.assert_allclose(phi.grad(u), 0.5 * slope, atol=1e-12)
        dual = np.linalg.norm(v, p / (p - 1))
        assert np.all(phi.prox(v, 2 * dual * 1.001) == 0)
        assert np.any(phi.prox(v, 2 * dual * 0.999) != 0)
        assert np.array_equal(phi.prox(v, 0.0), v) or np.allclose(phi.prox(v, 0.0), v)
        assert np.all(np.isfinite(phi.prox(jnp.zeros(4), 1.0)))


def rounded(u):
    """Squares near zero, lengths far off: sum_k log cosh u_k."""
    return jnp.sum(jnp.logaddexp(u, -u) - jnp.log(2.0))


@pytest.mark.long
def test_a_smooth_function_needs_no_prox():
    gtv = GTVMin(NODES, ALPHA, rounded)
    models = gtv.solve()
    assert np.abs(gtv.gradient(models)).max() < 1e-8
    x, y, counts = NODES.stacked()
    by_hand = np.stack(
        [2 * x[i].T @ (x[i] @ models[i] - y[i]) / counts[i] for i in range(4)]
    )
    for i in range(4):
        for j in ((i - 1) % 4, (i + 1) % 4):
            by_hand[i] += ALPHA * np.tanh(models[i] - models[j])
    assert np.abs(by_hand).max() < 1e-8
    run = tacita.simulate(
        NODES, tacita.PrimalDual(alpha=ALPHA, penalty=rounded), 2000, record=()
    )
    np.testing.assert_allclose(run.agents, models, atol=1e-8)


def test_functions_with_kinks_need_one():
    with pytest.raises(tacita.TacitaError, match="give it a prox"):
        GTVMin(NODES, ALPHA, lambda u: jnp.sum(jnp.abs(u)))
    with pytest.raises(tacita.TacitaError, match="expected p > 1"):
        Penalty(kind="lp", p=0.5)
    with pytest.raises(tacita.TacitaError, match="squared"):
        tacita.FedGD(alpha=ALPHA, penalty="l3")
