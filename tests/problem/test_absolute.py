"""The absolute loss: exact answers, alone and on graphs, that bear wild labels."""

from __future__ import annotations

import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import tacita
from tacita.privacy.blind import looks_at_rows
from tacita.problem import Absolute, GTVMin, Penalty, least_absolute
from tacita.problem.gtv.edges import edge_rho
from tacita.problem.model.regulariser import NonConvex
from tacita.tuning.alpha import usual_alphas

ROBUST = json.loads(
    (Path(__file__).parent.parent / "aggregation/vectors.json").read_text()
)["robust_loss"]


@pytest.fixture(scope="module")
def nodes() -> tacita.Problem:
    """Five nodes on a ring, one label in six wild."""
    random = np.random.default_rng(0)
    x = random.standard_normal((60, 2))
    y = x @ [1.0, -1.0] + 0.1 * random.standard_normal(60)
    y[::6] += 50.0
    agent = np.arange(60) % 5
    ring = tacita.problem.graph.ring(5)
    return tacita.from_arrays(x, y, agent, model=Absolute(2), graph=ring)


def test_one_feature_is_a_weighted_median():
    x, y = np.array(ROBUST["x"])[:, None], np.array(ROBUST["y"])
    for more in (0.0, 0.5):
        y[-1] += more
        problem = tacita.from_arrays(x, y, np.zeros(5, int), model=Absolute(1))
        assert problem.solve()[0] == pytest.approx(ROBUST["least_absolute_slope"])


def test_equal_rows_may_weigh_differently():
    """Two labels at the median: what holds it is no half of each."""
    y, owner = [0.0, 0.0, -1.0, 1.0, 5.0], ["a", "b", "b", "b", "b"]
    problem = tacita.from_arrays(
        np.ones((5, 1)), y, owner, model="absolute", weights={"a": 0.05, "b": 4.0}
    )
    np.testing.assert_allclose(problem.solve(), 0, atol=1e-12)


def test_nodes_may_agree_around_a_cycle():
    """Differences along its edges then depend on each other."""
    random = np.random.default_rng(2)
    x, agent = random.standard_normal((30, 3)), np.arange(30) % 5
    y = x @ [1.0, -2.0, 0.5] + 2 * random.standard_normal(30)
    edges = {(0, 1): 1.0, (1, 2): 2.5, (2, 0): 0.3, (2, 3): 0.4, (3, 4): 0.2}
    graph = tacita.problem.Graph.from_edges(range(5), list(edges), list(edges.values()))
    chord = tacita.from_arrays(x, y, agent, model="absolute", graph=graph)
    gtv = GTVMin(chord, 0.3, "l1")
    rule = tacita.PrimalDual(alpha=0.3, penalty="l1", rho=1.0)
    run = tacita.simulate(chord, rule, rounds=4000, record_every=4000)
    np.testing.assert_allclose(gtv.solve(), run.agents, atol=1e-9)
    assert gtv.objective(gtv.solve()) <= gtv.objective(run.agents) + 1e-12


def test_the_answer_has_a_subgradient_of_zero(nodes):
    """Moving any way from the answer makes the loss no smaller."""
    w = nodes.solve()
    here = nodes.loss(w)
    np.testing.assert_allclose(w, [1, -1], atol=0.1)
    for step in np.random.default_rng(1).standard_normal((40, 2)):
        assert nodes.loss(w + 1e-4 * step) >= here - 1e-12


PENALTIES = [
    "squared",
    "l1",
    "l2",
    Penalty(kind="squared", coordinates=[True, False], strength=2.0),
]


@pytest.mark.parametrize("penalty", PENALTIES, ids=["squared", "l1", "l2", "some"])
def test_gtvmin_cannot_be_bettered(nodes, penalty):
    gtv = GTVMin(nodes, alpha=0.05, penalty=penalty)
    w = gtv.solve()
    here = gtv.objective(w)
    for step in np.random.default_rng(1).standard_normal((40, 5, 2)):
        assert gtv.objective(w + 1e-4 * step) >= here - 1e-11


def test_fed_relax_finds_the_same_models(nodes):
    exact = GTVMin(nodes, alpha=0.05).solve()
    run = tacita.simulate(nodes, tacita.FedRelax(alpha=0.05), 80, record=())
    np.testing.assert_allclose(run.agents, exact, atol=1e-6)


def test_with_a_public_bound_theory_looks_at_no_row(nodes):
    """The smoothness of the loss was asked for, and refused."""
    bounded = tacita.trees.replace(nodes, bound=9.0)
    by_theory = tacita.PrimalDual(alpha=0.3)
    assert by_theory.resolve(bounded).rho == pytest.approx(9.0**2 / 2)
    assert not looks_at_rows(by_theory, bounded)
    assert looks_at_rows(by_theory, nodes)


