"""The person at a site: what is offered, what would leave, who agreed, the log."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import tomli_w
from typer.testing import CliRunner

import tacita
from tacita.cli.app import app
from tacita.federation import Agent, Hub, Policy, PostRoom
from tacita.federation.audit_log import NAME, AuditLog
from tacita.federation.description import Description
from tacita.federation.wire import Identity
from tacita.privacy import Ledger
from tacita.privacy.ledger.backup import back_up, restore
from tests.federation.by_hand import ByHand
from tests.federation.towns import LENIENT, NAMES, Town, run_of, table_of_rows

BUDGET = {"epsilon": 1.0, "delta": 1e-5, "norm": 1.0}


def invoke(*words: object) -> str:
    answer = CliRunner().invoke(app, [str(w) for w in words])
    assert answer.exit_code == 0, answer.output
    return answer.output


def refused(*words: object) -> str:
    answer = CliRunner().invoke(app, [str(w) for w in words])
    assert answer.exit_code == 2, answer.output
    assert len(answer.output.strip().split("\n")) == 1
    return answer.output


def test_a_run_waits_for_a_person_who_may_decline_it(tmp_path: Path):
    town, home = ByHand(tmp_path), tmp_path / "ada-home"
    town.join("ada", table_of_rows("ada"), {**LENIENT, "approval": True})
    private = {**BUDGET, "observer": "coordinator"}
    first = town.describe(run_of(5, privacy=private))
    other = town.describe(run_of(4))
    for run in (first, other):
        told = town.answer_of(run)
        assert (told["kind"], told["code"]) == ("refuse", "waiting")
    assert town.answer_of(first)["code"] == "waiting"  # however often it is asked
    shown = invoke("offers", "--folder", home)
    for word in (
        first.digest[:12],
        "would release: epsilon 1 at delta 1e-5",
        "it holds if",
    ):
        assert word in shown
    for word in ("x0, x1, x2", "for one record", "NO PRIVACY", "FedAvg", "waits"):
        assert word in shown
    assert "no offer begins" in refused("accept", "zz", "--folder", home)
    assert "no offer begins" in refused("decline", "", "--folder", home)
    assert "is declined" in invoke("decline", other.digest[:8], "--folder", home)
    assert town.answer_of(other)["code"] == "refused"
    assert "is accepted" in invoke("accept", first.digest[:8], "--folder", home)
    assert town.answer_of(first)["kind"] == "accept"
    assert "declined" in (shown := invoke("offers", "--folder", home))
    assert "accepted" in shown
    town.say("withdraw", "ada", first.digest)
    log = invoke("log", "--folder", home)
    for word in ("offer", "waiting", "decision", '"decline"', '"accept"', "accepted"):
        assert word in log
    events = AuditLog(home).events()
    decided = [told for told in events if told["event"] == "decision"]
    assert [told["word"] for told in decided] == ["decline", "accept"]
    assert all(told["who"] for told in decided)


def test_a_yes_does_not_override_the_policy(tmp_path: Path):
    town, home = ByHand(tmp_path), tmp_path / "ada-home"
    policy = {**LENIENT, "approval": True, "max_local_steps": 2}
    town.join("ada", table_of_rows("ada"), policy)
    run = town.describe(run_of())  # three local steps
    assert town.answer_of(run)["code"] == "waiting"
    invoke("accept", run.digest, "--folder", home)
    assert town.answer_of(run)["code"] == "refused"


def test_commands_of_a_person_name_what_is_missing(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "0 folders of agents are here" in refused("offers")
    assert "there is no folder" in refused("log", "--folder", tmp_path / "none")
    home = tmp_path / "tacita-town-ada"
    AuditLog(home).note("offer", run="r", name="bad \x1b[2J name")
    assert "no offers wait" in invoke("offers")
    said = invoke("log")
    assert "\x1b" not in said and "1 lines, head: " in said
    (home / "offers").mkdir()
    (home / "offers" / "abc.json").write_text("{}")
    assert "abc.json is damaged" in refused("offers")


@pytest.fixture
def log(tmp_path: Path) -> AuditLog:
    made = AuditLog(tmp_path / "home")
    for number in range(6):
        made.note("release", run="r", round=number)
    return made


def test_the_log_is_a_chain(log: AuditLog):
    events = log.events()
    assert [told["round"] for told in events] == [*range(6)]
    assert log.path.stat().st_mode & 0o777 == 0o600
    assert len(log.events(head=events[2]["digest"])) == 6
    whole = log.path.read_bytes()
    lines = whole.splitlines(keepends=True)
    for at in range(0, len(whole), 23):
        changed = bytearray(whole)
        changed[at] ^= 1
        log.path.write_bytes(bytes(changed))
        with pytest.raises(tacita.TacitaError, match="was changed|missing"):
            log.events()
    for cut in (
        [*lines[:2], *lines[3:]],
        lines[1:],
        [*lines[:3], lines[2], *lines[3:]],
    ):
        log.path.write_bytes(b"".join(cut))
        with pytest.raises(tacita.TacitaError, match="was changed|missing"):
            log.events()
    log.path.write_bytes(b"".join(lines[:3]))
    assert len(log.events()) == 3  # a chain that was cut is whole: hence the head
    with pytest.raises(tacita.TacitaError, match="lines were cut off"):
        log.events(head=events[4]["digest"])


def test_a_torn_line_stays_and_is_vouched_for(log: AuditLog):
    whole = log.path.read_bytes()
    log.path.write_bytes(whole[:-1])  # only the end of the line is missing
    log.note("offer", run="next")
    assert log.path.read_bytes().startswith(whole)
    assert [told["event"] for told in log.events()[5:]] == ["release", "offer"]
    for cut in (2, 40, 80):
        log.path.write_bytes(whole[:-cut])
        assert len(log.events()) == 5
        log.note("offer", run="next")
        events = log.events()
        assert [told["event"] for told in events[5:]] == ["torn", "offer"]
        torn = log.path.read_bytes().split(b"\n")[5]
        assert torn and whole.endswith(torn + whole[-cut:])
        changed = log.path.read_bytes().replace(torn, torn[:-1])
        log.path.write_bytes(changed)
        with pytest.raises(tacita.TacitaError, match="was changed"):
            log.events()
    log.path.write_bytes(b"nonsense\n")
    with pytest.raises(tacita.TacitaError, match="damaged at its end"):
        log.note("offer")


def test_what_happened_is_in_the_log_of_every_agent(tmp_path: Path):
    with Town(tmp_path, PostRoom()) as town:
        town.run(run_of(3, privacy=BUDGET))
    for name in NAMES:
        events = AuditLog(tmp_path / f"{name}-home").events()
        assert [told["event"] for told in events] == [
            "offer",
            "accepted",
            "consents",
            *["release"] * 3,
        ]
        assert events[1]["privacy"]["epsilon"] == 1.0
        assert [told["round"] for told in events[3:]] == [1, 2, 3]
    # A log that was touched stops the agent before it says anything.
    path = tmp_path / "ada-home" / NAME
    path.write_bytes(path.read_bytes().replace(b'"round": 2', b'"round": 9'))
    options = {**town.options("ada"), "ledger": None}
    made = Agent(town.hub.invitations["ada"], {}, LENIENT, **options)
    with pytest.raises(tacita.TacitaError, match="line 5 was changed"):
        made.take_part(10)


def would_refuse(*words: object) -> str:
    """What is told of a run that would be refused: all lines, and the exit code."""
    answer = CliRunner().invoke(app, [str(w) for w in words])
    assert answer.exit_code == 2, answer.output
    return answer.output


def test_a_preview_tells_what_would_leave_and_sends_nothing(tmp_path: Path):
    made = Hub.create(tmp_path / "hub", "town", NAMES, port=0).invitations["ada"]
    data, run = tmp_path / "ada.csv", tmp_path / "run.toml"
    table_of_rows("ada").to_csv(data, index=False)
    run.write_text(tomli_w.dumps(run_of(3, privacy=BUDGET)))
    policy = tmp_path / "policy.toml"
    policy.write_text(tomli_w.dumps({"max_epsilon": 1.5, "allow_shared_seed": True}))
    words = ["join", made, "--data", data, "--policy", policy]
    words += ["--folder", tmp_path / "home"]
    said = invoke(*words, "--check", run)
    for word in (
        "sends: 3 letters to coordinator, one a round: float64[3] (24 bytes at most)",
        "sends: 72 bytes of numbers in all",
        "reads: columns x0, x1, x2; target y",
        "rows: 30 train, 0 test and never train",
        "noise: standard deviation 0.",
        "costs: epsilon 0 now, 1 after this run (delta 1e-05, against the coordinator",
        "for one record, replace_one), all runs of 'ada' together; allowed 1.5",
        "tells: that it accepts, with its signature; its round",
        "theorem: ",
        "assumes (enforced): ",
    ):
        assert word in said, said
    assert not (tmp_path / "home").exists()
    ring = {"name": "DPNorm", "step_size": 0.1, "local_steps": 2}
    told = run_of(3, privacy=BUDGET, algorithm=ring, graph={"kind": "ring"})
    told["problem"]["bound"] = 3.0
    run.write_text(tomli_w.dumps(told))
    said = invoke(*words, "--check", run)
    for word in ("3 letters to bob", "3 letters to cyd", "against the neighbour"):
        assert word in said, said
    assert "no offer begins with '3f2a9c'" in refused(*words, "--check", "3f2a9c")
    run.write_text(tomli_w.dumps(run_of(3, privacy={**BUDGET, "epsilon": 2.0})))
    said = would_refuse(*words, "--check", run)
    assert "would not take part: epsilon=2.0 is above" in said
    run.write_text(tomli_w.dumps(run_of(3)))
    assert "letters leave protected here" in would_refuse(*words, "--check", run)
    assert not (tmp_path / "home").exists()
    # Rows that would not fit are found here, before anybody else could notice.
    policy.write_text(tomli_w.dumps(LENIENT))
    table_of_rows("ada").drop(columns="x1").to_csv(data, index=False)
    said = would_refuse(*words, "--check", run)
    assert "would not take part" in said and "'x1'" in said


def test_files_with_semicolons_take_part(tmp_path: Path):
    made = Hub.create(tmp_path / "hub", "town", NAMES, port=0).invitations["ada"]
    data, run = tmp_path / "ada.csv", tmp_path / "run.toml"
    table = table_of_rows("ada")
    table.to_csv(data, index=False, sep=";")
    table[:7].to_csv(tmp_path / "test.csv", index=False, sep=";")
    run.write_text(tomli_w.dumps(run_of(3, privacy=BUDGET)))
    policy = tmp_path / "policy.toml"
    policy.write_text(tomli_w.dumps({"max_epsilon": 1.5, "allow_shared_seed": True}))
    words = ["join", made, "--data", data, "--policy", policy, "--check", run]
    words += ["--folder", tmp_path / "home", "--test", tmp_path / "test.csv"]
    said = would_refuse(*words)
    assert "is the separator right?" in said
    said = invoke(*words, "--separator", ";")
    assert "rows: 30 train, 7 test and never train" in said


def test_joining_without_a_policy_is_refused(tmp_path: Path):
    made = Hub.create(tmp_path / "hub", "town", NAMES, port=0).invitations["ada"]
    data, run = tmp_path / "ada.csv", tmp_path / "run.toml"
    table_of_rows("ada").to_csv(data, index=False)
    run.write_text(tomli_w.dumps(run_of(3)))
    words = ["join", made, "--data", data, "--folder", tmp_path / "home"]
    assert "no policy, so no run is accepted" in refused(*words)
    policy = tmp_path / "policy.toml"
    policy.write_text("max_epsilon = 1.0")
    trusting = [*words, "--trust-everything"]
    assert "exclude each other" in refused(*trusting, "--policy", policy)
    # Even then nobody else may know the noise.
    said = would_refuse(*trusting, "--check", run)
    assert "randomness is known to everybody" in said
    told = run_of(3, run={"rounds": 3})
    run.write_text(tomli_w.dumps(told))
    said = invoke(*trusting, "--check", run)
    assert "sends: 3 letters" in said and "NO PRIVACY" in said


def test_what_is_left_is_told_unless_it_could_tell_of_rows(tmp_path: Path):
    made = Hub.create(tmp_path / "hub", "town", NAMES, port=0).invitations["ada"]
    tables = run_of(2, privacy={**BUDGET, "observer": "coordinator"})
    run = ByHand(tmp_path / "other").describe(tables)
    lenient = {**LENIENT, "max_epsilon": 2.0, "data_name": "patients"}
    for number, (policy, ledger, words) in enumerate(
        (
            (lenient, None, {"round", "spent", "allowed"}),
            ({**lenient, "allow_row_counts": False}, None, {"round"}),
            (lenient, tmp_path / "shared.db", {"round"}),
        )
    ):
        home = tmp_path / f"home-{number}"
        home.mkdir()
        rows = table_of_rows("ada")
        agent = Agent(made, rows, policy, ledger=ledger, folder=home)
        agent.party = SimpleNamespace(round=1)
        agent._agree_to(run)
        with agent.site.open_ledger():
            agent.site.prepare(run, agent._outline)
            assert set(json.loads(agent.remark("ask", "coordinator"))) == words


def release_all(agent: Agent, run: Any) -> float:
    """Charge a whole run; the epsilon that was spent then."""
    agent._agree_to(run)
    with agent.site.open_ledger():
        agent.site.prepare(run, agent._outline)
        for number in range(1, run.rounds + 1):
            name = Identity(
                run.federation, run.digest, "answer", number, 0, "ada", run.starter
            )
            agent.site.release(name, np.float64(number).tobytes())
        return agent.site.budget()["epsilon_spent"]


def test_two_federations_share_one_budget(tmp_path: Path):
    """The same rows in two federations, under another agent's name in each."""
    policy = {**LENIENT, "max_epsilon": 1.8, "data_name": "patients"}
    shared = tmp_path / "shared.db"
    spent = {}
    for federation, me in (("town", "ada"), ("land", "eve")):
        hub = Hub.create(tmp_path / federation, federation, [me, "zoe"], port=0)
        home = tmp_path / f"{federation}-home"
        home.mkdir()
        agent = Agent(
            hub.invitations[me],
            table_of_rows("ada"),
            policy,
            ledger=shared,
            folder=home,
            tell=lambda line: None,
        )
        tables = run_of(3, privacy={**BUDGET, "observer": "coordinator"})
        run = Description(federation, "try", "coordinator", (me, "zoe"), tables)
        if federation == "town":
            spent[federation] = release_all(agent, run)
            continue
        with agent.site.open_ledger():
            again = agent.judge.verdict(run, "an offer", agent.site.ledger)
            # Two runs of epsilon 1 come to 1.44: within 1.8, and counted together.
            assert again.accepted
        spent[federation] = release_all(agent, run)
    assert spent["town"] == pytest.approx(1.0, rel=1e-3)
    assert 1.3 < spent["land"] < 1.6
    with Ledger(shared, read_only=True) as ledger:
        assert {row.agent for row in ledger.rows() if row.agent} == {"patients"}


