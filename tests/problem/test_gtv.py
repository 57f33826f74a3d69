"""GTVMin: objective, gradient and exact solutions against brute force and a solver."""

from __future__ import annotations

from typing import Any

import cvxpy
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tacita
from tacita.problem import Combined, Penalty, convex_clustering, graph, synthetic
from tacita.problem.model import ridge

MIXED = (
    Penalty(kind="l2", coordinates=[1, 1, 0]),
    Penalty(kind="squared", coordinates=[0, 0, 1], strength=0.5),
)
PENALTIES: dict[str, Any] = {
    "squared": "squared",
    "l2": "l2",
    "l1": "l1",
    "some coordinates": Penalty(kind="l1", coordinates=[True, False, False]),
    "combined": MIXED,
}
each_penalty = pytest.mark.parametrize(
    "penalty", PENALTIES.values(), ids=PENALTIES.keys()
)


def on(network, **options) -> tacita.Problem:
    chosen = dict(features=3, samples=6, noise=0.5, spread=0.5, seed=5) | options
    return synthetic.linear(agents=network.n_nodes, graph=network, **chosen)


@pytest.fixture(scope="module")
def problem() -> tacita.Problem:
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 24)
    random = graph.erdos_renyi(12, edges=24, seed=3).to_networkx()
    edges = list(random.edges())
    return on(graph.Graph.from_edges(12, edges, weights))


def parts_of(gtv: tacita.GTVMin) -> list[Penalty]:
    phi = gtv.penalty
    return list(phi.parts) if isinstance(phi, Combined) else [phi]


def by_hand(gtv: tacita.GTVMin, w: np.ndarray) -> float:
    """The objective, node by node and edge by edge."""
    x, y, counts = gtv.problem.stacked()
    total = sum(
        np.sum((x[i] @ w[i] - y[i])[: counts[i]] ** 2) / counts[i]
        for i in range(len(w))
    )
    norms = {
        "squared": lambda u: u @ u,
        "l2": np.linalg.norm,
        "l1": lambda u: np.abs(u).sum(),
    }
    for i, j, a in gtv.graph.to_networkx().edges(data="weight"):
        for part in parts_of(gtv):
            kept = np.asarray(part.mask(w.shape[1])) * (w[i] - w[j])
            total += gtv.alpha * a * part.strength * norms[part.kind](kept)
    return float(total)


@each_penalty
def test_objective_and_gradient(problem, penalty):
    gtv = tacita.GTVMin(problem, 0.7, penalty)
    w = np.random.default_rng(0).normal(size=(12, 3))
    assert gtv.objective(w) == pytest.approx(by_hand(gtv, w), rel=1e-12)
    slope = gtv.gradient(w)
    for place in [(0, 0), (3, 2), (11, 1)]:
        step = np.zeros_like(w)
        step[place] = 1e-6
        rise = (by_hand(gtv, w + step) - by_hand(gtv, w - step)) / 2e-6
        assert slope[place] == pytest.approx(rise, abs=1e-6)


TIGHT = dict(tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)


def reference(gtv: tacita.GTVMin) -> np.ndarray:
    """The same problem, handed to an interior-point solver."""
    n, d = gtv.problem.n_agents, gtv.problem.dim
    x, y, counts = gtv.problem.stacked()
    w = cvxpy.Variable((n, d))
    labelled = np.flatnonzero(counts)
    total = sum(cvxpy.sum_squares(x[i] @ w[i] - y[i]) / counts[i] for i in labelled)
    norms = {
        "squared": cvxpy.sum_squares,
        "l2": lambda u: cvxpy.norm(u, 2),
        "l1": lambda u: cvxpy.norm(u, 1),
    }
    for i, j, a in gtv.graph.to_networkx().edges(data="weight"):
        for part in parts_of(gtv):
            mask = np.diag(np.asarray(part.mask(d)))
            gap = norms[part.kind](mask @ (w[i] - w[j]))
            total = total + gtv.alpha * a * part.strength * gap
    cvxpy.Problem(cvxpy.Minimize(total)).solve(solver="CLARABEL", **TIGHT)
    assert w.value is not None
    return w.value


