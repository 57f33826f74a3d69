"""One certified party tries to hurt the others; each attack once did."""

from __future__ import annotations

import json
import re
import tracemalloc
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tacita
from tacita.check import printable
from tacita.federation import Agent, Coordinator, Hub, Invitation
from tacita.federation.calendar import Calendar
from tacita.federation.coordinator import _refusal, _rows, _told_by
from tacita.federation.description import Description, read_signed
from tacita.federation.desk import Counts
from tacita.federation.in_process import COORDINATOR, InProcess
from tacita.federation.json_words import read_json
from tacita.federation.own_rows import blank_problem
from tacita.federation.party import require_size
from tacita.federation.policy import Policy
from tacita.federation.receipts import BLANK
from tacita.federation.seal import PrivateKeys
from tacita.federation.setting import graph_of
from tacita.federation.terms import Terms
from tacita.federation.wire import Identity, Letter, LetterRefused, note
from tacita.job.run_file import read_toml
from tests.cases import case_of
from tests.federation.towns import run_of

HUB = PrivateKeys.fresh()
NESTED = "[" * 100_000 + "]" * 100_000
CODES = "\x1b[2J\x1b]0;owned\x07\u202e\ud800" + "x" * 5_000


def describe(**tables: Any) -> Description:
    return Description("town", "try", "hub", ("ada", "bob"), {**run_of(), **tables})


def offered(text: str) -> str:
    """An offer of any text, signed by the coordinator."""
    domain = b"tacita run description 1\n"
    signature = HUB.sign(domain + text.encode("utf-8", "surrogatepass")).hex()
    return json.dumps({"description": text, "signature": signature})


@pytest.mark.parametrize(
    "text",
    [
        NESTED,
        '{"a": ' * 900 + "1" + "}" * 900,
        "[[]," * 300_000 + "1" + "]" * 300_000,
        '["\\ud800"]',
        "[NaN]",
        "[1e999]",
        "[" + "9" * 5_000 + "]",
        "{",
        "",
    ],
)
def test_hurtful_words_are_refused_wherever_they_are_read(text: str):
    with pytest.raises(LetterRefused):
        read_json(text, "a text", 1 << 24)
    run = describe()
    with pytest.raises(LetterRefused):
        _refusal(note("refuse", "town", "ada", "hub", text), run)
    with pytest.raises(LetterRefused):
        _rows(note("done", "town", "ada", "hub", text), run, weighted=True)
    for offer in (text, offered(text)):
        with pytest.raises(LetterRefused):
            read_signed(offer, "town", {"hub": HUB.public}, "hub")
    party: Any = SimpleNamespace(remarks={"ada": text})
    assert _told_by(party) == {}


def test_what_is_told_of_oneself_is_a_small_number_or_nothing():
    words = {"round": 3, "spent": "1", "allowed": 1e300, "more": 1}
    party: Any = SimpleNamespace(remarks={"ada": json.dumps(words)})
    assert _told_by(party) == {"ada": {"round": 3.0}}


def test_a_policy_that_is_nested_without_end_is_refused(tmp_path: Path):
    path = tmp_path / "policy.toml"
    for text in (f"columns = {NESTED}", f"max_rounds = {'9' * 5_000}"):
        path.write_text(text)
        with pytest.raises(tacita.TacitaError, match=r"policy\.toml"):
            read_toml(path)
    for number in (10**30, 10**400):  # beyond what arrays hold
        with pytest.raises(tacita.TacitaError, match="expected max_delta in"):
            Policy.of_words({"max_delta": number})


