"""Proximal operators against brute force, and the laws every one of them obeys."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

from tacita.check import TacitaError
from tacita.problem.prox import (
    L1,
    Box,
    ElasticNet,
    GroupLasso,
    L2Ball,
    Simplex,
    Sum,
)

GROUPS = (0, 1, 0, 2, 1, 1)
D = len(GROUPS)
LOW = np.array([-0.5, -1.0, 0.0, -np.inf, 0.2, -0.1])

FUNCTIONS = {
    "l1": L1(0.7),
    "l1 per coordinate": L1(np.linspace(0.0, 1.0, D)),
    "elastic net": ElasticNet(l1=0.4, l2=1.5),
    "group lasso": GroupLasso(0.8, GROUPS),
    "group lasso, weight per group": GroupLasso([0.1, 0.5, 2.0], GROUPS),
    "box": Box(-0.3, 0.6),
    "box per coordinate": Box(LOW, np.inf),
    "ball": L2Ball(0.9),
    "simplex": Simplex(),
    "simplex of 2.5": Simplex(total=2.5),
}
PROJECTIONS = ["box", "box per coordinate", "ball", "simplex", "simplex of 2.5"]
NORMS = ["l1", "l1 per coordinate", "group lasso", "group lasso, weight per group"]

everyone = pytest.mark.parametrize("name", FUNCTIONS)


@pytest.fixture(autouse=True)
def _float64():
    with jax.enable_x64(True):
        yield


def points(n, seed=0, scale=1.5):
    return scale * np.random.default_rng(seed).standard_normal((n, D))


def smooth_program(name):
    """The same functions as smooth programs in (x, s), where s bounds |x|.

    Returns the cost of s, the quadratic weight on x, and constraints on (x, s) that
    must be non-negative or zero.
    """
    finite = np.isfinite(LOW)
    absolute = ("ineq", lambda z: np.append(z[D:] - z[:D], z[D:] + z[:D]))
    none = np.zeros(0)
    return {
        "zero": (none, 0.0, []),
        "l1": (np.full(D, 0.7), 0.0, [absolute]),
        "l1 per coordinate": (np.linspace(0.0, 1.0, D), 0.0, [absolute]),
        "elastic net": (np.full(D, 0.4), 1.5, [absolute]),
        "box": (none, 0.0, [("ineq", lambda z: np.append(z + 0.3, 0.6 - z))]),
        "box per coordinate": (none, 0.0, [("ineq", lambda z: (z - LOW)[finite])]),
        "ball": (none, 0.0, [("ineq", lambda z: 0.81 - z @ z)]),
        "simplex": (
            none,
            0.0,
            [("ineq", lambda z: z), ("eq", lambda z: z.sum() - 1)],
        ),
        "simplex of 2.5": (
            none,
            0.0,
            [("ineq", lambda z: z), ("eq", lambda z: z.sum() - 2.5)],
        ),
    }[name]


def solve(objective, start, constraints):
    return minimize(
        objective,
        start,
        method="SLSQP",
        constraints=[{"type": kind, "fun": fun} for kind, fun in constraints],
        options={"ftol": 1e-14, "maxiter": 2000},
    )


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if "group" not in n])
@pytest.mark.parametrize("t", [0.1, 2.0])
def test_prox_solves_its_smooth_program(name, t):
    h = FUNCTIONS[name]
    cost, curvature, constraints = smooth_program(name)
    for v in points(3):

        def objective(z, v=v):
            x, s = z[:D], z[D:]
            return cost @ s + curvature / 2 * x @ x + np.sum((x - v) ** 2) / (2 * t)

        start = np.concatenate([np.full(D, 0.3), np.full(len(cost), 2.0)])
        solved = solve(objective, start, constraints)
        found = np.asarray(h.prox(v, t))
        value = float(h(found)) + np.sum((found - v) ** 2) / (2 * t)
        assert value == pytest.approx(solved.fun, rel=1e-7, abs=1e-7)
        np.testing.assert_allclose(found, solved.x[:D], atol=1e-4)


@pytest.mark.parametrize("weights", [(0.8, 0.8, 0.8), (0.1, 0.5, 2.0)])
@pytest.mark.parametrize("t", [0.1, 2.0])
def test_group_lasso_solves_its_dual_program(weights, t):
    """Minimise ||v - t u||^2 / (2 t) with ||u_g|| <= weight_g; then x = v - t u."""
    h = GroupLasso(np.array(weights), GROUPS)
    ball = ("ineq", lambda u: np.square(weights) - np.bincount(GROUPS, u**2))
    for v in points(3):
        solved = solve(
            lambda u, v=v: np.sum((v - t * u) ** 2) / (2 * t), np.zeros(D), [ball]
        )
        found = np.asarray(h.prox(v, t))
        np.testing.assert_allclose(found, v - t * solved.x, atol=1e-4)
        value = float(h(found)) + np.sum((found - v) ** 2) / (2 * t)
        assert value == pytest.approx(v @ v / (2 * t) - solved.fun, rel=1e-7)


@pytest.mark.few(3)
@everyone
def test_no_point_nearby_or_far_is_better(name):
    h, t = FUNCTIONS[name], 0.7
    rng = np.random.default_rng(1)
    objective = jax.vmap(lambda x, v: h(x) + jnp.sum((x - v) ** 2) / (2 * t), (0, None))
    for v in points(3, seed=2):
        best = h.prox(v, t)
        value = float(objective(best[None], v)[0])
        assert np.isfinite(value)
        scales = np.repeat([1e-4, 1e-2, 1.0], 200)[:, None]
        trials = np.asarray(best) + scales * rng.standard_normal((600, D))
        # Points made feasible, so that constraints are tried inside their sets too.
        feasible = jax.vmap(lambda x: h.prox(x, 1e-3))(trials)
        for candidates in (trials, feasible):
            assert float(jnp.min(objective(candidates, v))) >= value - 1e-12


@pytest.mark.parametrize("name", ["l1", "elastic net", "group lasso"])
def test_prox_beats_a_derivative_free_search(name):
    h, v, t = FUNCTIONS[name], points(1, seed=3)[0], 0.5

    def objective(x):
        return float(h(x)) + float(np.sum((x - v) ** 2)) / (2 * t)

    searched = minimize(objective, v, method="Powell", options={"xtol": 1e-9})
    assert objective(np.asarray(h.prox(v, t))) <= searched.fun + 1e-9


@everyone
def test_firmly_non_expansive(name):
    """||Pu - Pv||^2 <= <Pu - Pv, u - v>."""
    prox = jax.vmap(lambda v: FUNCTIONS[name].prox(v, 0.8))
    u, v = points(200, seed=4), points(200, seed=5)
    moved = prox(u) - prox(v)
    gap = jnp.sum(moved * (u - v), axis=1) - jnp.sum(moved**2, axis=1)
    assert float(gap.min()) >= -1e-12


@pytest.mark.parametrize("name", NORMS)
def test_moreau_identity(name):
    """v = prox_{t h}(v) + t projection(v / t), onto the unit ball of the dual norm.

    The dual balls: boxes for weighted l1, a ball per group for the group lasso.
    """
    h, t = FUNCTIONS[name], 0.6
    for v in points(5, seed=6):
        rest = (v - np.asarray(h.prox(v, t))) / t
        scaled = v / t
        if isinstance(h, L1):
            expected = np.clip(scaled, -np.asarray(h.weight), np.asarray(h.weight))
        else:
            expected = scaled.copy()
            for g, weight in enumerate(np.broadcast_to(h.weight, 3)):
                members = np.array(GROUPS) == g
                ball = L2Ball(weight)
                expected[members] = ball.prox(scaled[members], 1.0)
        np.testing.assert_allclose(rest, expected, atol=1e-12)


@pytest.mark.parametrize("name", PROJECTIONS)
def test_projections_are_idempotent_feasible_and_free_of_t(name):
    h = FUNCTIONS[name]
    for v in points(10, seed=7, scale=4.0):
        once = h.prox(v, 0.1)
        assert float(h(once)) == 0.0
        np.testing.assert_allclose(h.prox(once, 3.0), once, atol=1e-12)
        np.testing.assert_array_equal(h.prox(v, 100.0), once)
        assert float(h(once + 1e-3 * (v - once))) == np.inf


def test_exact_zeros():
    v = np.array([0.69, -0.69, 5.0, 0.0, -0.7, 0.1])
    shrunk = np.asarray(L1(0.7).prox(v, 1.0))
    assert np.flatnonzero(shrunk).tolist() == [2]
    assert not np.signbit(shrunk[shrunk == 0]).any()
    # Norms of the groups: 3.5, 2.0 (shrunk to nothing at weight 2), 0.
    v = np.array([2.1, 1.2, 2.8, 0.0, 1.6, 0.0])
    shrunk = np.asarray(GroupLasso(2.0, GROUPS).prox(v, 1.0))
    assert np.flatnonzero(shrunk).tolist() == [0, 2]
    np.testing.assert_allclose(shrunk[[0, 2]], (1 - 2 / 3.5) * v[[0, 2]])


def test_values_by_hand():
    w = np.array([3.0, -4.0])
    assert float(L1(0.5)(w)) == 3.5
    assert float(ElasticNet(0.5, 2.0)(w)) == 3.5 + 25.0
    assert float(GroupLasso(2.0, [0, 0])(w)) == 10.0
    assert float(GroupLasso(2.0, [0, 1])(w)) == 14.0
    assert float(Box(-4, 3)(w)) == 0.0
    assert float(Box(-4, 2.9)(w)) == np.inf
    assert float(L2Ball(5.0)(w)) == 0.0
    assert float(L2Ball(4.99)(w)) == np.inf
    assert float(Simplex()(np.array([0.25, 0.75]))) == 0.0
    assert float(Simplex()(np.array([0.25, 0.8]))) == np.inf
    assert float(Simplex()(np.array([-0.25, 1.25]))) == np.inf


@everyone
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtype_is_kept(name, dtype):
    h, v = FUNCTIONS[name], points(1)[0].astype(dtype)
    for t in (0.5, np.float64(0.5), jnp.asarray(0.5)):
        assert h.prox(v, t).dtype == dtype
    assert h(v).dtype == dtype
    assert jax.jit(lambda h, v: h.prox(v, 0.5))(h, v).dtype == dtype


def test_float32_simplex_of_many_large_coordinates_stays_on_the_simplex():
    v = (1e4 + np.random.default_rng(0).standard_normal(100_000)).astype(np.float32)
    projected = Simplex().prox(v, 1.0)
    assert projected.dtype == np.float32
    assert float(Simplex()(projected)) == 0.0


@everyone
def test_jit_and_vmap_agree_with_one_at_a_time(name):
    h, vs = FUNCTIONS[name], points(4, seed=8)
    each = np.stack([h.prox(v, 0.3) for v in vs])
    batched = jax.jit(jax.vmap(lambda h, v: h.prox(v, 0.3), (None, 0)))(h, vs)
    np.testing.assert_allclose(batched, each, rtol=1e-12, atol=1e-14)


def test_weights_are_leaves_and_sweep_by_vmap():
    traces = []

    @jax.jit
    def prox(h, v):
        traces.append(h)
        return h.prox(v, 1.0)

    v = points(1)[0]
    for weight in (0.1, np.float64(0.2), 3):
        np.testing.assert_allclose(prox(L1(weight), v), L1(weight).prox(v, 1.0))
        prox(GroupLasso(weight, GROUPS), v)
        prox(GroupLasso(weight, np.array(GROUPS)), v)
    assert len(traces) == 2
    weights = jnp.array([0.0, 0.5, 1.0])
    swept = jax.vmap(lambda weight: L1(weight).prox(v, 1.0))(weights)
    np.testing.assert_allclose(swept[1], L1(0.5).prox(v, 1.0))


@everyone
def test_derivatives_are_finite_also_at_zero(name):
    h = FUNCTIONS[name]
    for v in (np.zeros(D), points(1)[0]):
        slope = jax.jacobian(lambda v: h.prox(v, 0.5))(v)
        assert np.isfinite(slope).all()
        # The derivative of a proximal operator is symmetric with eigenvalues in [0, 1].
        np.testing.assert_allclose(slope, slope.T, atol=1e-12)
        values = np.linalg.eigvalsh(slope)
        assert values.min() >= -1e-12 and values.max() <= 1 + 1e-12


@pytest.mark.parametrize("t", [0.1, 2.0])
def test_a_sum_finds_the_proximal_point_of_all_its_parts(t):
    # By coordinate: shrink, then clip.
    both = Sum(parts=(L1(0.7), Box(-0.3, 0.6)))
    for v in points(5):
        np.testing.assert_allclose(
            both.prox(v, t), np.clip(L1(0.7).prox(v, t), -0.3, 0.6), atol=1e-14
        )
    # In the ball and not below zero: zero first, then shrink. A weight on both norms.
    corner = Sum(parts=(L2Ball(0.9), Box(0.0, np.inf)), steps=300)
    norms = Sum(parts=[L1(0.4), GroupLasso(0.8, GROUPS)], steps=300)
    for v in points(5):
        np.testing.assert_allclose(
            corner.prox(v, t), L2Ball(0.9).prox(np.maximum(v, 0), t), atol=1e-9
        )
        np.testing.assert_allclose(
            norms.prox(v, t),
            GroupLasso(0.8, GROUPS).prox(L1(0.4).prox(v, t), t),
            atol=1e-9,
        )
    assert float(both(np.full(D, 0.5))) == pytest.approx(0.35 * D)
    assert float(both(np.full(D, 0.7))) == np.inf


def test_a_sum_of_three_is_that_of_a_solver_and_nearer_with_more_steps():
    cvxpy = pytest.importorskip("cvxpy")
    parts = (L1(0.3), L2Ball(0.9), Simplex())
    for v in points(3):
        x = cvxpy.Variable(D)
        cost = 0.3 * cvxpy.norm1(x) + cvxpy.sum_squares(x - v) / 2
        inside = [cvxpy.norm(x) <= 0.9, x >= 0, cvxpy.sum(x) == 1]
        cvxpy.Problem(cvxpy.Minimize(cost), inside).solve(solver="CLARABEL")
        apart = [
            np.linalg.norm(Sum(parts=parts, steps=steps).prox(v, 1.0) - x.value)
            for steps in (1, 10, 1000)
        ]
        assert apart[2] < 1e-6 and apart[2] <= apart[1] <= apart[0]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Sum(parts=()), "expected parts a list of functions"),
        (lambda: Sum(parts=L1(1.0)), "expected parts a list of functions"),
        (lambda: Sum(parts=[None]), "expected parts a list of functions"),
        (lambda: Sum(parts=[L1(0.1), 3]), "expected parts a list of functions"),
        (lambda: Sum(parts=[L1]), "expected parts a list of functions"),
        (lambda: Sum(parts=[L1(1.0)], steps=0), "steps"),
        (lambda: L1(-0.1), "weight >= 0, got weight=-0.1"),
        (lambda: L1(np.nan), "weight >= 0"),
        (lambda: L1("much"), "weight >= 0, got weight='much'"),
        (lambda: L1(True), "weight >= 0, got weight=True"),
        (lambda: L1([0.5, -0.5]), "weight >= 0"),
        (lambda: ElasticNet(l1=-1.0, l2=0.0), "l1 >= 0"),
        (lambda: ElasticNet(l1=0.0, l2=-1.0), "l2 >= 0"),
        (lambda: GroupLasso(-1.0, (0, 1)), "weight >= 0"),
        (lambda: GroupLasso(1.0, (0, -1)), "groups >= 0, got groups=-1"),
        (lambda: GroupLasso(1.0, (0.0, 1.0)), "one whole number per coordinate"),
        (lambda: GroupLasso(1.0, ()), "one whole number per coordinate"),
        (lambda: GroupLasso(1.0, [[0, 1]]), "one whole number per coordinate"),
        (lambda: GroupLasso(1.0, (0, 1)).prox(np.ones(3), 1.0), r"shape \(2,\)"),
        (lambda: Box(1.0, 0.0), "low <= high, got low=1.0, high=0.0"),
        (lambda: Box(np.nan, 1.0), "low <= high"),
        (lambda: Box("a", 1.0), "low numeric"),
        (lambda: Box([0.0, 0.0], [1.0, -1.0]), "low <= high"),
        (lambda: L2Ball(0.0), "radius > 0, got radius=0.0"),
        (lambda: Simplex(total=-1), "total > 0, got total=-1.0"),
        (lambda: L1(1.0).prox(np.ones(3), -1.0), "t >= 0, got t=-1.0"),
    ],
)
def test_refusals_are_one_line(make, words):
    with pytest.raises(TacitaError, match=words) as refusal:
        make()
    assert "\n" not in str(refusal.value)
