"""What is not allowed is refused: policies, invented agents, lying coordinators."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w

import tacita
from tacita.disk import Unwritable
from tacita.federation import Agent, Hub, Invitation, Policy, Post, consent
from tacita.federation.audit_log import AuditLog
from tacita.federation.description import Description
from tacita.federation.offers import OfferBook
from tacita.federation.own_rows import blank_problem, numbers_of
from tacita.federation.rehearsal import require_parts_allowed
from tacita.federation.setting import blank_setting, setting_of
from tacita.federation.wire import Identity, LetterRefused
from tacita.privacy import Ledger
from tests.federation.by_hand import ByHand
from tests.federation.towns import LENIENT, NAMES, run_of, table_of_rows

BUDGET = {"epsilon": 1.0, "delta": 1e-5, "norm": 1.0, "observer": "coordinator"}


def describe(agents: Any = NAMES, **tables: Any) -> Description:
    return Description(
        "town", "try", "coordinator", tuple(agents), {**run_of(), **tables}
    )


@pytest.fixture
def town(tmp_path: Path) -> ByHand:
    return ByHand(tmp_path)


@pytest.fixture(scope="module")
def hub(tmp_path_factory) -> Hub:
    return Hub.create(tmp_path_factory.mktemp("hub"), "town", NAMES, port=0)


def agent_of(hub: Hub, home: Path, policy: Any, rows: Any = None) -> Agent:
    """An agent with its ledger open, that talks to nobody."""
    said: list[str] = []
    table = table_of_rows("ada") if rows is None else rows
    made = Agent(hub.invitations["ada"], table, policy, folder=home, tell=said.append)
    made.said = said  # pyright: ignore
    home.mkdir(exist_ok=True)
    made.site.open_ledger()
    return made


def refusal(agent: Agent, run: Description) -> str:
    """What an agent says to its own people when it refuses a run."""
    verdict = agent.judge.verdict(run, "an offer", agent.site.ledger)
    assert verdict == (False, "refused")
    return agent.said[-1]  # pyright: ignore


def test_without_a_policy_there_is_no_agent(hub: Hub, tmp_path: Path):
    with pytest.raises(tacita.TacitaError, match="no policy, so no run is accepted"):
        Agent(hub.invitations["ada"], table_of_rows("ada"), folder=tmp_path)
    with pytest.raises(tacita.TacitaError, match="the policy allows nothing"):
        Policy()
    # Saying how few may take part is no permission to leave letters unprotected.
    with pytest.raises(tacita.TacitaError, match="the policy allows nothing"):
        Policy.of_words({"min_participants": 3})


def test_an_epsilon_alone_does_not_allow_a_delta(hub: Hub, tmp_path: Path):
    agent = agent_of(hub, tmp_path / "a", {"max_epsilon": 2.0})
    run = describe(privacy={**BUDGET, "delta": 0.99}, run={"rounds": 3})
    assert "delta=0.99 is above the 1e-05 allowed" in refusal(agent, run)


def test_agents_that_the_hub_does_not_know_are_no_participants(
    hub: Hub, tmp_path: Path
):
    agent = agent_of(hub, tmp_path / "a", {**LENIENT, "min_participants": 3})
    run = describe(["ada", "ann", "bea"])
    assert "'ann' is no agent in version 1 of the roster" in refusal(agent, run)
    run = describe(["ada", "bob", "coordinator"])
    assert "'coordinator' is no agent" in refusal(agent, run)


@pytest.mark.parametrize(
    "policy, tables, reason",
    [
        (
            {"max_local_steps": 4},
            {"algorithm": {"name": "FedAvg", "step_size": 0.3, "local_steps": 5}},
            "5 local steps are more than the 4",
        ),
        (
            {"max_local_steps": 4},
            {
                "algorithm": {
                    "name": "FedPLT",
                    "rho": 1.0,
                    "solver": {
                        "name": "GradientDescent",
                        "step_size": 0.1,
                        "local_steps": 9,
                    },
                }
            },
            "9 local steps are more than the 4",
        ),
        (
            {"max_local_steps": 4},
            {
                "algorithm": {
                    "name": "FedPD",
                    "eta": 1.0,
                    "step_size": 0.1,
                    "local_steps": 2,
                    "skip": 0.75,
                }
            },
            "8 local steps are more than the 4",
        ),
        (
            {"max_local_steps": 4},
            {"algorithm": {"name": "ProxSkip", "step_size": 0.1, "probability": 0.1}},
            "10 local steps are more than the 4",
        ),
        (
            {"max_local_steps": 4},
            {
                "algorithm": {"name": "FedGD", "alpha": 1.0, "step_size": 0.1},
                "run": {
                    "rounds": 3,
                    "aggregation": {
                        "name": "CenteredClipping",
                        "radius": 1.0,
                        "steps": 10**9,
                    },
                },
                "graph": {"kind": "complete"},
            },
            "1e\\+09 local steps are more than the 4",
        ),
        (
            {"max_numbers": 5},
            {"problem": {**run_of()["problem"], "model": "softmax"}},
            "6 numbers are more than the 5",
        ),
        (
            {"allow_row_counts": False},
            {"algorithm": {"name": "FedAvg", "step_size": 0.3, "weights": "samples"}},
            "not counted out here",
        ),
    ],
)
def test_what_an_algorithm_is_made_of_is_limited(policy, tables, reason):
    run = describe(**tables)
    made = setting_of(run, blank_problem(run))
    require_parts_allowed(made, "ada", Policy.anything())
    with pytest.raises(tacita.TacitaError, match=reason):
        require_parts_allowed(made, "ada", Policy.of_words({**LENIENT, **policy}))


def test_steps_of_a_coordinators_rule_are_not_the_agents():
    rule = {"name": "RFA", "steps": 10**9}
    run = describe(run={"rounds": 3, "aggregation": rule})
    policy = Policy.of_words({**LENIENT, "max_local_steps": 4})
    require_parts_allowed(blank_setting(run), "ada", policy)


@pytest.mark.parametrize(
    "problem",
    [
        {"model": {"name": "mlp", "hidden": [5400, 5400]}},
        {"model": "softmax", "classes": [str(k) for k in range(1_000)]},
        {"model": "linear", "intercept": True},
    ],
)
def test_a_large_model_is_refused_before_it_is_built(problem, monkeypatch):
    told = {k: v for k, v in run_of()["problem"].items() if k != "classes"}
    run = describe(problem={**told, **problem})
    policy = Policy.of_words({**LENIENT, "max_numbers": 3})
    objection = policy.objection(run)
    assert objection is not None and "are more than the 3 allowed" in objection
    # What is counted beforehand is what there is.
    if problem["model"] in ("softmax", "linear"):
        assert numbers_of(run) == blank_problem(run).dim
        enough = Policy.of_words({**LENIENT, "max_numbers": numbers_of(run)})
        assert enough.objection(run) is None


def test_a_relation_that_is_not_listed_is_refused(hub: Hub, tmp_path: Path):
    words = {"max_epsilon": 2.0, **LENIENT}
    run = describe(privacy=BUDGET)
    agent = agent_of(hub, tmp_path / "a", {**words, "relations": ["add_remove"]})
    assert "relation is replace_one, which is not allowed" in refusal(agent, run)


def test_noise_in_floating_point_is_refused_where_integers_are_asked_for(
    hub: Hub, tmp_path: Path
):
    words = {"max_epsilon": 2.0, "exact_noise": True, **LENIENT}
    agent = agent_of(hub, tmp_path / "a", words)
    floats = describe(privacy={**BUDGET, "noise_kind": "float"})
    assert "floating point, and exact integers" in refusal(agent, floats)
    run = describe(privacy=BUDGET)
    assert agent.judge.verdict(run, "an offer", agent.site.ledger).accepted


def test_offers_are_counted_across_restarts(hub: Hub, tmp_path: Path, monkeypatch):
    policy = {**LENIENT, "max_offers": 2}
    agent = agent_of(hub, tmp_path / "a", policy)
    runs = [describe(run={"rounds": k}) for k in (3, 4, 5)]

    def codes(one: Agent) -> list[Any]:
        found = [one.judge.verdict(r, "an offer", one.site.ledger) for r in runs]
        return [v.accepted or v.code for v in found]

    assert codes(agent) == [True, True, "busy"] and codes(agent)[2] == "busy"
    again = agent_of(hub, tmp_path / "a", policy)
    assert codes(again) == [True, True, "busy"]
    now = time.time()
    monkeypatch.setattr("tacita.federation.offers.time.time", lambda: now + 3700)
    assert again.judge.verdict(runs[2], "an offer", again.site.ledger).accepted
    # A storm of them is one line in the log.
    events = [told["event"] for told in again.judge.log.events()]
    assert events.count("busy") == 2


def test_a_clock_that_was_ahead_makes_nobody_busy_for_years(tmp_path, monkeypatch):
    book, now = OfferBook(tmp_path, AuditLog(tmp_path)), 1e9
    clock = "tacita.federation.offers.time.time"
    monkeypatch.setattr(clock, lambda: now + 1e8)
    assert book.admit("coordinator", "a", 1)
    monkeypatch.setattr(clock, lambda: now)
    assert not book.admit("coordinator", "b", 1)
    monkeypatch.setattr(clock, lambda: now + 3700)
    assert book.admit("coordinator", "b", 1)


def test_a_full_disk_refuses_no_run_and_no_rows(hub: Hub, tmp_path: Path, monkeypatch):
    """Nothing is wrong with them: after room was made the same run goes on."""
    agent = agent_of(hub, tmp_path / "a", {**LENIENT, "max_epsilon": 2.0})
    run = describe(privacy=BUDGET)
    about = run, "an offer", agent.site.ledger

    def full(*words: Any) -> None:
        raise Unwritable("cannot write it: No space left on device")

    with monkeypatch.context() as now:
        now.setattr("tacita.federation.judgement.write_private", full)
        with pytest.raises(Unwritable):
            agent.judge.verdict(*about)
    assert agent.judge.verdict(*about).accepted
    outline = blank_setting(run)
    with monkeypatch.context() as now:
        now.setattr("tacita.privacy.ledger.store.write_all", full)
        with pytest.raises(Unwritable):
            agent.site.prepare(run, outline)
    assert not (tmp_path / "a" / run.digest / "unfit").exists()
    agent.site.forget()
    agent.site.prepare(run, outline)
    rows = [row.phase for row in agent.site.ledger.rows() if row.kind == "release"]
    assert rows == ["rows are read"]


def test_a_description_that_breaks_the_program_is_refused(hub: Hub, tmp_path: Path):
    agent = agent_of(hub, tmp_path / "a", Policy.anything())
    for tables in (
        {"problem": {"columns": [["x0"]], "target": "y", "classes": ["0", "1"]}},
        {"problem": {"columns": ["x0"], "target": "y", "classes": [["0"], ["1"]]}},
        {"algorithm": {"name": "FedAvg", "step_size": {"name": ["x"]}}},
        {"graph": {"edges": 3}},
    ):
        refusal(agent, describe(**tables))
    for name in (["x" * 100_000], "y" * 100_000, {"a": 1}, None):
        odd = replace(describe(), name=name)  # pyright: ignore
        assert agent.judge.verdict(odd, "an offer", agent.site.ledger)


class Deaf(Post):
    """The post of an agent that must not get as far as to use it."""

    def deliver(self, to: str, content: bytes) -> None:
        raise AssertionError("something was sent")

    def collect(self, seconds: float) -> list[bytes]:
        raise AssertionError("something was waited for")


def test_a_refusal_is_one_of_three_words(town: ByHand, tmp_path: Path):
    policy = {**LENIENT, "max_epsilon": 1.0, "max_rounds": 9, "max_offers": 4}
    town.join("ada", table_of_rows("ada"), policy)
    private = {**BUDGET, "epsilon": 3.0}
    for tables, agents, code in (
        (run_of(10), NAMES, "refused"),
        (run_of(privacy=private), NAMES, "refused"),
        (run_of(), ["ada", "eve"], "refused"),
        (run_of(algorithm={"name": "Unknown"}), NAMES, "refused"),
        (run_of(8), NAMES, "busy"),
    ):
        run = town.describe(tables, agents)
        assert town.answer_of(run) == {
            "kind": "refuse",
            "run": run.digest,
            "code": code,
        }


def write(path: Path, **words: Any) -> Path:
    path.write_text(tomli_w.dumps({**LENIENT, **words}))
    return path


def test_a_policy_that_was_tightened_stops_a_run_at_its_next_start(
    hub: Hub, tmp_path: Path
):
    policy, run = write(tmp_path / "policy.toml"), describe()
    agent = agent_of(hub, tmp_path / "home", policy)
    starter = Invitation.load(hub.invitations["coordinator"]).keys
    assert starter is not None
    offer = run.signed(starter)
    assert agent.judge.verdict(run, offer, agent.site.ledger).accepted
    agent.site.ledger.close()
    write(policy, max_rounds=5)
    options: Any = {"folder": tmp_path / "home", "post": lambda me: Deaf()}
    again = Agent(hub.invitations["ada"], table_of_rows("ada"), policy, **options)
    with pytest.raises(tacita.TacitaError, match="6 rounds are more than .* state is"):
        again.take_part(1.0)
    assert (tmp_path / "home" / run.digest / "offer.json").read_text() == offer


def test_a_policy_that_was_tightened_binds_the_very_next_letter(
    hub: Hub, tmp_path: Path
):
    policy = write(tmp_path / "policy.toml", max_epsilon=3.0)
    agent = agent_of(hub, tmp_path / "home", policy)
    run = describe(privacy=BUDGET)
    agent._agree_to(run)
    agent.site.prepare(run, agent._outline)

    def letter(number: int) -> None:
        name = Identity("town", run.digest, "answer", number, 0, "ada", "coordinator")
        agent.site.release(name, b"numbers %d" % number)

    letter(1)
    write(policy, max_epsilon=2.0, max_rounds=50)
    letter(2)  # still within what is allowed
    write(policy, max_epsilon=0.9, max_rounds=500)
    with pytest.raises(tacita.TacitaError, match="epsilon=1.0 is above the 0.9"):
        letter(3)
    policy.unlink()
    with pytest.raises(tacita.TacitaError, match="cannot read the policy"):
        letter(3)
    with Ledger(tmp_path / "home" / "ledger.db", read_only=True) as ledger:
        assert ledger.rounds("ada", "coordinator", run.digest) == {1, 2}
    events = [told["event"] for told in agent.judge.log.events()]
    assert events == ["release", "release", "stopped"]


def test_rows_keep_their_name_in_the_ledger_while_a_program_runs(
    hub: Hub, tmp_path: Path
):
    """Under another one what they have spent would begin at zero."""
    policy = write(tmp_path / "policy.toml", max_epsilon=3.0)
    agent = agent_of(hub, tmp_path / "home", policy)
    run = describe(privacy=BUDGET)
    agent._agree_to(run)
    agent.site.prepare(run, agent._outline)
    name = Identity("town", run.digest, "answer", 1, 0, "ada", "coordinator")
    agent.site.release(name, b"numbers")
    write(policy, max_epsilon=3.0, data_name="patients")
    for _ in range(2):
        with pytest.raises(tacita.TacitaError, match="data_name .* was changed"):
            agent.site.release(replace(name, round=2), b"more numbers")
        with pytest.raises(tacita.TacitaError, match="data_name .* was changed"):
            agent.judge.verdict(run, "", agent.site.ledger)
    with Ledger(tmp_path / "home" / "ledger.db", read_only=True) as ledger:
        assert {row.agent for row in ledger.rows() if row.agent} == {"ada"}


def test_consents_are_to_one_description_by_agents_of_the_federation(town: ByHand):
    run, other = town.describe(run_of(6)), town.describe(run_of(7))
    keys = {name: town.invitation(name).keys for name in NAMES}
    good = {name: consent.sign(run, name, own) for name, own in keys.items()}  # pyright: ignore
    lie = consent.sign(other, "bob", keys["bob"])  # pyright: ignore
    known = town.me.roster
    assert consent.require_enough(run, consent.bundle(run, good), known, 3) == NAMES
    for given, reason in (
        ({**good, "bob": lie}, "not signed by whom it says"),
        ({**good, "bob": good["cyd"]}, "not signed by whom it says"),
        ({k: good[k] for k in ("ada", "bob")}, "2 agents agreed to this very run, 3"),
        ({**good, "bob": "no signature"}, "no signature"),
    ):
        with pytest.raises(LetterRefused, match=reason):
            consent.require_enough(run, consent.bundle(run, given), known, 3)
    for text in ("", "[]", '{"run": 3}', consent.bundle(other, good), "[" * 9999):
        with pytest.raises(LetterRefused):
            consent.require_enough(run, text, known, 3)


def test_a_coordinator_that_shows_two_descriptions_gets_no_letter(town: ByHand):
    """Each of the two is told that the other one agreed to its own description."""
    for name, rounds in (("ada", 6), ("bob", 7)):
        town.join(name, table_of_rows(name), LENIENT)
        run = town.describe(run_of(rounds), ["ada", "bob"])
        town.offer(run, name)
    given = {}
    while len(given) < 2:
        letter = town.hear("accept")
        given[letter.identity.sender] = json.loads(letter.text)["consent"]
    for name, rounds in (("ada", 6), ("bob", 7)):
        run = town.describe(run_of(rounds), ["ada", "bob"])
        # All that it can do: it has nobody's signature but those it was given.
        town.say("consents", name, consent.bundle(run, given))
        town.say("consents", name, consent.bundle(run, {name: given[name]}))
        town.ask(run, np.zeros(3), to=name)
    town.drain(1.2)
    assert {x.identity.kind for x in town.sent} == {"ask", "accept"}
    told = [line for line in town.said if line.startswith("nothing is sent")]
    assert len(told) == 4 and "not signed by whom it says" in told[0]


def test_an_agent_without_consents_answers_no_question(town: ByHand):
    town.join("ada", table_of_rows("ada"), LENIENT)
    run = town.describe(run_of())
    assert town.answer_of(run)["kind"] == "accept"
    town.ask(run, np.zeros(3))
    for kind, text in (("offer", "no offer"), ("consents", "{}"), ("withdraw", "x")):
        town.say(kind, "ada", text)  # nor does it stumble over these
    town.drain(0.5)
    assert not any(x.arrays for x in town.sent)
    town.consents(run)
    town.ask(run, np.zeros(3))
    assert town.hear("answer").identity.round == 1