@pytest.mark.few(1)
@each_penalty
def test_solution_agrees_with_a_convex_solver(problem, penalty):
    gtv = tacita.GTVMin(problem, 0.2, penalty)
    np.testing.assert_allclose(gtv.solve(), reference(gtv), atol=1e-5)


def test_factorisation_and_conjugate_gradients_agree():
    big = on(graph.random_regular(300, 4, seed=1), samples=2)
    gtv = tacita.GTVMin(big, 0.4)
    exact = gtv.solve(method="factor")
    assert np.abs(gtv.gradient(exact)).max() < 1e-12
    iterated = gtv.solve(method="conjugate_gradients", tolerance=1e-11)
    np.testing.assert_allclose(iterated, exact, atol=1e-9)
    masked = tacita.GTVMin(
        on(graph.ring(8)), 0.4, Penalty(coordinates=[True, False, True])
    )
    np.testing.assert_allclose(
        masked.solve(method="conjugate_gradients"), masked.solve(), atol=1e-8
    )


@pytest.mark.long
def test_logistic_models_by_newtons_method():
    nodes = synthetic.logistic(
        agents=6,
        features=3,
        samples=10,
        l2=0.1,
        heterogeneous=True,
        graph=graph.ring(6),
    )
    gtv = tacita.GTVMin(nodes, 0.3)
    assert np.abs(gtv.gradient(gtv.solve())).max() < 1e-12
    tight = tacita.GTVMin(nodes, 1e6).solve()
    np.testing.assert_allclose(tight, np.tile(nodes.solve(), (6, 1)), atol=1e-5)


def test_planted_clusters_are_recovered_exactly():
    """Three groups of models; edges mostly inside groups; the network lasso."""
    rng = np.random.default_rng(5)
    group = np.repeat([0, 1, 2], 8)
    truth = np.array([[2.0, 0.0], [-2.0, 1.0], [0.0, -3.0]])[group]
    edges = [
        (i, j)
        for i in range(24)
        for j in range(i)
        if rng.random() < (0.7 if group[i] == group[j] else 0.04)
    ]
    x = rng.normal(size=(24, 4, 2))
    y = np.einsum("nmd,nd->nm", x, truth) + 0.1 * rng.normal(size=(24, 4))
    network = graph.Graph.from_edges(24, edges)
    nodes = tacita.from_arrays(
        x.reshape(-1, 2),
        y.ravel(),
        np.repeat(np.arange(24), 4),
        "linear",
        graph=network,
    )
    gtv = tacita.GTVMin(nodes, 0.2, "l2")
    found = gtv.clusters(gtv.solve())
    same = found[:, None] == found
    np.testing.assert_array_equal(same, group[:, None] == group)
    # The squared penalty smooths models, but never makes two of them one.
    smooth = tacita.GTVMin(nodes, 0.2)
    assert len(set(smooth.clusters(smooth.solve()))) == 24


def test_convex_clustering():
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]])
    points = np.repeat(centres, 5, axis=0) + 0.3 * rng.normal(size=(15, 2))
    nodes = convex_clustering(points, graph.complete(15))
    w = rng.normal(size=(15, 2))
    assert nodes.loss(w) == pytest.approx(np.sum((w - points) ** 2))
    gtv = tacita.GTVMin(nodes, 0.4, "l2")
    models = gtv.solve()
    np.testing.assert_allclose(models, reference(gtv), atol=1e-5)
    np.testing.assert_array_equal(gtv.clusters(models), np.repeat([0, 1, 2], 5))


@pytest.mark.parametrize("array", [list, np.array, jnp.array])
def test_coordinates_that_are_not_coupled_are_trained_alone(problem, array):
    free = Penalty(coordinates=array([True, True, False]))
    models = tacita.GTVMin(problem, 1e8, free).solve()
    assert np.ptp(models[:, :2], axis=0).max() < 1e-5
    assert np.ptp(models[:, 2]) > 0.1