def test_what_left_is_looked_for_in_the_ledger(tmp_path: Path):
    """In another ledger, or under another name there, all that was spent was gone."""
    made = Hub.create(tmp_path / "hub", "town", NAMES, port=0).invitations["ada"]
    home, shared, own = tmp_path / "home", tmp_path / "shared.db", tmp_path / "own"
    rows, tables = table_of_rows("ada"), {**BUDGET, "observer": "coordinator"}
    run = ByHand(tmp_path / "other").describe(run_of(2, privacy=tables))

    def agent(folder: Path, ledger: Path | None, **policy: Any) -> Agent:
        folder.mkdir(exist_ok=True)
        allowed = Policy.anything(allow_shared_seed=True, **policy)
        return Agent(made, rows, allowed, ledger=ledger, folder=folder)

    spent = release_all(agent(home, shared, data_name="patients"), run)
    release_all(agent(own, None), run)
    for folder, ledger, policy in (
        (home, shared, {"data_name": "others"}),
        (home, None, {}),
        (home, tmp_path / "new.db", {"data_name": "patients"}),
        (own, shared, {"data_name": "patient"}),
    ):
        other = agent(folder, ledger, **policy)
        with pytest.raises(tacita.TacitaError, match="would begin at zero; name the"):
            other.site.open_ledger()
        assert other.site.ledger.path.exists()
    # The ledger that an agent began with may be shared from then on.
    with agent(own, own / "ledger.db", data_name="ada").site.open_ledger() as ledger:
        assert ledger.learnt("ada", "coordinator", BUDGET["delta"]) == spent
    # A backup from before the run counts as spent, and is taken for that.
    Ledger(tmp_path / "early.db").close()
    with Ledger(tmp_path / "early.db") as early:
        early.allow(agent="ada", epsilon=1.0, delta=1e-5)
    back_up(tmp_path / "early.db", tmp_path / "early.backup")
    for file in own.glob("ledger.db*"):
        file.unlink()
    restore(tmp_path / "early.backup", own / "ledger.db")
    agent(own, None).site.open_ledger().close()


