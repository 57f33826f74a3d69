"""Letters on graphs: sensitivities on neighbouring data, budgets, audits."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import jax
import networkx as nx
import numpy as np
import pytest

import tacita
from papers.dp_norm.common.as_printed import lemma_1_sensitivity, step_shrinkage
from tacita.audits.canary import Canary, neighbours
from tacita.audits.scores import _expected
from tacita.audits.transcript import watch, world_of
from tacita.federation.work import Outline
from tacita.privacy import (
    Clipped,
    Question,
    Scope,
    guarantee,
)
from tacita.privacy.letters.on_graphs import letter_sensitivity, step_kept
from tacita.privacy.letters.trajectory import trajectory_sensitivity
from tacita.problem import graph, synthetic
from tacita.runtime import delivery
from tacita.runtime.ready import prepare
from tacita.trees import double_precision

DELTA = 1e-2
permuted = tacita.Minibatch(size=4, sampling="permutation")


def softmax_ring(nodes: int = 4, samples: int = 8) -> tacita.Problem:
    draw = np.random.default_rng(0)
    x = draw.normal(size=(nodes * samples, 5))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    y = draw.integers(0, 3, len(x))
    who = np.repeat(np.arange(nodes), samples)
    return tacita.from_arrays(
        x, y, who, model="softmax", l2=1e-3, classes=range(3), graph=graph.ring(nodes)
    )


def empty_ring(nodes: int = 4, rows: int = 2, network: Any = None) -> tacita.Problem:
    """Empty rows on a ring: room for a canary, and nothing else to see."""
    return tacita.from_arrays(
        np.zeros((rows * nodes, 2)),
        np.ones(rows * nodes),
        np.repeat(np.arange(nodes), rows),
        model="linear",
        graph=network or graph.ring(nodes),
    )


def asked(observer: str = "neighbour", agent: int = 0, rounds: int = 3, **more: Any):
    return Question(scope=Scope(observer), agent=agent, rounds=rounds, **more)


def apart(problem, algorithm, canary: Canary, rounds: int, seeds: int = 4) -> float:
    """The largest ||w - w'|| at node 0 on neighbouring data, given equal letters.

    Both are replayed with the same batches, from the letters that one run received.
    """
    with double_precision():
        ready = prepare(problem, algorithm)
        pair = neighbours(problem, canary)
        seen, _ = watch(pair[0], ready, rounds, np.arange(seeds), canary.agent)
        silent = replace(ready, noise_std=0.0)
        letters = [
            np.asarray(_expected(canary.agent, world_of(p, ready, 1.0), silent, seen))
            for p in pair
        ]
        world = world_of(problem, ready, 1.0)
        assert world.links is not None
        edges = type(world.links.edges)(*(leaf[0] for leaf in world.links.edges))
        gamma = np.asarray(ready.edge_numbers(edges, np.float64).gamma)
    # y = ((2 - gamma) z - 2 s (w + n)) / gamma, so letters differ by 2/gamma as much.
    shape = (*letters[0].shape[:2], len(gamma), -1)
    gaps = np.linalg.norm((letters[0] - letters[1]).reshape(shape), axis=-1)
    return float((gaps * gamma / 2).max())


def test_the_bound_is_the_closed_form_on_a_ring():
    problem = softmax_ring(samples=40)
    oracle = Clipped(norm=math.sqrt(2), oracle=replace(permuted, size=20))
    ring = {"step_size": 0.03, "local_steps": 10, "alpha": 0.2}
    made = tacita.DPNorm(**ring, noise_std=0.4, oracle=oracle)
    change = trajectory_sensitivity(
        shrinkage=step_shrinkage(degree=2, **ring),
        step_size=0.03,
        local_steps=10,
        batch=20,
        samples=40,
        gradient_bound=math.sqrt(2),
    )
    mu = change / 0.4 * math.sqrt(7)
    for observer in ("neighbour", "eavesdropper", "final_model"):
        found = guarantee(made, problem, asked(observer, rounds=7))
        assert found.mu == pytest.approx(mu, rel=1e-12)
    late = replace(made, exchange="asynchronous")
    more = guarantee(late, problem, asked(rounds=7))
    assert more.mu is not None and more.mu > math.sqrt(2) * mu * (1 - 1e-12)


@pytest.mark.long
def test_softmax_trajectories_stay_below_lemma_1_and_the_tight_bound():
    problem = softmax_ring()
    numbers = {"step_size": 0.03, "local_steps": 10, "alpha": 0.2}
    made = tacita.DPNorm(
        **numbers,
        noise_std=0.05,
        oracle=Clipped(norm=math.sqrt(2), oracle=permuted),
    )
    tight = letter_sensitivity(made, problem, 0).sensitivity
    lemma = lemma_1_sensitivity(
        **numbers,
        batch=4,
        samples=8,
        gradient_bound=math.sqrt(2),
        smoothness=0.5,
        degree=2,
    )
    axis = np.eye(5)[0]
    largest = apart(problem, made, Canary((axis, 0), (-axis, 0)), rounds=12)
    assert 0.2 * tight < largest <= tight < lemma


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("oracle", "exchange", "share"),
    ((tacita.Full(), "asynchronous", 0.99), (permuted, "synchronous", 0.6)),
    ids=("all", "batches"),
)
def test_a_constructed_case_comes_near_the_tight_bound(oracle, exchange, share):
    """A record whose gradient is clipped for good, against its opposite."""
    problem = empty_ring(rows=8)
    made = tacita.DPNorm(
        step_size=0.01,
        local_steps=6,
        alpha=0.05,
        noise_std=0.1,
        exchange=exchange,
        oracle=Clipped(norm=1.0, oracle=oracle),
    )
    axis = np.array([1.0, 0.0])
    tight = letter_sensitivity(made, problem, 0).sensitivity
    largest = apart(problem, made, Canary((axis, 50.0), (axis, -50.0)), rounds=25)
    assert share * tight < largest <= tight * (1 + 1e-9)


def test_steps_that_forget_next_to_nothing_have_no_bound():
    """1 - r has no digits then, and a bound by it would be any number."""
    made = tacita.DPNorm(step_size=1.0, alpha=1e14, noise_std=0.1)
    with pytest.raises(tacita.TacitaError, match="smaller alpha"):
        letter_sensitivity(replace(made, oracle=Clipped(norm=1.5)), softmax_ring(), 0)


def test_steps_that_may_expand_get_the_bound_for_any_gradients():
    problem = softmax_ring()
    numbers: Any = {"local_steps": 3, "alpha": 0.1, "noise_std": 0.1}
    calm = tacita.DPNorm(step_size=1.0, oracle=Clipped(norm=1.5), **numbers)
    assert "do not expand" in letter_sensitivity(calm, problem, 0).theorem
    # Longer than 2/L for the steepest data, not for this: all rows are looked at.
    longer = letter_sensitivity(replace(calm, step_size=5.0), problem, 0)
    assert "do not expand" in longer.theorem
    assert any("neighbouring data" in a.statement for a in longer.assumptions)
    batched = Clipped(norm=1.5, oracle=permuted)
    for made, why in (
        (replace(calm, step_size=5.0, oracle=batched), "2/L"),
        (replace(calm, step_size=50.0), "2/L"),
        (replace(calm, oracle=Clipped(norm=1.0)), "bends softmax"),
    ):
        found = letter_sensitivity(made, problem, 0)
        r = step_kept(made, problem)[0]
        mu, norm = float(made.step_size), made.oracle.norm  # pyright: ignore
        assert found.sensitivity == pytest.approx(2 * mu * norm * r / (1 - r))
        assert "any two clipped" in found.theorem and why in found.theorem
    # A whole client is always bounded so.
    client = letter_sensitivity(calm, problem, 0, unit="client").sensitivity
    assert client == pytest.approx(8 * letter_sensitivity(calm, problem, 0).sensitivity)


def test_budgets_are_kept_by_every_node_of_an_irregular_graph():
    network = nx.star_graph(3)
    network.add_edge(1, 2)
    problem = empty_ring(network=network)
    for exchange in ("synchronous", "asynchronous"):
        made = tacita.DPNorm(step_size=0.05, local_steps=4, exchange=exchange)
        safe = tacita.private(
            problem,
            made,
            epsilon=1.0,
            delta=DELTA,
            observer="neighbour",
            rounds=3,
            norm=1.0,
        )
        spent = [
            guarantee(safe, problem, asked(agent=i)).epsilon(DELTA) for i in range(4)
        ]
        # Everybody has the noise that its own letters need.
        np.testing.assert_allclose(spent, 1.0, rtol=1e-4)
        noise = np.asarray(safe.noise_std)
        # The leaf is pulled least towards its neighbour, so its memory is longest.
        assert np.argmax(noise) == 3 and noise[1] == noise[2]
        more = noise[0] > noise[1]  # with more neighbours it writes more letters
        assert more == (exchange == "asynchronous")


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "algorithm",
    (
        tacita.DPNorm(step_size=0.05, local_steps=4, alpha=0.1),
        tacita.GossipSGD(step_size=0.1, local_steps=2),
        tacita.GraphADMM(rho=0.1, step_size=0.1, local_steps=2),
        tacita.GradientTracking(step_size=0.1),
        tacita.FedGD(alpha=0.1, step_size=0.1),
    ),
    ids=lambda a: type(a).__name__,
)
def test_every_private_algorithm_states_its_epsilon(algorithm):
    problem = softmax_ring()
    safe = tacita.private(
        problem,
        algorithm,
        epsilon=2.0,
        delta=DELTA,
        observer="neighbour",
        rounds=4,
        norm=1.5,
    )
    told = tacita.privacy.forecast(problem, safe, rounds=4)
    if isinstance(algorithm, tacita.DPNorm):
        run = tacita.simulate(problem, safe, 4, seed=0, record=())
        assert run.privacy is not None
        told = run.privacy
    for observer in ("neighbour", "eavesdropper", "final_model"):
        row = told.row(observer)
        assert row.epsilon == pytest.approx(2.0, rel=1e-4)
        assert row.unit == "record" and row.theorem and row.assumptions


@pytest.mark.parametrize("publish", ["own", "released"])
def test_a_report_says_where_models_without_noise_are(publish):
    """It said that models carry noise of a run whose saved models carry none."""
    problem = softmax_ring()
    oracle = Clipped(norm=1.5)
    made = tacita.DPNorm(step_size=0.1, noise_std=0.5, oracle=oracle, publish=publish)
    run = tacita.simulate(problem, made, 2, seed=0, record=())
    assert run.privacy is not None
    told = [one["statement"] for one in run.privacy.row("neighbour").assumptions]
    bare = any("so does every file that holds it" in one for one in told)
    noisy = any("models told to others carry noise" in one for one in told)
    assert (bare, noisy) == (publish == "own", publish != "own")


def test_what_protects_nothing_is_refused():
    problem = softmax_ring()
    made = tacita.DPNorm(step_size=0.1, noise_std=0.1, oracle=Clipped(norm=1.5))
    with pytest.raises(tacita.TacitaError, match="carries no noise"):
        guarantee(replace(made, publish="own"), problem, asked("final_model"))
    leaking = replace(made, exchange="asynchronous", letter_noise="shared")
    with pytest.raises(tacita.TacitaError, match="leaks"):
        guarantee(leaking, problem, asked())
    with pytest.raises(tacita.TacitaError, match="no noise"):
        guarantee(replace(made, noise_std=None), problem, asked())
    with pytest.raises(tacita.TacitaError, match="not clipped"):
        guarantee(replace(made, oracle=tacita.Full()), problem, asked())
    report = tacita.privacy.forecast(problem, leaking, rounds=3)
    assert all(row.epsilon is None for row in report.rows)
    with pytest.raises(tacita.TacitaError, match="needs exact gradients"):
        tacita.private(
            problem,
            tacita.FedRelax(alpha=0.1),
            epsilon=1.0,
            delta=DELTA,
            observer="neighbour",
            rounds=3,
        )


BUDGET: Any = {"epsilon": 1.0, "delta": DELTA, "observer": "neighbour", "rounds": 3}


def asynchronous() -> tacita.DPNorm:
    made = tacita.DPNorm(step_size=0.02, local_steps=4, exchange="asynchronous")
    return tacita.private(empty_ring(), made, norm=1.0, **BUDGET)


def audited(algorithm, **options):
    given = {"observer": "neighbour", "rounds": 3, "runs": 6000, **options}
    return tacita.audit(empty_ring(), algorithm, **given)


@pytest.mark.long
def test_the_audit_refutes_shared_noise_and_not_fresh_noise():
    """Two neighbours compare the letters of one round (docs: printed, corrected)."""
    ours = asynchronous()
    found = audited(ours)
    assert found.refuted is False and found.gaussian_epsilon > 0.1
    claim = found.claimed_epsilon
    printed = audited(replace(ours, letter_noise="shared"), claim=claim)
    assert printed.refuted and printed.lower_bound > 5 * 1.0


@pytest.mark.long
def test_the_audit_comes_near_the_synchronous_guarantee_and_refutes_less():
    made = tacita.DPNorm(step_size=0.02, local_steps=4)
    safe = tacita.private(empty_ring(), made, norm=1.0, **BUDGET)
    found = audited(safe)
    assert found.refuted is False and found.lower_bound > 0.3
    # A third of the noise is not enough for what is promised.
    careless = replace(safe, noise_std=np.asarray(safe.noise_std) / 3)
    assert audited(careless, claim=1.0).refuted
    with pytest.raises(tacita.TacitaError, match="batches in them"):
        audited(safe, attacks=["batches"])


def test_a_node_alone_knows_its_own_noise():
    """From its own rows and the graph it gets what it gets from everybody's."""
    network = graph.star(4)
    draw = np.random.default_rng(1)
    rows, who = draw.normal(size=(20, 3)), np.repeat(np.arange(4), [8, 4, 4, 4])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    labels = draw.integers(0, 2, 20)
    made = tacita.DPNorm(step_size=0.3, local_steps=3, exchange="asynchronous")
    whole = tacita.from_arrays(rows, labels, who, graph=network)
    together = np.asarray(tacita.private(whole, made, norm=1.0, **BUDGET).noise_std)
    for node in (0, 2):
        mine = who == node
        own = tacita.from_arrays(rows[mine], labels[mine], np.zeros(mine.sum(), int))
        known = Outline(own, 4, network)
        alone = np.asarray(tacita.private(known, made, norm=1.0, **BUDGET).noise_std)
        assert alone[node] == pytest.approx(together[node], rel=1e-5)
        # It knows too little to be a problem, and is not taken for one.
        with pytest.raises(tacita.TacitaError, match="expected a problem"):
            tacita.simulate(known, made, 1)  # pyright: ignore[reportArgumentType]