def test_words_of_others_cannot_control_a_terminal(tmp_path: Path):
    assert printable(CODES, 30).isprintable() and len(printable(CODES, 30)) == 30
    hub = Hub.create(tmp_path / "hub", "town", ["ada", "bob"])
    said: list[str] = []
    run = {**run_of(), "name": "try"}
    centre = Coordinator(
        run, hub.invitations["coordinator"], folder=tmp_path / "c", tell=said.append
    )
    centre.tell(f"refused: {CODES}")
    words = {"run": centre.run.digest, "code": CODES}
    with pytest.raises(tacita.TacitaError) as refusal:
        _refusal(
            note("refuse", "town", "ada", "coordinator", json.dumps(words)), centre.run
        )
    for line in (*said, str(refusal.value)):
        assert line.isprintable() and len(line) <= 1_000


def test_the_table_of_refusals_stays_small():
    counts = Counts()
    for number in range(5_000):
        counts.refuse(f"an array of float64[{number}] {CODES}")
    assert len(json.dumps(counts.refused)) < 20_000
    assert sum(counts.refused.values()) == 5_000


@pytest.mark.parametrize(
    "table, changes, words",
    [
        ("problem", {"classes": [str(i) for i in range(120_000)]}, "classes"),
        ("run", {"rounds": 10**9}, "rounds"),
        ("problem", {"columns": "x0"}, "columns"),
    ],
)
def test_a_description_that_would_take_everything_is_refused(table, changes, words):
    with pytest.raises(tacita.TacitaError, match=words):
        describe(**{table: {**run_of()[table], **changes}})


@pytest.mark.parametrize(
    "table, key, value, words",
    [
        ("algorithm", "step_size", float("nan"), "algorithm.step_size finite"),
        ("algorithm", "oracle", {"std": float("inf")}, "algorithm.oracle.std finite"),
        ("run", "participation", [0.5, float("nan")], "run.participation finite"),
        ("algorithm", "step_size", 1e307, "algorithm.step_size between 1e-60 and"),
        ("algorithm", "oracle", {"norm": 1e-307}, "algorithm.oracle.norm between"),
        ("problem", "l2", 10**70, "problem.l2 between 1e-60 and"),
        ("problem", "l2", "much", "problem.l2 >= 0"),
        ("problem", "intercept", "no", "problem.intercept true or false"),
        ("problem", "dtype", 0, "unknown problem.dtype=0"),
        ("problem", "target", ["y"], "problem.target a word"),
        ("problem", "centre", 1.0, "problem.centre a list of numbers"),
        ("problem", "spread", [1.0, 0.0], "problem.spread > 0"),
        ("graph", "weights", ["a"], "graph.weights >= 0"),
    ],
)
def test_values_of_a_wrong_kind_are_named(table, key, value, words):
    """They ended in a traceback, or counted as true."""
    with pytest.raises(tacita.TacitaError, match=re.escape(words)) as error:
        describe(**{table: {**run_of().get(table, {}), key: value}})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("edges", [3, [0.1, 0.2], [["ada"]], {"ada": "bob"}])
def test_edges_are_pairs(edges):
    run = describe(graph={"edges": edges})
    with pytest.raises(tacita.TacitaError, match="graph.edges a list of pairs"):
        graph_of(run)


def test_an_offer_may_have_very_many_columns():
    names = [f"column {i:06}" for i in range(100_000)]
    run = describe(problem={**run_of()["problem"], "columns": names})
    offer = run.signed(HUB)
    read = read_signed(offer, "town", {"hub": HUB.public}, "hub")
    assert read.digest == run.digest
    assert len(offer) + 1_000 < Agent.most_greeting
    tracemalloc.start()
    try:
        assert blank_problem(run).dim == 100_000
        assert tracemalloc.get_traced_memory()[1] < 1 << 27
    finally:
        tracemalloc.stop()
    with pytest.raises(tacita.TacitaError, match="name fewer columns"):
        describe(
            problem={**run_of()["problem"], "columns": [n * 20 for n in names]}
        ).signed(HUB)