def test_what_is_charged_together_is_in_the_log_once_the_ledger_has_it(tmp_path: Path):
    """A crash while it was charged left a log that no ledger would ever fit."""
    made = Hub.create(tmp_path / "hub", "town", NAMES, port=0).invitations["ada"]
    home = tmp_path / "home"
    home.mkdir()
    allowed = Policy.anything(allow_shared_seed=True, max_epsilon=3.0)
    agent = Agent(made, table_of_rows("ada"), allowed, folder=home)
    described = run_of(4, privacy={**BUDGET, "observer": "coordinator"})
    run = ByHand(tmp_path / "other").describe(described)
    agent._agree_to(run)

    def charge_all(*, lost: bool) -> None:
        with agent.site.account.together():  # pyright: ignore
            for number in (1, 2, 3):
                one = Identity("town", run.digest, "answer", number, 0, "ada", "")
                agent.site.release(one, None)
            if lost:
                raise KeyboardInterrupt

    def logged() -> list[int]:
        events = agent.judge.log.events()
        return [one["round"] for one in events if one["event"] == "release"]

    with agent.site.open_ledger():
        agent.site.prepare(run, agent._outline)
        with pytest.raises(KeyboardInterrupt):
            charge_all(lost=True)
        assert logged() == []
        charge_all(lost=False)
        assert logged() == [1, 2, 3]
    agent.site.open_ledger().close()


