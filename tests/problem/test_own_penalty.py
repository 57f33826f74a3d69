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
