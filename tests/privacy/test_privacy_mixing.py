"""Who sees the last models of gossip only: bounds against exact laws of linear runs."""

import numpy as np
import pytest

import tacita
from tacita.audits import compare
from tacita.privacy import Clipped, Noisy, Question, Scope, guarantee
from tacita.privacy.letters import mixing
from tacita.privacy.letters.mixing import mixing_matrix, steps_that_count
from tacita.privacy.spend import largest, planned
from tacita.problem.graph import Graph, ring

DELTA = 1e-5


def star(n):
    return Graph.from_edges(n, np.array([(0, i) for i in range(1, n)]))


def exact_steps(moves, spread):
    """What scalar runs cost, x <- move x + change + noise, where their end is seen."""
    covariance, means = np.zeros((len(spread), len(spread))), np.zeros_like(moves[0])
    for move in moves:
        covariance = move @ covariance @ move.T + np.diag(spread**2)
        means = move @ means + np.eye(len(spread))  # a column for each changed node
    return spread**2 * np.sum(means * np.linalg.solve(covariance, means), axis=0)


def random_graph(draw, n):
    edges = {(int(draw.integers(k)), k) for k in range(1, n)}  # a tree, and more
    edges |= {(i, k) for k in range(n) for i in range(k) if draw.uniform() < 0.3}
    return Graph.from_edges(n, np.array(sorted(edges)))


@pytest.mark.parametrize("most", [0.95, 1.0, 1.3])
def test_no_bound_is_below_the_exact_law_of_linear_steps(most):
    """For any curvatures that the factors allow, at any step."""
    draw, ratios = np.random.default_rng(0), []
    graphs = [mixing_matrix(random_graph(draw, n)) for n in (2, 3, 5, 7)]
    for k in range(60):
        mixed = graphs[k % len(graphs)]
        n, steps, rounds = (
            len(mixed),
            int(draw.integers(1, 4)),
            int(draw.integers(1, 9)),
        )
        factors = draw.uniform(0.5, most, n)
        spread = np.exp(draw.uniform(-1, 1, n))
        bounds = steps_that_count(mixed, factors, spread, steps=steps, rounds=rounds)
        true = factors * draw.choice([1.0, draw.uniform(), -1.0], (rounds, steps, n))
        worst = draw.uniform() < 0.5
        if worst:
            true = np.broadcast_to(factors, true.shape)
        moves = [
            np.diag(true[k, s]) @ (mixed if s == 0 else np.eye(n))
            for k in range(rounds)
            for s in range(steps)
        ]
        exact = exact_steps(moves, spread)
        assert np.all(bounds >= exact * (1 - 1e-9))
        ratios += (bounds / exact).tolist() if worst else []
    assert np.median(ratios) < 1.4


@pytest.mark.parametrize("graph", [ring(12), star(6)])
def test_contracting_steps_are_bounded_tightly(graph):
    mixed, n = mixing_matrix(graph), graph.n_nodes
    factors, spread = np.full(n, 0.9), np.ones(n)
    bounds = steps_that_count(mixed, factors, spread, steps=1, rounds=40)
    exact = exact_steps([0.9 * mixed] * 40, spread)
    np.testing.assert_allclose(bounds, exact, rtol=1e-3)
    assert np.all(bounds < 15)  # of 40


def test_long_runs_are_planned_in_pieces(monkeypatch):
    about = (mixing_matrix(ring(5)), np.ones(5), np.ones(5))
    whole = steps_that_count(*about, steps=2, rounds=23)
    monkeypatch.setattr(mixing, "_MOST_STEPS", 20)
    pieces = steps_that_count(*about, steps=2, rounds=23)
    ten, three = (steps_that_count(*about, steps=2, rounds=k) for k in (10, 3))
    np.testing.assert_allclose(pieces, 2 * ten + three)
    assert np.all(whole < pieces) and np.all(pieces < 46)


def world(graph=None, **more):
    graph = ring(6) if graph is None else graph
    draw, n = np.random.default_rng(1), graph.n_nodes
    given = {"model": "logistic", "l2": 0.1, "bound": 1.0, "graph": graph} | more
    labels = np.tile([0, 1], 2 * n)
    return tacita.from_arrays(
        draw.normal(size=(4 * n, 2)), labels, np.repeat(np.arange(n), 4), **given
    )


def gossip(oracle=None, schedule=None, **more):
    clipped = Clipped(norm=1.0) if oracle is None else Clipped(norm=1.0, oracle=oracle)
    noisy = Noisy(std=0.9, oracle=clipped, schedule=schedule)
    return tacita.GossipSGD(**{"step_size": 0.5, "oracle": noisy} | more)


def asked(observer="final_model", **more):
    given = {"agent": 2, "rounds": 20, "total": 20, "active": 6, "in_step": True}
    return Question(scope=Scope(observer), **given | more)