@pytest.mark.long
def test_a_public_bound_longer_than_all_rows_changes_no_answer(nodes):
    bounded = tacita.trees.replace(nodes, bound=9.0)
    found, exact = (GTVMin(one, 0.3, "l2").solve() for one in (bounded, nodes))
    np.testing.assert_allclose(found, exact, atol=1e-8)


def test_usual_strengths_of_the_coupling_are_known_for_kinks_too(nodes):
    """In units of what stands for the curvature of the loss."""
    assert usual_alphas(GTVMin(nodes, 1.0))[6] == pytest.approx(edge_rho(nodes))


def test_a_step_towards_a_point_is_exact(nodes):
    local = nodes.population.local(
        tacita.trees.tree_rows(nodes.population.rows, jnp.asarray(0))
    )
    v, pull = np.array([0.3, 0.2]), 0.7

    def value(w):
        return float(local.loss(jnp.asarray(w))) + pull / 2 * np.sum((w - v) ** 2)

    with tacita.trees.double_precision():
        found = np.asarray(least_absolute.toward(local, jnp.asarray(v), pull))
        for step in np.random.default_rng(2).standard_normal((40, 2)):
            assert value(found + 1e-4 * step) >= value(found) - 1e-12


def test_weights_of_agents_count(nodes):
    """One agent that weighs next to everything: its own answer."""
    heavy = nodes.with_weights(np.array([1.0, 1e-9, 1e-9, 1e-9, 1e-9]))
    x, y, counts = nodes.stacked()
    alone = tacita.from_arrays(x[0], y[0], np.zeros(counts[0]), model=Absolute(2))
    np.testing.assert_allclose(heavy.solve(), alone.solve(), atol=1e-6)
    relaxed = tacita.simulate(heavy, tacita.FedRelax(alpha=0.05), 150, record=())
    exact = GTVMin(heavy, alpha=0.05).solve()
    np.testing.assert_allclose(relaxed.agents, exact, atol=1e-5)


def test_fed_plt_reaches_the_optimum_by_exact_answers(nodes):
    x, y, counts = nodes.stacked()
    held = np.repeat(np.arange(5), counts)
    made = tacita.from_arrays(x.reshape(60, 2), y.ravel(), held, model="absolute", l2=1)
    exact = tacita.FedPLT(rho=1.0, solver=tacita.solvers.ExactProx())
    run = tacita.simulate(made, exact, 150, record=(), start=np.array([40.0, -9.0]))
    np.testing.assert_allclose(run.params, made.solve(), atol=1e-8)


def test_exact_answers_are_refused_where_there_are_none(nodes):
    bent = tacita.from_arrays(
        np.eye(2),
        [1.0, 2.0],
        [0, 1],
        model="absolute",
        regulariser=NonConvex(weight=1.0),
        graph=tacita.problem.graph.complete(2),
    )
    for algorithm in (tacita.FedRelax(alpha=1.0), tacita.FedProx(eta=1.0)):
        with pytest.raises(tacita.TacitaError, match="a squared regulariser only"):
            tacita.simulate(bent, algorithm, 1)
    batch = tacita.FedProx(eta=1.0, oracle=tacita.Minibatch(size=2))
    with pytest.raises(tacita.TacitaError, match="needs exact gradients, got oracle=M"):
        tacita.simulate(nodes, batch, 1)


def test_steps_by_theory_are_refused(nodes):
    with pytest.raises(tacita.TacitaError, match="smoothness of Absolute"):
        tacita.simulate(nodes, tacita.FedGD(alpha=1.0), 2)


@pytest.mark.long
def test_cvxpy_agrees(nodes):
    cvxpy = pytest.importorskip("cvxpy")
    gtv = GTVMin(nodes, alpha=0.05)
    x, y, counts = nodes.stacked()
    w = cvxpy.Variable((5, 2))
    loss = sum(cvxpy.norm1(x[i] @ w[i] - y[i]) / counts[i] for i in range(5))
    i, j, along = nodes.graph.pairs()
    pairs = zip(i, j, np.asarray(along), strict=True)
    coupling = sum(a * cvxpy.sum_squares(w[p] - w[q]) for p, q, a in pairs)
    found = cvxpy.Problem(cvxpy.Minimize(loss + 0.05 * coupling))
    best = found.solve(solver="CLARABEL")
    assert gtv.objective(gtv.solve()) == pytest.approx(best, rel=1e-7)
