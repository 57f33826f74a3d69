"""The privacy report of a run: what it says, that it is kept, that it keeps terms."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

import tacita
from tacita.privacy import Clipped, PrivacyReport, PrivacyRow
from tacita.privacy.accounting.gaussian import epsilon_of_mu
from tacita.privacy.history import turns_by_round

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


def test_curves_follow_the_schedule(run, problem, algorithm):
    curves = run.privacy.curves
    assert curves["observer"] == "coordinator" and curves["budget"] == 2.0
    assert curves["rounds"] == list(range(1, ROUNDS + 1))
    assert sorted(curves["agents"]) == ["a", "b", "c", "d"]
    rounds, counted = turns_by_round(run, 4)
    np.testing.assert_array_equal(counted[-1], run.info["turns"])
    assert np.all(np.diff(counted, axis=0).sum(axis=1) == 2)
    half = tacita.simulate(problem, algorithm, 4, participation=2, seed=3)
    np.testing.assert_array_equal(half.info["turns"], counted[3])
    for name, line in zip(curves["agents"], curves["epsilon"], strict=True):
        agent = problem.ids.index(name)
        by_hand = [
            epsilon_by_hand(algorithm, problem, agent, k) if k else 0.0
            for k in counted[:, agent]
        ]
        assert line == pytest.approx(by_hand)


@pytest.mark.parametrize("participation", (1.0, 0.4, (0.2, 0.9, 0.5, 1.0)))
def test_schedules_are_replayed(problem, algorithm, participation):
    given = list(participation) if isinstance(participation, tuple) else participation
    run = tacita.simulate(problem, algorithm, 7, participation=given, seed=5)
    rounds, counted = turns_by_round(run, 4)
    assert rounds[-1] == 7
    np.testing.assert_array_equal(counted[-1], run.info["turns"])


def test_several_seeds_count_the_busiest(problem, algorithm):
    run = tacita.simulate(problem, algorithm, 5, participation=2, seeds=4)
    most = run.info["turns"].max(axis=0)
    spent = [epsilon_by_hand(algorithm, problem, i, most[i]) for i in range(4)]
    assert run.privacy.row("coordinator").epsilon == pytest.approx(max(spent))


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
    assert {mark[0] for mark in marks} == {"T", "E", "B"}


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


def test_a_run_that_kept_no_turns_is_replayed(run, problem, algorithm):
    """Runs of very many agents keep none."""
    info = {k: v for k, v in run.info.items() if k != "turns"}
    bare = dataclasses.replace(run, info=info, privacy=None)
    assert tacita.privacy.report(bare, problem, algorithm) == run.privacy


def test_a_run_too_large_to_replay_counts_everybody_as_active(
    run, problem, algorithm, monkeypatch
):
    monkeypatch.setattr("tacita.privacy.history._MOST_DRAWS", 1)
    info = {k: v for k, v in run.info.items() if k != "turns"}
    bare = dataclasses.replace(run, info=info)
    row = tacita.privacy.report(bare, problem, algorithm).row("coordinator")
    spent = [epsilon_by_hand(algorithm, problem, i, ROUNDS) for i in range(4)]
    assert row.epsilon == pytest.approx(max(spent))
