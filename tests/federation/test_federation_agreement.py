"""Descriptions, policies, offers: what is agreed before anything is computed."""

from __future__ import annotations

import json
from typing import Any

import pytest

import tacita
from tacita.federation import (
    Coordinator,
    Invitation,
    Member,
    Roster,
    certificates,
    consent,
    coordinator,
)
from tacita.federation.description import Description, read_signed
from tacita.federation.in_process import InProcessPost
from tacita.federation.policy import Policy
from tacita.federation.post import Post
from tacita.federation.seal import PrivateKeys, Sealed
from tacita.federation.wire import LetterRefused, note

TABLES: dict[str, dict[str, Any]] = {
    "problem": {"model": "logistic", "columns": ["age", "bp"], "target": "ill"},
    "algorithm": {"name": "FedPLT", "rho": 1.0},
    "run": {"rounds": 10},
    "privacy": {"epsilon": 1.0, "delta": 1e-5},
}
PEOPLE = {name: PrivateKeys.fresh() for name in ("hub", "oslo", "turku")}
PUBLIC = {name: keys.public for name, keys in PEOPLE.items()}


def describe(**changes: dict[str, Any]) -> Description:
    tables = {
        name: {**table, **changes.get(name, {})} for name, table in TABLES.items()
    }
    return Description("clinics", "heart", "hub", ("oslo", "turku"), tables)


def test_a_signed_description_comes_back_and_names_the_run():
    run = describe()
    back = read_signed(run.signed(PEOPLE["hub"]), "clinics", PUBLIC, "hub")
    assert back == run and back.digest == run.digest
    assert describe(run={"rounds": 11}).digest != run.digest


def test_an_altered_description_is_refused():
    offer = json.loads(describe().signed(PEOPLE["hub"]))
    for old, new in (('"epsilon":1.0', '"epsilon":9.0'), ("oslo", "evil")):
        changed = {**offer, "description": offer["description"].replace(old, new)}
        with pytest.raises(LetterRefused, match="not signed by whom it says"):
            read_signed(json.dumps(changed), "clinics", PUBLIC, "hub")
    with pytest.raises(LetterRefused, match="not signed by whom it says"):
        read_signed(describe().signed(PEOPLE["oslo"]), "clinics", PUBLIC, "hub")
    with pytest.raises(LetterRefused, match="another federation"):
        read_signed(describe().signed(PEOPLE["hub"]), "banks", PUBLIC, "hub")
    for rubbish in ("", "{}", "[]", '{"description": 3, "signature": "00"}'):
        with pytest.raises(LetterRefused):
            read_signed(rubbish, "clinics", PUBLIC, "hub")


def test_unknown_tables_and_keys_are_refused():
    with pytest.raises(tacita.TacitaError, match="did you mean 'rounds'"):
        describe(run={"round": 3})
    with pytest.raises(tacita.TacitaError, match="rounds"):
        describe(run={"rounds": 0})
    for table, key in (("run", "rounds"), ("problem", "target"), ("privacy", "delta")):
        tables = {**TABLES, table: {k: v for k, v in TABLES[table].items() if k != key}}
        with pytest.raises(tacita.TacitaError, match=f"missing key {table}.{key}"):
            Description("f", "n", "hub", ("a",), tables)
    with pytest.raises(tacita.TacitaError, match="expected privacy.epsilon > 0"):
        describe(privacy={"epsilon": "1"})
    with pytest.raises(tacita.TacitaError, match="missing key privacy.epsilon"):
        describe(privacy={"epsilon": None})
    with pytest.raises(tacita.TacitaError, match="unknown table"):
        Description("f", "n", "hub", ("a",), {**TABLES, "spy": {}})
    with pytest.raises(tacita.TacitaError, match="no table \\[run\\]"):
        Description("f", "n", "hub", ("a",), {"problem": {}, "algorithm": {}})