@pytest.mark.parametrize("schedule", ["uniform", "prefix"])
def test_a_report_counts_what_another_folder_may_have_said(schedule, tmp_path: Path):
    """The ledger counted it, and the report of the run did not."""
    made = Hub.create(tmp_path / "hub", "town", NAMES, port=0).invitations["ada"]
    home, tables = tmp_path / "home", {**BUDGET, "observer": "coordinator"}
    home.mkdir()
    allowed = Policy.anything(allow_shared_seed=True, max_epsilon=3.0)
    agent = Agent(made, table_of_rows("ada"), allowed, folder=home)
    described = run_of(4, privacy={**tables, "schedule": schedule})
    run = ByHand(tmp_path / "other").describe(described)
    agent._agree_to(run)
    with agent.site.open_ledger():
        agent.site.prepare(run, agent._outline)

        def said(kind: str, number: int, content: bytes | None) -> None:
            one = Identity("town", run.digest, kind, number, 0, "ada", run.starter)
            agent.site.release(one, content)

        said("answer", 1, b"1")
        said("elsewhere", 1, None)
        for content in (None, b"again"):
            for number in (2, 3, 4):
                said("answer", number, content)
        report = agent.site.privacy()
        spent = agent.site.budget()["epsilon_spent"]
    row = report.row("coordinator")
    assert row.epsilon is not None and row.epsilon >= spent * (1 - 1e-9) > 1.4
    assert schedule == "prefix" or row.epsilon == pytest.approx(spent)
    assert report.rounds == 4
    assert "4 rounds count twice" in str(row.assumptions)


