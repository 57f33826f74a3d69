"""The commands, and what they make of a description."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import tacita
from tacita.cli.app import app
from tacita.federation import (
    Agent,
    Hub,
    Invitation,
    Policy,
    PrivateKeys,
    Request,
)
from tacita.federation import setting as party
from tacita.federation.agent_keys import OwnKeys
from tacita.federation.budget import privacy_of, with_budget
from tacita.federation.description import Description
from tacita.federation.own_rows import blank_problem, own_problem
from tacita.federation.party import Withdrawn
from tacita.federation.wire import Identity, note
from tacita.privacy import Ledger
from tests.federation.towns import run_of

AGENTS = ("ada", "bob", "cyd")


def invoke(*words: object) -> str:
    answer = CliRunner().invoke(app, [str(w) for w in words])
    assert answer.exit_code == 0, answer.output
    return answer.output


def refused(*words: object) -> str:
    answer = CliRunner().invoke(app, [str(w) for w in words])
    assert answer.exit_code == 2, answer.output
    return answer.output


def describe(**tables) -> Description:
    made = {**run_of(), **tables}
    return Description("town", "try", "coordinator", AGENTS, made)


def test_a_federation_is_made_with_own_keys(tmp_path: Path):
    told = invoke("site", "request", "oslo", "--folder", tmp_path)
    words = ("site", "request", "oslo", "--folder", tmp_path)
    assert "may be in use" in refused(*words)
    folder, asked = tmp_path / "hub", tmp_path / "oslo.request.json"
    words = ["hub", "init", folder, "--name", "clinics", "--agents", "turku"]
    assert "tacita hub start" in invoke(*words, "--port", 4333)
    signed = invoke("hub", "sign", folder, asked)
    fingerprint = Request.load(asked).fingerprint
    assert fingerprint in told and fingerprint in signed
    oslo = folder / "invitations" / "oslo.json"
    me = Invitation.load(oslo, tmp_path / "oslo.keys.json")
    assert me.agents == ["oslo", "turku"]
    assert fingerprint in invoke("hub", "sites", folder)
    assert Hub(folder).port == 4333
    assert "holds a federation already" in refused(*words)
    assert "is a member already" in refused("hub", "sign", folder, asked)
    assert "no federation in" in refused("hub", "start", tmp_path)
    assert "no status in" in refused("federation", "status", tmp_path)


def test_hubs_and_keys_that_cannot_be_are_refused(tmp_path: Path):
    file, hub = tmp_path / "file", tmp_path / "hub"
    file.write_text("{}")
    name = ("--name", "clinics", "--agents")
    for words, reason in (
        (("hub", "init", hub, *name, "oslo", "--host", ""), "got host=''"),
        (("hub", "init", hub, *name, "oslo", "--port", 70000), "expected a port"),
        (("hub", "init", hub, *name, "oslo", "--brokers", 0), "one for each broker"),
        (("hub", "init", hub, *name, "hub"), "no party may be called"),
        (("hub", "init", file, *name, "oslo"), "a folder of your own"),
        (("hub", "sites", hub), "no federation in"),
        (("hub", "add", hub, "oslo"), "no federation in"),
        (("site", "request", "os lo"), "expected a name of a-z"),
        (("site", "request", "hub"), "no party may be called"),
        (("site", "request", "oslo", "--folder", file), "name a folder"),
        (("site", "request", "oslo", "--rotate", file), "chmod 600"),
    ):
        assert reason in refused(*words), words
    assert list(tmp_path.iterdir()) == [file]


def test_bad_runs_are_refused_before_anybody_is_asked(tmp_path: Path):
    made = Hub.create(tmp_path / "hub", "clinics", ["oslo"]).invitations
    invited = ["--invitation", made["coordinator"], "--folder", tmp_path / "home"]
    for text, reason in (
        ("name = 'x'", "no table [problem]"),
        ("[problem]\ncolumns=['a']\n[algorithm]\n[run]", "missing key problem.target"),
        (
            "[problem]\ncolumns=['a']\ntarget='b'\n[run]\nrounds=3\n[algorithm]\n"
            "name='FedPLT'",
            "set every number of the algorithm",
        ),
        (
            "[problem]\ncolumns=['a']\ntarget='b'\n[run]\nrounds=3\n[algorithm]\n"
            "name='FedPTL'",
            "did you mean",
        ),
    ):
        (tmp_path / "run.toml").write_text(text)
        assert reason in refused("coordinate", tmp_path / "run.toml", *invited)


def test_rows_are_read_from_every_kind_of_file_alike(tmp_path: Path):
    x, y = np.random.default_rng(0).normal(size=(8, 3)), np.arange(8) % 2
    table = pd.DataFrame(x, columns=pd.Index(["x0", "x1", "x2"])).assign(y=y, name="q")
    table.to_csv(tmp_path / "a.csv", index=False)
    table.to_parquet(tmp_path / "a.parquet")
    columns = {c: table[c].to_numpy() for c in ("x0", "x1", "x2", "y")}
    np.savez(tmp_path / "a.npz", **columns)  # pyright: ignore
    moved = {**run_of()["problem"], "centre": [1.0, 0, 0], "spread": [1.0, 2.0, 1.0]}
    for run in (describe(), describe(problem=moved)):
        one = own_problem(run, tmp_path / "a.csv")
        for kind in ("npz", "parquet"):
            two = own_problem(run, tmp_path / f"a.{kind}")
            np.testing.assert_array_equal(one.stacked()[0], two.stacked()[0])
            np.testing.assert_array_equal(one.stacked()[1], two.stacked()[1])
        for given in (table, columns):  # a pandas table, a mapping
            two = own_problem(run, given)
            np.testing.assert_array_equal(one.stacked()[0], two.stacked()[0])
            np.testing.assert_array_equal(one.stacked()[1], two.stacked()[1])
        blank = blank_problem(run)
        assert blank.dim == one.dim and blank.dtype == one.dtype
    np.testing.assert_allclose(one.stacked()[0][0, :, 0], x[:, 0] - 1.0)
    words = {**run_of()["problem"], "columns": ["x0", "x1", "name"]}
    with pytest.raises(tacita.TacitaError, match="text in one of the columns"):
        own_problem(describe(problem=words), tmp_path / "a.csv")
    gone = {**run_of()["problem"], "columns": ["x0", "x9"]}
    for kind in ("csv", "npz"):
        with pytest.raises(tacita.TacitaError, match="x9"):
            own_problem(describe(problem=gone), tmp_path / f"a.{kind}")
    with pytest.raises(tacita.TacitaError, match="the table has no column 'x9'"):
        own_problem(describe(problem=gone), table)


def test_rows_of_one_class_are_read_like_any_others(tmp_path: Path):
    """An agent that ended because of its labels would tell of them."""
    told = {**run_of()["problem"], "columns": ["x0"], "classes": ["0", "1"]}
    for label, sign in ((0, -1), (1, 1)):
        table = pd.DataFrame({"x0": np.arange(4.0), "y": label})
        table.to_csv(tmp_path / "a.csv", index=False)
        for rows in (table, tmp_path / "a.csv"):
            made = own_problem(describe(problem=told), rows)
            assert made.stacked()[1].tolist() == [[sign] * 4]


@pytest.mark.parametrize("told", [{}, {"model": "logistic"}, {"model": "hinge"}])
def test_rows_of_one_sign_are_read_where_no_classes_are_named(told, tmp_path: Path):
    """One row with the other label decided whether an agent was silent."""
    told = {"columns": ["x0"], "target": "y", **told}
    for label, sign in ((0, -1), (-1, -1), (1, 1)):
        table = pd.DataFrame({"x0": np.arange(4.0), "y": label})
        for kind in ("csv", "parquet"):
            getattr(table, f"to_{kind}")(tmp_path / f"a.{kind}", index=False)
        for rows in (table, tmp_path / "a.csv", tmp_path / "a.parquet"):
            made = own_problem(describe(problem=told), rows)
            assert made.stacked()[1].tolist() == [[sign] * 4]
    table.assign(y="ill").to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(tacita.TacitaError, match="none of classes"):
        own_problem(describe(problem=told), tmp_path / "a.csv")


@pytest.mark.parametrize("model", ["linear", "ridge"])
def test_a_target_of_zeros_and_ones_is_a_number_to_a_linear_model(tmp_path, model):
    table = pd.DataFrame({"x0": np.arange(8.0), "y": np.arange(8) % 2})
    table.to_csv(tmp_path / "a.csv", index=False)
    told = {"model": model, "columns": ["x0"], "target": "y", "l2": 0.1}
    for rows in (table, tmp_path / "a.csv"):
        made = own_problem(describe(problem=told), rows)
        np.testing.assert_array_equal(made.stacked()[1][0], np.arange(8) % 2)
        assert made.dim == blank_problem(describe(problem=told)).dim


def test_noise_depends_on_the_secret_the_run_and_the_rows(tmp_path: Path):
    open_run = {"rounds": 6}

    def root(secret: bytes, shift: float = 0.0, **run: object) -> bytes:
        told = describe(run={**open_run, **run})
        x = np.linspace(0, 1, 24).reshape(8, 3) + shift
        own = tacita.from_arrays(x, np.arange(8) % 2, np.zeros(8, int))
        setting = party.setting_of(told, own)
        made = party.keys_of(setting, "ada", secret)
        assert isinstance(made, OwnKeys)
        return made.root

    first = root(b"a" * 32)
    assert first == root(b"a" * 32)
    others = {root(b"b" * 32), root(b"a" * 32, 1.0), root(b"a" * 32, rounds=7)}
    assert len(others | {first}) == 4


def test_a_secret_is_made_once_and_kept_private(tmp_path: Path):
    own, path = PrivateKeys.fresh(), tmp_path / "secret.locked"
    first = party.secret_of(tmp_path, own)
    assert len(first) == 32 and party.secret_of(tmp_path, own) == first
    assert first not in path.read_bytes()
    with pytest.raises(tacita.TacitaError, match="locked with other keys"):
        party.secret_of(tmp_path, PrivateKeys.fresh())
    path.chmod(0o644)
    with pytest.raises(tacita.TacitaError, match="chmod 600"):
        party.secret_of(tmp_path, own)


def test_a_budget_on_a_graph_holds_against_a_neighbour(tmp_path: Path):
    run = describe(
        problem={**run_of()["problem"], "bound": 5.0},
        algorithm={"name": "DPNorm", "step_size": 0.1, "local_steps": 3},
        graph={"edges": [["ada", "bob"], ["bob", "cyd"]]},
        privacy={"epsilon": 1.0, "delta": 1e-5},
    )
    setting = party.setting_of(run, blank_problem(run))
    with Ledger(tmp_path / "ledger.db") as ledger:
        ready, charge = with_budget(setting, "bob", ledger, None)
        for number in range(1, run.rounds + 1):
            name = Identity("f", run.digest, "answer", number, 0, "bob", "")
            charge(name, b"letter")
        spent = ledger.spent(1e-5)
        longer = describe(**{**run.tables, "run": {"rounds": 7}})
        again = replace(setting, run=longer)
        with pytest.raises(tacita.TacitaError, match="1 is allowed here for all runs"):
            with_budget(again, "bob", ledger, 1.0)
        # An owner who sets no limit lets every run add its own.
        with_budget(again, "bob", ledger, None)
        budget = ledger.budget("bob")
    assert budget is not None and 1.0 < (budget.epsilon or 0) < 2.0
    # The node with two neighbours answers for all of its letters, and no more.
    assert spent["bob", "everybody"] == pytest.approx(1.0, rel=1e-3)
    half = privacy_of(ready, run.rounds // 2)
    report = privacy_of(ready, run.rounds)
    assert report.row("neighbour").epsilon == pytest.approx(1.0, rel=1e-3)
    assert not report.planned
    assert (half.row("neighbour").epsilon or 9) < 0.9


def test_one_budget_for_a_server_run_and_a_graph_run(tmp_path: Path):
    """Who coordinates the one may be a neighbour in the other: that came to 1.465."""
    budget = {"privacy": {"epsilon": 1.0, "delta": 1e-5}}
    server = describe(algorithm={"name": "DPSGD", "step_size": 0.1}, **budget)
    graph = describe(
        problem={**run_of()["problem"], "bound": 5.0},
        algorithm={"name": "DPNorm", "step_size": 0.1, "local_steps": 3},
        graph={"edges": [["ada", "bob"], ["bob", "cyd"]]},
        **budget,
    )
    settings = [party.setting_of(run, blank_problem(run)) for run in (server, graph)]
    with Ledger(tmp_path / "ledger.db") as ledger:
        _, charge = with_budget(settings[0], "bob", ledger, 1.0)
        for number in range(1, server.rounds + 1):
            name = Identity("f", server.digest, "answer", number, 0, "bob", "")
            charge(name, b"letter")
        with pytest.raises(tacita.TacitaError, match=r"1\.46\d against the neighbour"):
            with_budget(settings[1], "bob", ledger, 1.0)
        # The same run goes on: what it charged counts once.
        with_budget(settings[0], "bob", ledger, 1.0)


def test_a_run_of_batches_fits_the_budget_it_was_made_for(tmp_path: Path):
    """Calibrated, forecast and charged by the same account: all rounds, and no more."""
    oracle = {"name": "Minibatch", "size": 2, "sampling": "without_replacement"}
    run = describe(
        algorithm={"name": "DPSGD", "step_size": 0.1, "oracle": oracle},
        privacy={"epsilon": 1.0, "delta": 1e-5},
    )
    setting = party.setting_of(run, blank_problem(run))
    with Ledger(tmp_path / "ledger.db") as ledger:
        _, charge = with_budget(setting, "bob", ledger, 1.0)
        for number in range(1, run.rounds + 1):
            charge(Identity("f", run.digest, "answer", number, 0, "bob", ""), b"letter")
        assert 0.99 < ledger.spent(1e-5)["bob", "everybody"] <= 1.0
        with pytest.raises(tacita.privacy.BudgetExceeded, match="of 1.0"):
            charge(Identity("f", "another run", "answer", 1, 0, "bob", ""), b"letter")


def test_a_policy_that_parts_observers_is_told_why_it_cannot(tmp_path: Path):
    path = tmp_path / "policy.toml"
    path.write_text('max_epsilon = 1.0\nseparate = [["coordinator"], ["neighbour"]]\n')
    with pytest.raises(tacita.TacitaError, match="count as one person") as refusal:
        Policy.read(path)
    assert "\n" not in str(refusal.value)


def test_no_budget_for_an_algorithm_that_looks_at_the_rows(tmp_path: Path):
    run = describe(
        algorithm={"name": "FedRelax", "alpha": 0.4},
        graph={"edges": [["ada", "bob"], ["bob", "cyd"]]},
        privacy={"epsilon": 1.0, "delta": 1e-5},
    )
    setting = party.setting_of(run, blank_problem(run))
    with (
        Ledger(tmp_path / "ledger.db") as ledger,
        pytest.raises(
            tacita.TacitaError, match="without a solver needs exact gradients"
        ),
    ):
        with_budget(setting, "ada", ledger, None)


def on_a_ring(rule: Any) -> Any:
    return describe(
        algorithm={"name": "FedRelax", "alpha": 0.4, "damping": 0.1},
        graph={"kind": "ring"},
        run={"rounds": 3, "aggregation": rule},
    )


def test_the_rule_of_a_graph_stands_in_the_signed_description():
    runs = [on_a_ring({"name": "ClippedGossip", "drop": k}) for k in (0, 1)]
    for k, run in enumerate(runs):
        made = party.setting_of(run, blank_problem(run))
        rule = made.roles.aggregation
        assert isinstance(rule, tacita.aggregation.ClippedGossip) and rule.drop == k
    assert runs[0].digest != runs[1].digest
    many = on_a_ring({"name": "Bridge", "trim": 1})
    with pytest.raises(tacita.TacitaError, match="a node has 2 neighbours only"):
        party.setting_of(many, blank_problem(many))


def test_the_rule_of_a_coordinator_stands_there_too():
    def asked(rule: dict[str, Any], **run: Any) -> Any:
        told = describe(run={"rounds": 3, "aggregation": rule, **run})
        return party.setting_of(told, blank_problem(told)).roles.aggregation

    rule = asked({"name": "TrimmedMean", "trim": 1})
    assert isinstance(rule, tacita.aggregation.TrimmedMean) and rule.trim == 1
    with pytest.raises(tacita.TacitaError, match="joins at least 5 letters, got 3"):
        asked({"name": "TrimmedMean", "trim": 2})
    with pytest.raises(tacita.TacitaError, match="root's letter in every round"):
        asked({"name": "FLTrust", "root": 0}, participation=2)


def test_a_description_names_whom_its_budget_is_against():
    budget = {"epsilon": 1.0, "delta": 1e-5}
    named = party.with_observer(describe(privacy=budget))
    assert named.privacy == {**budget, "observer": "coordinator"}
    assert party.with_observer(named) == named
    wrong = describe(privacy={**budget, "observer": "neighbour"})
    with pytest.raises(tacita.TacitaError, match="are read by a coordinator"):
        party.setting_of(wrong, blank_problem(wrong))


def test_an_agents_invitation_proposes_no_run(tmp_path: Path):
    made = Hub.create(tmp_path / "hub", "clinics", ["oslo"]).invitations
    (tmp_path / "run.toml").write_text("")
    words = ["coordinate", tmp_path / "run.toml", "--invitation", made["oslo"]]
    assert "invites the agent 'oslo'" in refused(*words)
    words = ["join", made["oslo"], "--data", tmp_path / "none.csv"]
    words += ["--trust-everything"]
    assert "there is no file" in refused(*words)


def test_a_run_may_begin_without_everybody_only_with_a_deadline():
    with pytest.raises(tacita.TacitaError, match="needs run.deadline"):
        describe(run={"rounds": 3, "least_agents": 2})
    made = describe(run={"rounds": 3, "least_agents": 2, "deadline": 1.0})
    assert made.least_agents == 2 and describe().least_agents == 3


def test_the_status_of_a_coordinator_has_a_line_for_every_agent(tmp_path: Path):
    told = {
        "party": "coordinator",
        "round": 4,
        "rounds": 9,
        "finished": False,
        "connected": True,
        "agents": ["ada", "bob"],
        "seconds_since": {"ada": 0.4},
        "told": {"ada": {"round": 3.0, "spent": 0.75, "allowed": 2.0}},
        "under_way": {"ada": [2, 5]},
        "letters": {
            "ada": dict.fromkeys(("distance", "cosine", "length", "rank"), 0.25)
            | {"used": 1.0, "letters": 8, "times_used": 6.5}
        },
        "promise": {
            "delta": 1e-5,
            "observer": "coordinator",
            "unit": "record",
            "relation": "replace_one",
            "theorem": "a theorem",
            "assumptions": [],
        },
        "sent": 7,
        "sent_bytes": 4096,
        "received": 5,
        "received_bytes": 12,
        "refused": {},
    }
    (tmp_path / "status.json").write_text(json.dumps(told))
    answer = CliRunner().invoke(app, ["federation", "status", str(tmp_path)])
    assert answer.exit_code == 0
    lines = answer.output.splitlines()
    ada, seen = (line.split() for line in lines if line.strip().startswith("ada"))
    assert seen[1:] == [*["0.25"] * 4, "1", "6.5", "of", "8"]
    assert "nobody is left out" in answer.output
    assert ada[:2] == ["ada", "no"] and ada[-2:] == ["3", "1.25"]  # an old status
    (bob,) = (line.split() for line in lines if line.strip().startswith("bob"))
    assert bob[1:3] == ["no", "never"]
    assert "receiving from ada: piece 2 of 5" in answer.output
    assert "against the coordinator, by: a theorem" in answer.output
    assert "no sign of life" in lines[0]
    (tmp_path / "status.json").write_text(json.dumps({**told, "written": time.time()}))
    answer = CliRunner().invoke(app, ["federation", "status", str(tmp_path)])
    assert "coordinator: running, round 4 of 9" in answer.output
    assert present(answer.output) == ["yes", "no"]
    over = {**told, "written": time.time(), "finished": True}
    (tmp_path / "status.json").write_text(json.dumps(over))
    answer = CliRunner().invoke(app, ["federation", "status", str(tmp_path)])
    assert present(answer.output) == ["-", "-"]  # after the end nobody looks


def present(said: str) -> list[str]:
    """Who is there, of the first table of a status."""
    lines = [line.split() for line in said.splitlines()]
    return [line[1] for line in lines if line[:1] in (["ada"], ["bob"])][:2]


def test_an_agent_turns_to_a_new_run_only_before_it_spoke(tmp_path: Path):
    hub = Hub.create(tmp_path / "hub", "town", AGENTS)
    policy = Policy.anything()
    agent = Agent(hub.invitations["ada"], {}, policy, folder=tmp_path / "ada")
    agent._agree_to(describe())
    starter = Invitation.load(hub.invitations["coordinator"]).keys
    assert starter is not None
    same, other = describe(), describe(run={"rounds": 7})

    def greet(kind: str, text: str, sender: str = "coordinator") -> Any:
        return agent.greet(note(kind, "town", sender, "ada", text))

    for kind, text in (("offer", other.signed(starter)), ("withdraw", same.digest)):
        assert greet(kind, text, "bob") is None
        with pytest.raises(Withdrawn):
            greet(kind, text)
    assert greet("withdraw", other.digest) is None
    assert greet("offer", same.signed(starter)).identity.kind == "accept"
    agent.party = SimpleNamespace(round=1)
    assert greet("offer", other.signed(starter)) is None
    # Whoever kept an old letter may send it again, at any time.
    assert greet("withdraw", same.digest) is None