def test_a_run_with_letters_that_cannot_be_sent_is_refused_before_it_begins():
    require_size(8 * 10**8 // 4)
    with pytest.raises(tacita.TacitaError, match=r"has 4\.00 GB, and at most 2\.15 GB"):
        require_size(4 * 10**9)


def test_a_calendar_of_all_rounds_takes_no_memory():
    calendar = Calendar(Terms(rounds=10**6).schedule, None, 1_000, 10**6)  # pyright: ignore
    assert calendar.last(3, 77) == 77 and calendar.next(3, 10**6) is None
    some = tacita.participation.schedule_for(2, 1_000)
    with pytest.raises(tacita.TacitaError, match="choose fewer"):
        Calendar(some, None, 1_000, 10**6)  # pyright: ignore


def letter(kind: str, sender: str, to: str, when: tuple, arrays: Any = ()) -> Letter:
    name = Identity("test", "run", kind, *when, sender, to)
    return Letter(name, (*(np.asarray(a) for a in arrays), BLANK, BLANK))


def give(party: Any, made: InProcess, one: Letter, now: float = 0.0) -> None:
    envelope = made.desk(one.identity.sender).envelope
    party.receive(envelope.close(one), now)


def test_a_huge_letter_does_not_stop_a_node(tmp_path: Path):
    """Once it overflowed in the node's own step, in every round again."""
    case = case_of("FedGD")
    made = InProcess(tmp_path, case.problem(), case.algorithm, 4)
    agent: Any = made.make("agent-0")
    agent.start(0.0)
    others = sorted(agent._neighbours)
    size = [np.full(3, 1.7e308)]
    for name in others:
        give(agent, made, letter("answer", name, "agent-0", (0, 0), size))
    assert agent.counts.refused == {
        "the letter holds NaN or entries beyond 2^50": len(others)
    }
    for name in others:
        give(agent, made, letter("answer", name, "agent-0", (0, 0), [np.ones(3)]))
    assert agent.round == 1


@pytest.fixture
def agent(tmp_path: Path) -> tuple[InProcess, Any]:
    case = case_of("FedAvg")
    made = InProcess(tmp_path, case.problem(), case.algorithm, 4)
    party: Any = made.make("agent-0")
    party.start(0.0)
    list(party.take_out())
    return made, party


def end(when: tuple[int, int], model: Any) -> Letter:
    return letter("end", COORDINATOR, "agent-0", when, [model])


def test_an_end_without_a_model_is_no_end(agent):
    made, party = agent
    for bad in (np.nan, np.inf, 1e300):
        give(party, made, end((5, 0), np.full(3, bad)))
    give(party, made, end((4, 0), np.zeros(3)))  # four rounds were agreed on
    assert not party.finished and sum(party.counts.refused.values()) == 4
    give(party, made, end((5, 0), np.zeros(3)))
    assert party.finished


def question(when: tuple[int, int] = (1, 0)) -> Letter:
    arrays = [np.zeros(3), np.asarray(0)]
    return letter("question", COORDINATOR, "agent-0", when, arrays)


def kinds(made: InProcess, party: Any) -> list[str]:
    """What a party has just sent."""
    found = []
    for to, content in party.take_out():
        found.append(made.desk(to).envelope.open(content, 1 << 20).identity.kind)
    return found


def test_asking_moves_no_letter_and_fetching_only_a_few(agent):
    made, party = agent
    give(party, made, question())
    assert kinds(made, party) == ["answer"]
    for _ in range(5):
        give(party, made, letter("ask", COORDINATOR, "agent-0", (1, 0)))
        give(party, made, question())
    assert set(kinds(made, party)) == {"ready"}
    for _ in range(50):
        give(party, made, letter("fetch", COORDINATOR, "agent-0", (1, 0)))
    assert kinds(made, party) == ["answer"] * 3 and party.counts.resent == 3
    give(party, made, letter("fetch", COORDINATOR, "agent-0", (1, 0)), now=5.0)
    assert kinds(made, party) == ["answer"]


def test_a_question_that_was_lost_is_fetched_once(agent):
    made, party = agent
    for kind in ("ask", "ready", "ready"):
        give(party, made, letter(kind, COORDINATOR, "agent-0", (1, 0)))
    assert kinds(made, party) == ["fetch"]
    party.tick(40.0)  # that was lost too: first it asks
    assert kinds(made, party) == ["ask", "ask"]
    give(party, made, letter("ready", COORDINATOR, "agent-0", (1, 0)), 40.0)
    assert kinds(made, party) == ["fetch"]


def test_an_agent_that_does_not_read_gets_notes_only(tmp_path: Path):
    """Letters to it would pile up at the broker, which then cuts it off."""
    case = case_of("FedAvg")
    terms = {"deadline": 2.0, "least_letters": 5}
    made = InProcess(tmp_path, case.problem(), case.algorithm, 4, **terms)
    centre: Any = made.make(COORDINATOR)
    centre.start(0.0)
    whole = 0
    for number in range(1, 4):
        for name in made.names[:-1]:
            arrays = [np.ones(3)]
            give(centre, made, letter("answer", name, COORDINATOR, (number, 0), arrays))
        centre.tick(3.0 * number)
        sent = [
            made.desk(to).envelope.open(content, 1 << 20).identity
            for to, content in centre.take_out()
        ]
        last = [one.kind for one in sent if one.receiver == made.names[-1]]
        whole += last.count("question")
    assert centre.round == 4 and whole == 1
    give(centre, made, letter("fetch", made.names[-1], COORDINATOR, (4, 0)), 9.0)
    assert kinds(made, centre) == ["question"]


def test_large_answers_come_a_few_at_a_time(tmp_path: Path, monkeypatch):
    """All at once they would fill the broker's memory, or the coordinator's."""
    case = case_of("FedAvg")
    calm = InProcess(tmp_path / "calm", case.problem(), case.algorithm, 4).run()
    for place in ("server_agent", "server_coordinator"):
        monkeypatch.setattr(f"tacita.federation.{place}.WINDOW", 2 * 24)
    made = InProcess(tmp_path, case.problem(), case.algorithm, 4)
    parties: Any = made.parties()
    for party in parties.values():
        party.start(0.0)
    centre = parties[COORDINATOR]
    most = 0
    while centre.round == 1:
        waiting = [item for p in parties.values() for item in p.take_out()]
        assert waiting, "nobody has anything to say"
        for to, content in waiting:
            parties[to].receive(content, 0.0)
            most = max(most, len(centre._fetching))
    assert most == 2 and centre.counts.resent == 0
    again = InProcess(tmp_path / "again", case.problem(), case.algorithm, 4).run()
    assert calm[0].tobytes() == again[0].tobytes()


def test_an_invitation_with_other_peoples_paths_is_refused(tmp_path: Path):
    hub = Hub.create(tmp_path / "hub", "town", ["ada"])
    path = hub.invitations["ada"]
    good = json.loads(path.read_text())
    owner = PrivateKeys.load(hub.folder / "owner.keys.json")
    _, text = good["roster"].split("\n", 1)
    words = json.loads(text)
    member = words["members"]["ada"]
    for spoilt in (
        {"federation": "../../etc"},
        {"brokers": ["x y\n"]},
        {"members": {**words["members"], "../bob": member}},
    ):
        made = json.dumps({**words, **spoilt}, sort_keys=True, separators=(",", ":"))
        signature = owner.sign(b"tacita roster 1\n" + made.encode()).hex()
        path.write_text(json.dumps({**good, "roster": f"{signature}\n{made}"}))
        with pytest.raises(tacita.TacitaError, match="is no invitation"):
            Invitation.load(path)
    path.write_text(json.dumps({**good, "name": 7}))
    with pytest.raises(tacita.TacitaError, match="not the keys that '7' was invited"):
        Invitation.load(path)
    path.write_text(NESTED)
    with pytest.raises(tacita.TacitaError, match="damaged or no file"):
        Invitation.load(path)