def test_nodes_of_different_curvature_are_not_taken_for_alike():
    """Equal rows and edges, but one node's steps may expand: it needs more noise."""
    draw = np.random.default_rng(3)
    x = draw.normal(size=(24, 3))
    x[:6] *= 4
    y = draw.integers(0, 2, 24)
    problem = tacita.from_arrays(x, y, np.repeat(np.arange(4), 6), graph=graph.ring(4))
    curved = problem.moduli.smoothness
    made = tacita.DPNorm(step_size=2 / (0.9 * curved[0]), local_steps=2)
    safe = tacita.private(problem, made, norm=1.0, **BUDGET)
    noise = np.asarray(safe.noise_std)
    spent = [guarantee(safe, problem, asked(agent=i)).epsilon(DELTA) for i in range(4)]
    np.testing.assert_allclose(spent, 1.0, rtol=1e-4)
    assert noise[0] > 3 * noise[2]


def test_what_a_step_keeps_knows_the_weights_of_edges():
    """The account's r_i is that of the algorithm's own step, also where they differ."""
    network = nx.path_graph(4)
    nx.set_edge_attributes(network, {(0, 1): 0.2, (1, 2): 5.0, (2, 3): 1.0}, "weight")
    problem = synthetic.linear(agents=4, features=2, samples=3, graph=network)
    made = tacita.DPNorm(step_size=0.1, local_steps=3, alpha=0.7)
    edges = delivery.of(problem.graph, made, np.float32).edges
    pull = jax.vmap(lambda one: made.edge_numbers(one, np.float32).pull)(edges)
    kept = 1 / (1 + np.asarray(pull).sum(axis=1))
    np.testing.assert_allclose(step_kept(made, problem), kept, rtol=1e-6)
    unit = synthetic.linear(agents=4, features=2, samples=3, graph=nx.path_graph(4))
    assert np.abs(step_kept(made, unit) - kept).max() > 1e-2