@pytest.mark.parametrize(
    "policy, changes, reason",
    [
        ({"max_epsilon": 0.5}, {}, "epsilon=1.0 is above the 0.5"),
        ({"max_delta": 1e-6}, {}, "delta=1e-05 is above"),
        ({"algorithms": ["FedAvg"]}, {}, "FedPLT is not one of the algorithms"),
        ({"models": ["linear"]}, {}, "logistic is not one of the models"),
        ({"columns": ["age", "ill"]}, {}, "column 'bp' may not be used"),
        ({"columns": ["age", "bp"]}, {}, "column 'ill' may not be used"),
        ({"columns": []}, {}, "column 'age' may not be used"),
        ({"min_participants": 3}, {}, "asks for 3 at least"),
        (
            {"min_participants": 2},
            {"run": {"least_agents": 1, "least_letters": 2, "deadline": 1.0}},
            "may go on with 1 of its 2 agents",
        ),
        ({"min_participants": 2}, {"run": {"deadline": 1.0}}, "may go on with 1 of"),
        ({"observers": ["neighbour"]}, {}, "asks for neighbour"),
        ({"max_rounds": 9}, {}, "10 rounds are more than the 9"),
        ({"max_agents": 1}, {}, "2 agents are more than the 1"),
        ({"max_columns": 1}, {}, "2 columns are more than the 1"),
        (
            {"max_classes": 2},
            {"problem": {"classes": ["0", "1", "2"]}},
            "3 classes are more than the 2",
        ),
        ({"units": ["client"]}, {}, "protects one record, which is not one"),
        ({"max_norm": 0.5}, {"privacy": {"norm": 1.0}}, "norm=1.0 is above the 0.5"),
        ({"max_norm": 0.5}, {}, "norm=None is above the 0.5"),
        ({}, {"privacy": {"delta": 0.99}}, "delta=0.99 is above the 1e-05"),
        ({}, {"run": {"shared_seed": 1}}, "randomness is known to everybody"),
    ],
)
def test_a_policy_refuses_and_says_why(policy, changes, reason):
    lenient = {"max_epsilon": 2.0, "allow_unprotected": True}
    objection = Policy.of_words({**lenient, **policy}).objection(describe(**changes))
    assert objection is not None and reason in objection


def test_a_policy_allows_what_it_allows():
    policy = Policy.of_words(
        {
            "max_epsilon": 1.0,
            "max_delta": 1e-5,
            "algorithms": ["FedPLT"],
            "models": ["logistic"],
            "columns": ["age", "bp", "ill"],
            "min_participants": 2,
            "max_rounds": 10,
            "allow_shared_seed": True,
        }
    )
    assert policy.objection(describe(run={"shared_seed": 1})) is None
    without = {k: v for k, v in TABLES.items() if k != "privacy"}
    bare = Description("clinics", "heart", "hub", ("oslo", "turku"), without)
    assert "states no epsilon" in str(policy.objection(bare))
    assert Policy.anything().objection(bare) is None
    with pytest.raises(tacita.TacitaError, match="did you mean 'max_epsilon'"):
        Policy.of_words({"max_epsilom": 1})


@pytest.mark.parametrize(
    "key, value",
    [
        ("max_epsilon", "4"),
        ("max_epsilon", True),
        ("max_epsilon", -1.0),
        ("max_delta", 1.0),
        ("algorithms", "FedPLT2"),
        ("models", [1]),
        ("columns", "age_bp_ill"),
        ("observers", "coordinator"),
        ("min_participants", 1.5),
        ("max_rounds", 0),
        ("allow_shared_seed", "no"),
        ("allow_unprotected", 1),
        ("approval", "yes"),
        ("data_name", ""),
    ],
)
def test_a_policy_that_could_be_misread_is_refused(key, value):
    with pytest.raises(tacita.TacitaError, match=f"expected {key} "):
        Policy.of_words({key: value})


@pytest.mark.parametrize(
    "table, key, value",
    [
        ("privacy", "epsilon", -1.0),
        ("privacy", "epsilon", float("nan")),
        ("privacy", "delta", 2.0),
        ("privacy", "unit", "galaxy"),
        ("privacy", "observer", "nobody"),
        ("privacy", "norm", 0.0),
        ("run", "deadline", "soon"),
        ("run", "least_letters", 0),
        ("run", "own_draws", "yes"),
        ("run", "late", "maybe"),
    ],
)
def test_values_of_a_description_are_checked(table, key, value):
    with pytest.raises(tacita.TacitaError, match=f"{table}.{key}"):
        describe(**{table: {key: value}})


