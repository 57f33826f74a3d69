"""Oversight: alarms that name node and round, chains of snapshots, doubt, energy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacita
from tacita.problem import graph, held_out, synthetic
from tacita.report import trustworthy
from tacita.trust import snapshots, uncertainty
from tacita.trust.examination import examine
from tacita.trust.footprint import energy, operations_of_gradient
from tacita.trust.oversight import oversee
from tacita.trust.page_hinkley import alarms

TOLD = json.loads((Path(__file__).parent / "vectors.json").read_text())["bounds"]
HINKLEY = TOLD["page_hinkley"]


def test_the_alarm_is_the_known_one():
    given = {"slack": HINKLEY["slack"], "limit": HINKLEY["limit"]}
    (found,) = alarms(HINKLEY["errors"], **given)
    assert found.round == HINKLEY["alarm_at"]
    assert alarms(HINKLEY["errors"][: HINKLEY["alarm_at"]], **given) == []


def test_alarms_name_node_and_round_and_pass_over_gaps():
    calm, loud = np.ones(8), np.array(HINKLEY["errors"][:8])
    gaps = np.where(np.arange(8) % 2 == 0, np.nan, 5.0)
    table = np.stack([calm, loud, gaps, calm[::-1]], axis=1)
    found = alarms(table, slack=0.05, limit=0.5, rounds=range(10, 90, 10), ids="abcd")
    assert [(one.node, one.round, one.since) for one in found] == [("b", 80, 80)]
    assert "node b: alarm in round 80" in str(found[0])


@pytest.fixture(scope="module")
def parted() -> tuple[tacita.Problem, tacita.Problem]:
    ring = graph.ring(5)
    return held_out.hold_out(synthetic.linear(5, 2, 12, graph=ring, seed=2), 0.4)


#: Too long a step at one node: its error grows and grows.
STRAY = tacita.FedGD(alpha=0.05, step_size=np.array([0.05, 0.05, 1.2, 0.05, 0.05]))
CALM = tacita.FedGD(alpha=0.05, step_size=0.05)


@pytest.mark.long
def test_a_run_stops_where_an_error_rises(parted, tmp_path: Path):
    given: dict[str, Any] = {"every": 2, "slack": 0.01, "limit": 1.0}
    train, held = parted
    seen = oversee(train, STRAY, 20, held_out=held, **given)
    assert seen.stopped and seen.run.rounds < 20
    assert seen.alarms[0].node == 2 and seen.alarms[0].round == seen.run.rounds
    assert seen.errors.shape == (len(seen.rounds), 5)
    assert seen.run.info["oversight"]["alarms"] == [str(one) for one in seen.alarms]
    on = oversee(train, STRAY, 20, held_out=held, policy="go_on", **given)
    assert not on.stopped and on.run.rounds == 20 and on.alarms[0] == seen.alarms[0]
    whole = tacita.simulate(train, STRAY, 20)
    np.testing.assert_array_equal(on.run.agents, whole.agents)
    calm = oversee(train, CALM, 20, held_out=held, **given)
    assert calm.alarms == [] and calm.run.rounds == 20


def test_a_private_run_is_not_stopped_by_private_rows(parted):
    train, held = parted
    # So much noise, which is drawn in secret, that some error rises for sure.
    noisy = tacita.Noisy(std=100.0, oracle=tacita.Clipped(norm=1.0))
    private = tacita.FedGD(alpha=0.1, step_size=0.1, oracle=noisy)
    given: dict[str, Any] = {"held_out": held, "every": 1, "slack": 0.0, "limit": 0.0}
    with pytest.raises(tacita.TacitaError, match="would tell of them"):
        oversee(train, private, 8, **given)
    seen = oversee(train, private, 8, policy="go_on", **given)
    assert seen.alarms and set(seen.run.info["oversight"]) == {
        "looked_every",
        "snapshots_head",
    }
    with pytest.raises(tacita.TacitaError, match="checkpoint does not go"):
        oversee(train, CALM, 4, checkpoint="x", **given)


@pytest.fixture
def chain(parted, tmp_path: Path) -> tuple[Path, str, tacita.Problem]:
    train, held = parted
    folder = tmp_path / "kept"
    seen = oversee(
        train, CALM, 6, held_out=held, every=2, slack=1.0, limit=1.0, snapshots=folder
    )
    assert seen.head is not None
    return folder, seen.head, train


def test_a_chain_of_snapshots_fits_together(chain):
    folder, head, train = chain
    links = snapshots.verify(folder, head=head, problem=train)
    assert [one["round"] for one in links] == [2, 4, 6]
    with np.load(folder / "round-000006.npz") as kept:
        whole = tacita.simulate(train, CALM, 6)
        np.testing.assert_array_equal(kept["agents"], whole.agents)
    assert (folder / "salt").stat().st_mode & 0o077 == 0
    with pytest.raises(tacita.TacitaError, match="holds snapshots already"):
        snapshots.Snapshots(folder, train, CALM)


def test_every_later_change_shows(chain):
    folder, head, train = chain
    path = folder / "chain.jsonl"
    lines = path.read_text().splitlines()
    refuse = tacita.TacitaError
    for changed, words in (
        ([lines[0], lines[2]], "line 2 .* does not follow"),
        (lines[:2], "not in the head"),
        ([lines[0].replace('"round": 2', '"round": 3'), *lines[1:]], "line 1"),
        (["{}", *lines[1:]], "line 1 .* damaged"),
    ):
        path.write_text("\n".join(changed) + "\n")
        with pytest.raises(refuse, match=words):
            snapshots.verify(folder, head=head)
    path.write_text("\n".join(lines) + "\n")
    other = synthetic.linear(5, 2, 7, graph=graph.ring(5), seed=3)
    with pytest.raises(refuse, match="not the rows"):
        snapshots.verify(folder, problem=other)
    (folder / "round-000004.npz").write_bytes(b"other")
    with pytest.raises(refuse, match="was changed after round 4"):
        snapshots.verify(folder)
    (folder / "round-000004.npz").unlink()
    with pytest.raises(refuse, match="is not there"):
        snapshots.verify(folder)
    with pytest.raises(refuse, match="no chain of snapshots"):
        snapshots.verify(folder / "none")


def test_doubt_is_what_nodes_differ_by():
    x = np.array([[1.0, 0.0], [0.0, 2.0]])
    lines = tacita.from_arrays(x, [1.0, 2.0], [0, 1], "linear")
    told = uncertainty.predictions(lines, [[1.0, 1.0], [3.0, 1.0]], x)
    np.testing.assert_allclose(told.value, [2.0, 2.0])
    np.testing.assert_allclose(told.doubt, [1.0, 0.0])
    classes = tacita.from_arrays(x, [-1, 1], [0, 1], "logistic")
    votes = uncertainty.predictions(classes, [[1, 1], [2, 1], [-1.0, 1]], x)
    np.testing.assert_allclose(votes.value, [1, 1])
    np.testing.assert_allclose(votes.doubt, [1 / 3, 0])
    kinds = tacita.from_arrays(x, [1.0, 2.0], [0, 1], {0: "linear", 1: "huber"})
    own = uncertainty.predictions(kinds, [[1.0, 1.0], [3.0, 1.0]], x)
    np.testing.assert_allclose(own, told)


def test_operations_are_those_of_the_compiled_program():
    """A logistic gradient is two products with the rows: about 4 m d operations."""
    problem = synthetic.logistic(agents=3, features=20, samples=100)
    full = operations_of_gradient(problem, tacita.FedAvg(step_size=0.1))
    assert 4 * 20 * 100 <= full <= 1.3 * 4 * 20 * 100


def test_energy_follows_from_the_users_numbers_only():
    problem = synthetic.logistic(agents=3, features=20, samples=100)
    algorithm = tacita.FedAvg(step_size=0.1, local_steps=5)
    run = tacita.simulate(problem, algorithm, 7, record=())
    bare = energy(problem, algorithm, run)
    assert bare.joules is None and bare.kilograms is None
    one = operations_of_gradient(problem, algorithm)
    assert bare.operations == pytest.approx(7 * 3 * 5 * one)
    assert bare.bytes == 7 * 3 * 2 * 20 * 8
    given: dict[str, Any] = {"joules_per_operation": 1e-9, "joules_per_byte": 1e-6}
    told = energy(problem, algorithm, run, **given, kilograms_per_kwh=0.4)
    joules = bare.operations * 1e-9 + bare.bytes * 1e-6
    assert told.joules == pytest.approx(joules)
    assert told.kilograms == pytest.approx(joules / 3.6e6 * 0.4)
    with pytest.raises(tacita.TacitaError, match="CO2e follows from joules"):
        energy(problem, algorithm, run, kilograms_per_kwh=0.4)
    with pytest.raises(tacita.TacitaError, match="give gradients="):
        energy(problem, tacita.ProxSkip(step_size=0.1), run)


def test_a_run_whose_work_is_not_counted_is_examined_all_the_same(tmp_path):
    nodes = synthetic.linear(agents=4, features=2, samples=6, graph=graph.ring(4))
    algorithm = tacita.FedRelax(alpha=0.5)
    run = tacita.simulate(nodes, algorithm, 2, record=())
    told = examine(nodes, algorithm, run)
    assert told.energy["operations"] is None and told.energy["bytes"] > 0
    sentence, table = trustworthy.energy(told.energy)
    assert sentence.startswith("Training took work that is not counted and ")
    assert table.rows[0] == ("operations of all agents", "not known")
    page = tacita.report.write_report(told.attach(run), tmp_path)
    assert "work that is not counted" in page.read_text()
    with pytest.raises(tacita.TacitaError, match="give gradients="):
        examine(nodes, algorithm, run, joules_per_operation=1e-9, joules_per_byte=1.0)