def test_the_last_models_say_less_than_all_letters():
    all_letters = guarantee(gossip(), world(), asked("neighbour"))
    last = guarantee(gossip(), world(), asked())
    assert last.mu < all_letters.mu / 1.8
    assert "steering by mixing" in last.theorem
    said = {one.statement for one in last.assumptions}
    assert {
        "no record has features longer than 1",
        "models before the last ones are not published",
        "every letter arrives in its round",
    } <= said


@pytest.mark.parametrize(
    "given",
    [
        {"in_step": False},
        {"active": 5},
        {"active": None},
        {"rounds": 19},
        {"participation": 0.5},
    ],
)
def test_nothing_is_gained_where_mixing_is_not_sure(given):
    found = guarantee(gossip(), world(), asked(**given))
    letters = guarantee(gossip(), world(), asked("neighbour", **given))
    assert found.epsilon(DELTA) == letters.epsilon(DELTA)
    assert "mixing" not in found.theorem


@pytest.mark.parametrize(
    "problem, algorithm",
    [
        (world(bound=None), gossip()),
        (world(), gossip(schedule=tacita.NoiseSchedule.prefix(20))),
        (world(), gossip(tacita.Minibatch(size=2))),
    ],
    ids=["no bound", "schedule", "batches"],
)
def test_nothing_is_gained_without_its_conditions(problem, algorithm):
    assert mixing.places(algorithm, problem) is None
    assert "mixing" not in guarantee(algorithm, problem, asked()).theorem


def test_steps_that_may_expand_count_more():
    flat = guarantee(gossip(), world(), asked()).mu
    steep = guarantee(gossip(step_size=12.0), world(), asked()).mu  # 12 L = 4.2
    assert steep > 1.2 * flat
    assert steep <= guarantee(gossip(), world(), asked("neighbour")).mu * (1 + 1e-12)


def test_every_node_is_accounted_in_its_place():
    problem = world(star(6))
    each = [guarantee(gossip(), problem, asked(agent=i)).mu for i in range(6)]
    assert max(each) > 1.1 * min(each)
    turns = planned(problem, 20, 1.0, in_step=True)
    _, found = largest(gossip(), problem, turns, Scope("final_model"), DELTA)
    assert found.mu == max(each)


@pytest.mark.long
def test_a_budget_takes_less_noise_and_a_late_letter_shows_in_the_report():
    problem, rounds = world(), 20
    ask = {"epsilon": 1.0, "delta": DELTA, "observer": "final_model", "rounds": rounds}
    method = tacita.GossipSGD(step_size=0.5)
    safe = tacita.private(problem, method, in_step=True, **ask)
    careful = tacita.private(problem, method, **ask)
    assert np.max(safe.oracle.std) < 0.6 * np.max(careful.oracle.std)

    def epsilon(algorithm, **how):
        run = tacita.simulate(problem, algorithm, rounds, record=[], **how)
        return run.privacy.row("final_model").epsilon, run.privacy.curves["epsilon"]

    in_time, curves = epsilon(safe)
    assert in_time == pytest.approx(1.0, rel=1e-5)
    assert np.all(np.diff(curves, axis=1) > 0)  # as if the run had ended there
    late = tacita.Asynchronous(most_delay=2)
    assert epsilon(safe, asynchronous=late)[0] > 1.5
    assert epsilon(careful, asynchronous=late)[0] <= 1 + 1e-6


def test_a_forecast_counts_on_letters_in_time_only_if_told_so():
    for known in (False, True):
        told = tacita.privacy.forecast(world(), gossip(), rounds=20, in_step=known)
        assert ("mixing" in told.row("final_model").theorem) == known
    told = tacita.privacy.forecast(world(), gossip(), rounds=20)  # as a federation asks
    assert "mixing" not in told.row("final_model").theorem


@pytest.mark.long
def test_a_debugged_run_tells_how_it_was_run():
    """Else its report would count on letters in time, and on everybody's noise."""
    problem, late = world(ring(3)), tacita.Asynchronous(most_delay=2)
    how = {"participation": 2, "asynchronous": late, "record": [], "seed": 0}
    run = tacita.debug(problem, gossip(), 1, **how)
    assert run.config["run"]["participation"] == 2
    told = tacita.privacy.report(run, problem, gossip()).row("final_model")
    assert "mixing" not in told.theorem


@pytest.mark.long
def test_printed_epsilons_hold_and_are_close_over_many_rounds():
    draw, n = np.random.default_rng(5), 4
    problem = tacita.from_arrays(
        0.03 * draw.normal(size=(4 * n, 2)),
        np.zeros(4 * n),
        np.repeat(np.arange(n), 4),
        model="linear",
        l2=0.1,
        bound=1.0,
        graph=star(n),
    )
    noisy = Noisy(std=draw.uniform(1, 3, n), oracle=Clipped(norm=1.0))
    method = tacita.GossipSGD(
        step_size=draw.uniform(0.1, 0.8, n), local_steps=2, oracle=noisy
    )
    rows = compare(problem, method, rounds=8, delta=DELTA, units=("record",))
    ratios = [r.tightness for r in rows if r.scope.observer == "final_model"]
    assert not any(row.false for row in rows)
    assert np.median(ratios) < 1.2
