"""The privacy report of a run: what it says, that it is kept, that it keeps terms."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

import tacita
from tacita.privacy import Clipped, PrivacyReport, PrivacyRow
from tacita.theory.gaussian import epsilon_of_mu

ROUNDS = 9
ROW: Any = {
    "observer": "coordinator",
    "unit": "record",
    "relation": "replace_one",
    "delta": 1e-5,
    "epsilon": 1.0,
    "theorem": "a theorem",
    "assumptions": ({"statement": "clipped", "status": "enforced"},),
}


@pytest.fixture(scope="module")
def problem():
    draw = np.random.default_rng(0)
    agent = np.repeat(["a", "b", "c", "d"], [20, 40, 30, 20])
    x = draw.normal(size=(len(agent), 3))
    return tacita.from_arrays(x, x[:, 0] > 0, agent, l2=0.4)


@pytest.fixture(scope="module")
def algorithm(problem):
    return tacita.private(
        problem,
        tacita.FedAvg(step_size=0.1, local_steps=2),
        epsilon=2.0,
        delta=1e-6,
        observer="coordinator",
        rounds=ROUNDS,
    )


@pytest.fixture(scope="module")
def run(problem, algorithm):
    return tacita.simulate(problem, algorithm, ROUNDS, participation=2, seed=3)


def epsilon_by_hand(algorithm, problem, agent, active):
    """mu^2 = active rounds x local steps x (2 C / (m sigma))^2."""
    change = 2 * 1.0 / problem.counts[agent]
    mu = np.sqrt(2 * active) * change / np.asarray(algorithm.oracle.std)[agent]
    return epsilon_of_mu(float(mu), 1e-6)


@pytest.mark.long
def test_rows_are_observers_times_units(run):
    rows = [(row.observer, row.unit) for row in run.privacy.rows]
    seen = ("final_model", "coordinator", "neighbour", "eavesdropper")
    assert rows == [(o, u) for o in seen for u in ("record", "client")]
    assert run.privacy.rounds == ROUNDS and not run.privacy.planned
    assert run.privacy.promise == {
        "epsilon": 2.0,
        "delta": 1e-6,
        "observer": "coordinator",
        "unit": "record",
        "relation": "replace_one",
    }


def test_agents_pay_for_the_rounds_they_were_active_in(run, problem, algorithm):
    turns = run.info["turns"]
    spent = [epsilon_by_hand(algorithm, problem, i, turns[i]) for i in range(4)]
    row = run.privacy.row("coordinator")
    assert row.epsilon == pytest.approx(max(spent))
    assert row.agent == problem.ids[int(np.argmax(spent))]
    assert row.delta == 1e-6  # that of the promise
    assert run.privacy.row("coordinator", "client").epsilon > 10 * row.epsilon


def test_one_agent_is_accounted_by_itself(problem, algorithm):
    """All spend the same here; what each rests on is its own."""
    held = {}
    for number, name in enumerate(problem.ids):
        told = tacita.privacy.forecast(problem, algorithm, rounds=ROUNDS, agent=number)
        row = told.row("coordinator")
        assert row.agent == name and row.epsilon == pytest.approx(2.0)
        held[name] = row.assumptions
    # Twenty rows, forty, thirty, twenty.
    assert held["a"] == held["d"] and held["b"] != held["a"] != held["c"] != held["b"]
    with pytest.raises(tacita.TacitaError, match="expected agent in 0..3"):
        tacita.privacy.forecast(problem, algorithm, rounds=ROUNDS, agent=4)


def test_curves_follow_the_schedule(run, problem, algorithm):
    curves = run.privacy.curves
    assert curves["observer"] == "coordinator" and curves["budget"] == 2.0
    assert curves["rounds"] == list(range(1, ROUNDS + 1))
    assert sorted(curves["agents"]) == ["a", "b", "c", "d"]
    chosen = {"participation": 2, "seed": 3}
    counted = np.stack(
        [
            tacita.simulate(problem, algorithm, k, **chosen).info["turns"]
            for k in curves["rounds"]
        ]
    )
    assert np.all(np.diff(counted, axis=0).sum(axis=1) == 2)
    for name, line in zip(curves["agents"], curves["epsilon"], strict=True):
        agent = problem.ids.index(name)
        by_hand = [
            epsilon_by_hand(algorithm, problem, agent, k) if k else 0.0
            for k in counted[:, agent]
        ]
        assert line == pytest.approx(by_hand)


@pytest.mark.few(1)
@pytest.mark.parametrize("participation", (1.0, 0.4, (0.2, 0.9, 0.5, 1.0)))
def test_curves_end_where_the_rows_do(problem, algorithm, participation):
    given = list(participation) if isinstance(participation, tuple) else participation
    run = tacita.simulate(problem, algorithm, 7, participation=given, seed=5)
    assert run.privacy.curves["rounds"][-1] == 7
    last = [line[-1] for line in run.privacy.curves["epsilon"]]
    assert max(last) == pytest.approx(run.privacy.row("coordinator").epsilon)


def test_no_curve_tells_what_a_secret_draw_was(problem):
    """The bound over it would not hold for who reads there when somebody took part."""
    chosen: Any = {"participation": 0.5, "record": ()}
    budget = {"epsilon": 9.0, "delta": 1e-5, "observer": "neighbour", "rounds": 20}
    inner = tacita.private(problem, tacita.FedAvg(step_size=0.1), **budget)
    secret = tacita.ClientDPFedAvg(noise_std=2.0, step_size=0.1, oracle=inner.oracle)
    runs = [tacita.simulate(problem, secret, 20, seed=k, **chosen) for k in (1, 2)]
    turns = [run.info["turns"].tolist() for run in runs]
    assert turns[0] != turns[1]
    first, second = (run.privacy.curves for run in runs)
    assert first == second and first["rounds"][-1] == 20
    for line in first["epsilon"]:
        assert line == first["epsilon"][0] and np.all(np.diff(line) > 0)
    last = runs[0].privacy.row(first["observer"], first["unit"]).epsilon
    assert first["epsilon"][0][-1] == pytest.approx(last)


def test_a_start_that_was_given_is_an_assumption(problem, algorithm):
    words = "the start that was given says nothing of these rows"
    for start, told in ((None, False), (np.ones(3), True)):
        run = tacita.simulate(problem, algorithm, 2, start=start, record=())
        assumed = run.privacy.row("coordinator").assumptions
        found = [one["status"] for one in assumed if words in one["statement"]]
        assert found == ["believed"] * told


def test_long_runs_are_looked_at_now_and_then(problem, algorithm):
    """Whether metrics are recorded or not, and how often."""
    for chosen in ({"record": ()}, {}, {"record_every": 7}):
        run = tacita.simulate(
            problem, algorithm, 200, seed=0, participation=2, **chosen
        )
        rounds = run.privacy.curves["rounds"]
        assert rounds[-1] == 200 and 25 < len(rounds) <= 60


@pytest.mark.long
def test_several_seeds_count_the_busiest(problem, algorithm):
    run = tacita.simulate(problem, algorithm, 5, seed=0, participation=2, seeds=4)
    most = run.info["turns"].max(axis=0)
    spent = [epsilon_by_hand(algorithm, problem, i, most[i]) for i in range(4)]
    assert run.privacy.row("coordinator").epsilon == pytest.approx(max(spent))
    last = [line[-1] for line in run.privacy.curves["epsilon"]]
    assert sorted(last) == pytest.approx(sorted(spent))


@pytest.mark.long
def test_activity_that_delays_force_is_counted():
    """Everybody is active once in three events, however rarely it is drawn."""
    ring = tacita.problem.graph.ring(5)
    problem = tacita.problem.synthetic.logistic(
        agents=5, features=3, samples=20, graph=ring
    )
    noisy = tacita.Noisy(std=0.5, oracle=tacita.Clipped(norm=1.0))
    run = tacita.simulate(
        problem,
        tacita.GossipSGD(step_size=0.1, oracle=noisy),
        30,
        seed=0,
        participation=0.01,
        asynchronous=tacita.Asynchronous(most_delay=3),
    )
    assert run.info["turns"].min() >= 10
    row, curves = run.privacy.row("neighbour"), run.privacy.curves
    # A gradient moves by 2 C/m = 0.1 and has noise 0.5; each turn is one release.
    mu = 0.1 / 0.5 * np.sqrt(run.info["turns"])
    spent = [tacita.privacy.gaussian_epsilon(1 / m, row.delta) for m in mu]
    assert row.epsilon == pytest.approx(max(spent))
    last = [line[-1] for line in curves["epsilon"]]
    assert sorted(last) == pytest.approx(sorted(spent))
    half = curves["rounds"].index(15)
    assert 0 < curves["epsilon"][0][half] < curves["epsilon"][0][-1]


@pytest.mark.parametrize(("chance", "bound"), [(0.1, 2), (0.3, 4), (0.05, 9)])
def test_a_plan_covers_activity_that_delays_force(chance, bound):
    """By the exact law of how often a node is active, which everybody sees."""
    problem = tacita.problem.synthetic.logistic(
        agents=3, features=2, samples=20, graph=tacita.problem.graph.ring(3)
    )
    noisy = tacita.Noisy(std=0.5, oracle=tacita.Clipped(norm=1.0))
    plan: Any = {"rounds": 30, "participation": chance, "most_delay": bound}
    gossip = tacita.GossipSGD(step_size=0.1, oracle=noisy)
    planned = tacita.privacy.forecast(problem, gossip, **plan).row("neighbour")
    # (silent events since the last active one, turns): at first everybody is active.
    law = {(0, 1): 1.0}
    for _ in range(29):
        after: dict[tuple[int, int], float] = {}
        for (idle, turns), p in law.items():
            active = 1.0 if idle + 1 >= bound else chance
            for now, share in (
                ((0, turns + 1), active),
                ((idle + 1, turns), 1 - active),
            ):
                after[now] = after.get(now, 0.0) + p * share
        law = after
    # delta of a mixture that is seen: the mean of the deltas.
    delta = sum(
        p * tacita.privacy.gaussian_delta(0.5 / 0.1 / turns**0.5, planned.epsilon)
        for (_, turns), p in law.items()
    )
    assert 1e-8 < delta <= planned.delta


def test_a_resumed_run_has_the_same_curves(run, problem, algorithm, tmp_path):
    chosen = {"participation": 2, "seed": 3, "checkpoint": tmp_path}
    tacita.simulate(problem, algorithm, 3, **chosen)
    resumed = tacita.simulate(problem, algorithm, ROUNDS, resume=True, **chosen)
    assert resumed.privacy.row("coordinator") == run.privacy.row("coordinator")
    whole, curves = run.privacy.curves, resumed.privacy.curves
    seen = dict(zip(whole["rounds"], whole["epsilon"][0], strict=True))
    for number, spent in zip(curves["rounds"], curves["epsilon"][0], strict=True):
        assert spent == seen[number]


def test_saved_and_loaded(run, tmp_path):
    folder = run.save(tmp_path / "run")
    stored = json.loads((folder / "privacy.json").read_text())
    assert {row["observer"] for row in stored["rows"]} >= {"coordinator"}
    back = tacita.load_run(folder)
    assert back.privacy == run.privacy
    assert str(back.privacy) == str(run.privacy)
    # The same folder with a run that is not private keeps no stale promise.
    dataclasses.replace(run, privacy=None).save(folder)
    assert tacita.load_run(folder).privacy is None
    (folder / "privacy.json").write_text('{"rows": [{"epsilon": 1.0}]}')
    with pytest.raises(tacita.TacitaError, match="not a privacy report"):
        tacita.load_run(folder)


def test_the_text_names_every_term(run):
    words = str(run.privacy)
    lines = words.split("\n")
    assert "after 9 rounds" in lines[0] and "1e-06" in lines[0]
    assert "against the coordinator" in lines[1]
    marks = dict(run.privacy.notes())
    columns, rows = run.privacy.table()
    for cells in rows:
        told = dict(zip(columns, cells, strict=True))
        assert told["epsilon"] and told["theorem"] in marks
        for mark in told["assumptions"].split():
            assert mark in marks
    assert {mark[0] for mark in marks} == {"T", "E", "B", "n", "m"}
    assert "floating-point Gaussians" in marks["noise"]
    assert "without noise" in marks["metrics"]


def test_runs_without_noise_say_so(problem):
    clipped = tacita.FedAvg(step_size=0.1, oracle=Clipped(norm=1.0))
    run = tacita.simulate(problem, clipped, 2)
    assert all(row.epsilon is None for row in run.privacy.rows)
    assert "no noise" in run.privacy.rows[0].theorem
    assert run.privacy.curves is None and "no bound" in str(run.privacy)
    plain = tacita.FedAvg(step_size=0.1)
    assert tacita.simulate(problem, plain, 2).privacy is None
    told = tacita.privacy.forecast(problem, plain, rounds=2)
    assert told.row("coordinator").epsilon is None
    tiny = tacita.FedAvg(
        step_size=0.1, oracle=tacita.Noisy(std=1e-200, oracle=Clipped(norm=1.0))
    )
    assert tacita.privacy.forecast(problem, tiny, rounds=2).rows[0].epsilon is None


def test_a_sweep_has_no_report(problem, algorithm):
    other = dataclasses.replace(algorithm, step_size=0.2)
    swept = tacita.sweep(problem, [algorithm, other], 3)
    assert swept.privacy is None
    with pytest.raises(tacita.TacitaError, match="sweep"):
        tacita.privacy.report(swept, problem, algorithm)


def test_a_resumed_run_reports_all_its_rounds(problem, algorithm, tmp_path):
    whole = tacita.simulate(problem, algorithm, ROUNDS, participation=2, seed=3)
    tacita.simulate(problem, algorithm, 4, participation=2, seed=3, checkpoint=tmp_path)
    resumed = tacita.simulate(
        problem,
        algorithm,
        ROUNDS,
        participation=2,
        seed=3,
        checkpoint=tmp_path,
        resume=True,
    )
    assert resumed.privacy == whole.privacy


def test_fed_plt_shows_what_the_paper_claims(problem):
    def rows(rounds):
        safe = tacita.private(
            problem,
            tacita.FedPLT(),
            epsilon=2.0,
            delta=1e-5,
            observer="coordinator",
            rounds=rounds,
        )
        told = tacita.privacy.forecast(problem, safe, rounds=rounds)
        return told, told.row("coordinator"), told.row("final_model")

    told, coordinator, final = rows(300)
    assert coordinator.paper_claim["status"] == "refuted"
    assert final.paper_claim["status"] == "unproven"
    assert coordinator.paper_claim["claimed_epsilon"] < 0.5 * coordinator.epsilon
    assert "refuted" in str(told) and "unproven" in str(told)
    # After few rounds the paper's formula is above the bound that holds.
    _, coordinator, final = rows(5)
    assert coordinator.paper_claim["claimed_epsilon"] > coordinator.epsilon
    assert coordinator.paper_claim["status"] == "implied"


def test_an_audit_is_put_into_its_row(run):
    found = {"lower_bound": 0.31, "confidence": 0.99, "runs": 100, "refuted": False}
    audited = run.privacy.with_audit("coordinator", "record", found)
    assert audited.row("coordinator").audited == found
    assert audited.row("final_model").audited is None
    assert ">= 0.31 at 99%" in str(audited)
    assert PrivacyReport.from_dict(audited.as_dict()) == audited
    broken = run.privacy.with_audit("coordinator", "record", found | {"refuted": True})
    assert "refuted" in str(broken)
    with pytest.raises(tacita.TacitaError, match="no row for nobody/record"):
        run.privacy.with_audit("nobody", "record", found)


@pytest.mark.parametrize("missing", ("observer", "unit", "relation", "theorem"))
def test_an_epsilon_never_stands_alone(missing):
    PrivacyRow(**ROW)
    with pytest.raises(tacita.TacitaError, match=missing):
        PrivacyRow(**{**ROW, missing: ""})
    with pytest.raises(TypeError, match=missing):
        PrivacyRow(**{k: v for k, v in ROW.items() if k != missing})
    with pytest.raises(tacita.TacitaError, match="assumptions"):
        PrivacyRow(**{**ROW, "assumptions": ()})
    with pytest.raises(tacita.TacitaError, match="epsilon"):
        PrivacyRow(**{**ROW, "epsilon": float("nan")})


def test_from_the_disk_turns_count_as_early_as_they_can(run, problem, algorithm):
    """The rows are the same; curves are above those that the runtime counted."""
    told = tacita.privacy.report(run, problem, algorithm)
    assert told.rows == run.privacy.rows
    early = dict(zip(told.curves["agents"], told.curves["epsilon"], strict=True))
    for name, line in zip(
        run.privacy.curves["agents"], run.privacy.curves["epsilon"], strict=True
    ):
        assert np.all(np.array(early[name]) >= line)


def test_a_run_that_kept_no_turns_counts_everybody_as_active(run, problem, algorithm):
    """Runs of very many agents keep none in their folder."""
    info = {k: v for k, v in run.info.items() if k != "turns"}
    bare = dataclasses.replace(run, info=info)
    row = tacita.privacy.report(bare, problem, algorithm).row("coordinator")
    spent = [epsilon_by_hand(algorithm, problem, i, ROUNDS) for i in range(4)]
    assert row.epsilon == pytest.approx(max(spent))


@pytest.mark.parametrize("seeds", [None, 1, 3])
def test_several_seeds_are_several_runs(seeds):
    """Each is a run on the same rows, and the epsilon is that of one."""
    problem = tacita.problem.synthetic.logistic(agents=3, features=2, samples=10)
    noise = tacita.Noisy(std=1.0, oracle=tacita.Clipped(norm=1.0))
    algorithm = tacita.FedAvg(step_size=0.1, oracle=noise)
    run = tacita.simulate(problem, algorithm, 2, seeds=seeds, record=())
    assert run.privacy is not None
    for row in run.privacy.rows:
        told = [one["statement"] for one in row.assumptions]
        assert ("of the 3 seeds" in " ".join(told)) == (seeds == 3)