class Box(Post):
    """One party's post inside this program; answers are made when it collects."""

    def __init__(self, post: InProcessPost, answer: Any) -> None:
        self._post, self._answer = post, answer

    def deliver(self, to: str, content: bytes) -> None:
        self._post.deliver(to, content)

    def collect(self, seconds: float) -> list[bytes]:
        found = []
        while (item := self._post.next()) is not None:
            found += self._answer(*item)
        return found


def starter() -> Coordinator:
    """The program of the one who offers the run."""
    nobody = certificates.authority("nobody")
    roles = {"hub": "coordinator"}
    members = {n: Member(roles.get(n, "agent"), k) for n, k in PUBLIC.items()}
    roster = Roster("clinics", 1, members, ())
    keys = PEOPLE["hub"]
    invited = Invitation("hub", b"", nobody, keys, keys.public, roster)
    algorithm = {"name": "FedAvg", "step_size": 0.1}
    return Coordinator({**TABLES, "algorithm": algorithm, "name": "heart"}, invited)


def test_agents_accept_or_refuse_an_offer():
    centre = starter()
    run = centre.run
    envelopes = {name: Sealed(name, keys, PUBLIC) for name, keys in PEOPLE.items()}

    def gather(words: dict[str, tuple[str, dict]]) -> dict[str, str]:
        def answer(to: str, content: bytes) -> list[bytes]:
            letter = envelopes[to].open(content, 1 << 20)
            assert read_signed(letter.text, "clinics", PUBLIC, "hub") == run
            kind, told = words[to]
            reply = note(kind, "clinics", to, "hub", json.dumps(told))
            return [b"rubbish", envelopes[to].close(reply)]

        return centre._gather(Box(InProcessPost(), answer), 0.3)

    signed = {name: consent.sign(run, name, PEOPLE[name]) for name in run.agents}
    yes = {k: ("accept", {"run": run.digest, "consent": v}) for k, v in signed.items()}
    assert gather(yes) == signed
    no = {"run": run.digest, "code": "refused"}
    with pytest.raises(tacita.TacitaError, match="turku refuses the run; its own log"):
        gather({**yes, "turku": ("refuse", no)})
    for kind, told in (
        ("accept", {"run": run.digest}),
        ("accept", {"run": run.digest, "consent": 7}),
        ("accept", {"run": run.digest, "consent": signed["oslo"]}),
        ("accept", {"run": "another", "consent": signed["turku"]}),
        ("refuse", {**no, "code": "waiting"}),
        ("refuse", {**no, "code": "a word of its own"}),
    ):
        with pytest.raises(tacita.TacitaError, match="no answer from turku"):
            gather({**yes, "turku": (kind, told)})


def test_rows_are_told_once_they_are_asked_for():
    run = describe()

    def told(**words: Any) -> int | None:
        text = json.dumps({"run": run.digest, **words})
        return coordinator._rows(
            note("done", "clinics", "oslo", "hub", text), run, True
        )

    assert told(rows=7) == 7 and told(run="another") is None
    for rows in ("many", 0, None, 1.5):
        with pytest.raises(LetterRefused, match="without a number of rows"):
            told(rows=rows)


def test_a_run_is_withdrawn_from_everybody():
    centre, post = starter(), InProcessPost()
    run = centre.run
    envelopes = {name: Sealed(name, keys, PUBLIC) for name, keys in PEOPLE.items()}
    with pytest.raises(tacita.TacitaError, match="no answer from oslo, turku"):
        centre._agree(Box(post, None), 0.0)
    for _ in run.agents:
        item = post.next()
        assert item is not None
        letter = envelopes[item[0]].open(item[1], 1 << 20)
        assert (letter.identity.kind, letter.text) == ("withdraw", run.digest)
    assert post.next() is None