@pytest.mark.few(1)
@pytest.mark.parametrize("rows, features", [(2, 3), (5, 3), (9, 10), (12, 10)])
def test_closed_form_step_is_the_minimiser(rows, features):
    """Few rows, many rows, written out or by LAPACK: the gradient vanishes."""
    made = synthetic.linear(agents=1, features=features, samples=rows, l2=0.2)
    rng = np.random.default_rng(0)
    v = rng.normal(size=features)
    for pull in (0.7, rng.uniform(0.1, 2.0, features)):
        with jax.enable_x64(True):
            population = made.population
            local = population.local(jax.tree.map(lambda a: a[0], population.rows))
            w = jax.jit(ridge.toward)(local, jnp.asarray(v), jnp.asarray(pull))
            left = local.grad(w) + pull * (w - v)
        assert np.abs(left).max() < 1e-12


def mostly_unlabelled(nodes: int = 7) -> tacita.Problem:
    """A line of nodes of which only the two ends have rows."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20, 2))
    owner = np.repeat([0, nodes - 1], 10)
    line = graph.Graph.from_edges(nodes, [(i, i + 1) for i in range(nodes - 1)])
    return tacita.from_arrays(
        x,
        x[:, 0] * (1 + owner) + 0.1 * rng.normal(size=20),
        owner,
        "linear",
        graph=line,
        unlabelled=range(1, nodes - 1),
    )


def test_norms_where_few_nodes_have_rows():
    """The step follows the nodes with rows; in between models are not unique."""
    gtv = tacita.GTVMin(mostly_unlabelled(), 0.3, "l2")
    models, expected = gtv.solve(), reference(gtv)
    np.testing.assert_allclose(models[[0, -1]], expected[[0, -1]], atol=1e-5)
    assert gtv.objective(models) == pytest.approx(gtv.objective(expected), rel=1e-9)


@pytest.mark.parametrize("penalty", ["squared", "l2"])
def test_one_node_without_edges(penalty):
    single = on(graph.Graph.from_edges(1, []))
    gtv = tacita.GTVMin(single, 0.5, penalty)
    np.testing.assert_allclose(gtv.solve()[0], single.solve(), atol=1e-12)


@pytest.mark.long
def test_refusals(problem):
    gtv = tacita.GTVMin(problem, 0.5)
    for wrong, match in [
        (lambda: tacita.GTVMin(synthetic.linear(4), 0.5), "needs a graph"),
        (lambda: tacita.GTVMin(problem, -1.0), "alpha"),
        (lambda: tacita.GTVMin(problem, np.ones(12)), "one number"),  # pyright: ignore
        (lambda: tacita.GTVMin(problem, 1.0, ["l2", "l1"]), "several penalties"),
        (lambda: tacita.GTVMin(problem, 1.0, []), "several penalties"),
        (lambda: tacita.GTVMin(problem, 1.0, "l0.5"), "p > 1"),
        (lambda: tacita.GTVMin(problem, 1.0, "lq"), "penalty"),
        (lambda: tacita.GTVMin(problem, 1.0, 7), "penalty"),
        (lambda: Penalty(coordinates=[0.5, 1]), "boolean"),
        (lambda: Penalty(coordinates=[False, False]), "nothing"),
        (lambda: Combined(parts=(MIXED[0], MIXED[0])), "disjoint"),
        (lambda: Combined(parts=(MIXED[0], Penalty())), "coordinates"),
        (lambda: tacita.GTVMin(problem, 1.0, Penalty(coordinates=[1, 0])), "3 entries"),
        (lambda: gtv.objective(np.zeros((3, 3))), "shape"),
        (lambda: gtv.solve(method="magic"), "method"),
        (lambda: convex_clustering(np.zeros((3, 2)), graph.ring(4)), "3 nodes"),
    ]:
        with pytest.raises(tacita.TacitaError, match=match):
            wrong()
    x = np.random.default_rng(0).normal(size=(60, 2))
    signs, owner = np.sign(x[:, 0]), np.arange(60) % 3
    separable = tacita.from_arrays(x, signs, owner, graph=graph.ring(3))
    with pytest.raises(tacita.TacitaError, match="separable"):
        tacita.GTVMin(separable, 0.5).solve()
    # Two rows in all cannot determine three coefficients.
    poor = on(graph.ring(3), samples=1, features=5)
    with pytest.raises(tacita.TacitaError, match="unique"):
        tacita.GTVMin(poor, 0.5).solve()


@pytest.mark.few(2)
@each_penalty
def test_the_gap_proves_the_solution(problem, penalty):
    gtv = tacita.GTVMin(problem, 0.2, penalty)
    found = gtv.certificate()
    assert abs(found.gap) < 1e-8
    # Weak duality: shorter flows and other models are on either side.
    rng = np.random.default_rng(0)
    assert gtv.dual(0.9 * found.flows) < found.dual
    assert gtv.objective(found.models + 0.1 * rng.normal(size=(12, 3))) > found.dual


def test_losses_that_are_not_convex_have_no_proof():
    """Two nodes with two valleys each: the nearer one ended with a gap of zero."""
    rows = np.array([[0.2], [0.2]]), [2.0, 2.2], [0, 1], "linear"
    pair = graph.Graph.from_edges(2, [(0, 1)])
    bent = tacita.problem.NonConvex(weight=2.0)
    two = tacita.GTVMin(tacita.from_arrays(*rows, regulariser=bent, graph=pair), 0.1)
    assert two.objective([[10.4], [10.5]]) < two.objective(two.solve()) - 4
    with pytest.raises(tacita.TacitaError, match="the dual needs convex losses"):
        two.certificate()
    # Rows that bend it upwards everywhere make up for it.
    steep = np.array([[3.0], [2.0]]), [2.0, 2.2], [0, 1], "linear"
    bowl = tacita.from_arrays(*steep, regulariser=bent, graph=pair)
    assert abs(tacita.GTVMin(bowl, 0.1, "l2").certificate().gap) < 1e-8


def test_features_of_any_size_and_any_alpha(problem):
    """No penalty per edge fits them all: it is found on the way."""
    x, y, _ = problem.stacked()
    rows = (x * [0.1, 1.0, 30.0]).reshape(-1, 3), y.ravel()
    whose = np.repeat(np.arange(12), x.shape[1])
    far = tacita.from_arrays(*rows, whose, model="linear", graph=problem.graph)
    for alpha in (1e-3, 1.0, 100.0):
        found = tacita.GTVMin(far, alpha, "l2").certificate()
        assert abs(found.gap) < 1e-8 * (1 + found.primal)


@pytest.mark.parametrize("penalty", ["squared", "l2", "linf"])
def test_the_gap_is_closed_where_nodes_are_flat_in_some_directions(penalty):
    """Nodes with one row, without weight, or without rows."""
    rng = np.random.default_rng(3)
    counts = [1, 7, 12, 1]
    x, y = rng.normal(size=(sum(counts), 3)), rng.normal(size=sum(counts))
    ring = graph.Graph.from_edges(
        5, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)], [0.5, 2.0, 1.0, 0.3, 1.5]
    )
    few = tacita.from_arrays(
        x,
        y,
        np.repeat(np.arange(4), counts),
        model="linear",
        graph=ring,
        unlabelled=[4],
        weights=[1.0, 2.0, 3.0, 0.0, 1.0],
    )
    assert abs(tacita.GTVMin(few, 0.3, penalty).certificate().gap) < 1e-8


@pytest.mark.parametrize("penalty", ["squared", "l2"])
def test_the_gap_is_closed_for_rows_in_single_precision(problem, penalty):
    """The models are found in double precision, and so their values are compared."""
    x, y, _ = problem.stacked()
    whose = np.repeat(np.arange(12), x.shape[1])
    narrow = tacita.from_arrays(
        x.reshape(-1, 3),
        y.ravel(),
        whose,
        model="linear",
        graph=problem.graph,
        dtype="float32",
    )
    found = tacita.GTVMin(narrow, 0.2, penalty).certificate()
    assert abs(found.gap) < 1e-9 * found.primal


@pytest.mark.parametrize("penalty", ["squared", "l2"])
def test_the_gap_is_closed_where_a_path_ends_without_rows(penalty):
    """Nothing runs along its edges: flows are rounding there, and bound nothing."""
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(18, 3)), rng.normal(size=18)
    path = graph.Graph.from_edges(5, [(0, 1), (1, 2), (2, 3), (3, 4)])
    ends = tacita.from_arrays(
        x,
        y,
        np.arange(18) % 3,
        model="linear",
        graph=path,
        unlabelled=[3, 4],
    )
    gtv = tacita.GTVMin(ends, 0.3, penalty)
    found = gtv.certificate()
    assert abs(found.gap) < 1e-8
    # A flow that its end does not pass on is none of rounding.
    lost = np.zeros_like(found.flows)
    lost[-1, 0] = 1e-6
    assert gtv.dual(found.flows + lost) == -np.inf


@pytest.mark.parametrize(
    "algorithm",
    [
        tacita.FedRelax(alpha=0.2),
        tacita.PrimalDual(alpha=0.2, penalty="l2"),
    ],
    ids=["squared", "l2"],
)
def test_runs_stop_by_the_gap(problem, algorithm):
    gtv = tacita.GTVMin(problem, 0.2, algorithm.penalty)
    near = dict(record=["loss", gtv.gap()], stop={"gap": 1e-8})
    run = tacita.simulate(problem, algorithm, 5000, **near)
    assert run.metrics["gap"][-1] <= 1e-8 < run.metrics["gap"][-2]
    left = gtv.objective(run.agents) - gtv.objective(gtv.solve())
    assert run.metrics["gap"][-1] == pytest.approx(left, abs=1e-10)


def test_the_dual_in_closed_form():
    """Convex clustering (67) of two points: f*(s) = <s, a> + ||s||^2 / 4."""
    points = np.array([[0.0, 1.0], [2.0, -1.0]])
    gtv = tacita.GTVMin(
        convex_clustering(points, graph.Graph.from_edges(2, [(0, 1)])), 0.7, "l2"
    )
    flow = np.array([[0.2, -0.3]])
    conjugates = [
        s @ a + s @ s / 4 for s, a in zip((-flow[0], flow[0]), points, strict=True)
    ]
    assert gtv.dual(flow) == pytest.approx(-sum(conjugates), abs=1e-12)
    assert gtv.dual(np.array([[0.7, 0.1]])) == -np.inf
    with pytest.raises(tacita.TacitaError, match="flows"):
        gtv.dual(np.zeros((2, 2)))
    with pytest.raises(tacita.TacitaError, match="flows has 1 NaN"):
        gtv.dual(np.array([[np.nan, 0.0]]))
    own = Penalty(kind="l1", coordinates=[True, False])
    assert tacita.GTVMin(gtv.problem, 0.7, own).dual(flow) == -np.inf


@pytest.mark.long
@pytest.mark.parametrize("penalty", ["l2", "l1"])
def test_logistic_models_with_norms(penalty):
    nodes = synthetic.logistic(
        agents=6, features=2, samples=12, heterogeneous=True, graph=graph.ring(6)
    )
    gtv = tacita.GTVMin(nodes, 0.05, penalty)
    found = gtv.certificate(tolerance=1e-10)
    assert abs(found.gap) < 1e-8
    x, y, counts = nodes.stacked()
    w = cvxpy.Variable((6, 2))
    losses = [
        cvxpy.sum(cvxpy.logistic(cvxpy.multiply(-y[i], x[i] @ w[i]))) for i in range(6)
    ]
    own = sum(one / count for one, count in zip(losses, counts, strict=True))
    weight = float(nodes.population.regulariser.weight)
    order = 2 if penalty == "l2" else 1
    i, j, along = gtv.graph.pairs()
    ends = zip(i, j, along, strict=True)
    gaps = [a * cvxpy.norm(w[p] - w[q], order) for p, q, a in ends]
    total = own + weight / 2 * cvxpy.sum_squares(w) + 0.05 * sum(gaps)
    cvxpy.Problem(cvxpy.Minimize(total)).solve(solver="CLARABEL", **TIGHT)
    np.testing.assert_allclose(found.models, w.value, atol=1e-6)