def test_a_run_that_was_only_looked_at_leaves_no_trace_in_the_ledger(tmp_path: Path):
    """It bound the rows to its unit: all later runs in another one were refused."""
    made = Hub.create(tmp_path / "hub", "town", NAMES, port=0).invitations["ada"]
    home = tmp_path / "home"
    home.mkdir()
    rows, policy = table_of_rows("ada"), {**LENIENT, "max_epsilon": 2.0}
    agent = Agent(made, rows, policy, folder=home, tell=lambda line: None)
    budget = {**BUDGET, "observer": "coordinator"}

    def described(name: str, **privacy: Any) -> Description:
        tables = run_of(3, privacy=budget | privacy)
        return Description("town", name, "coordinator", tuple(NAMES), tables)

    with agent.site.open_ledger():
        ledger = agent.site.ledger
        head = ledger.head()
        for privacy, accepted in (
            ({"epsilon": 3.0}, False),
            ({"unit": "client"}, True),
            ({}, True),
        ):
            run = described(str(privacy), **privacy)
            assert agent.judge.verdict(run, "offer", ledger).accepted == accepted
        assert ledger.head() == head
    release_all(agent, run)
    with agent.site.open_ledger():
        other = described("others", unit="client")
        assert not agent.judge.verdict(other, "offer", agent.site.ledger).accepted


def test_a_shared_ledger_needs_one_name_and_an_own_one_keeps_its_name(tmp_path: Path):
    made = Hub.create(tmp_path / "hub", "town", NAMES, port=0).invitations["ada"]
    rows, home = table_of_rows("ada"), tmp_path / "home"
    with pytest.raises(tacita.TacitaError, match="needs one name for the rows"):
        Agent(made, rows, Policy.anything(), ledger=tmp_path / "shared.db")
    home.mkdir()
    lenient = Policy.anything(allow_shared_seed=True)
    agent = Agent(made, rows, lenient, folder=home)
    tables = run_of(2, privacy={**BUDGET, "observer": "coordinator"})
    run = ByHand(tmp_path / "other").describe(tables)
    assert release_all(agent, run) > 0.9
    named = Policy.anything(allow_shared_seed=True, data_name="patients")
    with pytest.raises(tacita.TacitaError, match="would begin at zero; set data_name"):
        Agent(made, rows, named, folder=home).site.open_ledger()
    kept = json.loads((home / NAME).read_text().splitlines()[0])
    assert kept["event"] == "release"
