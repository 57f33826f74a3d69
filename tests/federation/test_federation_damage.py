"""Every file of a party with a byte changed: refused in one line, or of no effect."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacita
from tacita.federation import Agent, Hub, PostRoom
from tacita.federation.agent import Policy
from tacita.federation.coordinator import _kept_consents, _to_be_kept
from tacita.federation.description import Description
from tacita.federation.diary import NAME as NOTES
from tacita.federation.diary import Diary
from tacita.federation.own_rows import blank_problem
from tacita.federation.seal import PrivateKeys
from tacita.federation.setting import keys_of, setting_of
from tacita.trees import double_precision
from tests.federation.towns import LENIENT, NAMES, run_of, table_of_rows

POLICY = """# What we agree to.
max_epsilon = 2.0
max_delta = 1e-4
observers = ["coordinator"]
min_participants = 2
allow_shared_seed = true
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: Any) -> tuple[Any, Path, Path]:
    """An agent that has answered one question, and how to start it again."""
    folder = tmp_path_factory.mktemp("damage")
    hub = Hub.create(folder / "hub", "town", NAMES, port=0)
    made = agent_of(hub, folder / "home")
    words = run_of(rounds=4, privacy={"epsilon": 1.0, "delta": 1e-5, "norm": 1.0})
    words["run"] = {"rounds": 4}
    words["privacy"]["observer"] = "coordinator"
    run = Description("town", "run", "coordinator", tuple(NAMES), words)
    told = hub.invitations["coordinator"].read_text()
    signer = PrivateKeys.of_words(json.loads(told)["secrets"]["private"])
    (folder / "home" / run.digest).mkdir(parents=True)
    (folder / "home" / run.digest / "offer.json").write_text(run.signed(signer))
    start(made, answer=True)
    return hub, folder / "home", folder / "home" / run.digest


def agent_of(hub: Hub, folder: Path) -> Agent:
    return Agent(
        hub.invitations["ada"],
        table_of_rows("ada"),
        LENIENT,
        folder=folder,
        post=PostRoom(),
    )


def start(agent: Agent, answer: bool = False) -> Any:
    """What `tacita join` does before it hears anything."""
    with agent.alone(), agent.site.open_ledger():
        run = agent._begun_run(agent._begun()[0])
        agent.site.prepare(run, setting_of(run, blank_problem(run)))
        setting = agent.site.setting
        own = keys_of(setting, "ada", agent.secret)
        desk = agent.desk(setting.run, agent.site.releases)
        agent.party = setting.roles.make_agent(desk, setting.roles.like, own)
        agent.party.start(0.0)
        if answer:
            told = setting.roles.server.exchanges[0].told.zeros()
            with double_precision():
                agent.party._reply((1, 0), (*told, np.asarray(0)))
        return agent.party.round, agent.site.ledger.spent(1e-5)["ada", "everybody"]


def changed(path: Path, steps: int) -> Iterator[int]:
    whole = path.read_bytes()
    for at in range(0, len(whole), max(len(whole) // steps, 1)):
        content = bytearray(whole)
        content[at] ^= 0x80 if at % 2 else 0x01
        path.write_bytes(bytes(content))
        yield at
        path.write_bytes(whole)


@pytest.mark.parametrize(
    "steps", (3, pytest.param(60, marks=pytest.mark.long)), ids=("few", "more")
)
def test_a_changed_byte_in_a_folder_is_refused_in_one_line(home, steps, tmp_path):
    hub, original, run = home
    folder = tmp_path / "home"
    shutil.copytree(original, folder)
    expected = start(agent_of(hub, folder))
    assert expected[0] == 1 and expected[1] > 0
    offer = folder / run.name / "offer.json"
    signature = offer.read_bytes().index(b'"signature"')
    for path in (folder / "secret.locked", folder / run.name / "party.state", offer):
        for at in changed(path, steps):
            if path == offer and at > signature:
                continue  # it was checked when it came, and is not looked at again
            with pytest.raises(tacita.TacitaError) as refusal:
                start(agent_of(hub, folder))
            assert "\n" not in str(refusal.value), (path, at)
    assert start(agent_of(hub, folder)) == expected


def test_a_changed_byte_in_a_policy_is_refused_or_another_policy(tmp_path):
    """What it allows may change, as if its owner had; what is counted does not."""
    path = tmp_path / "policy.toml"
    path.write_text(POLICY)
    refused = 0
    for _ in changed(path, len(POLICY)):
        try:
            assert isinstance(Policy.read(path), Policy)
        except tacita.TacitaError as refusal:
            refused += 1
            assert str(refusal)
    assert refused > len(POLICY) / 2


def test_a_changed_byte_in_consents_is_refused(tmp_path):
    """A digit of a number of rows once changed what letters weigh, unseen."""
    path = tmp_path / "accepted.json"
    told = {"consents": {"ada": "aa"}, "rows": {"ada": 12, "bob": 7}}
    path.write_text(_to_be_kept(**told))
    assert _kept_consents(path) == told
    for _ in changed(path, len(path.read_bytes())):
        with pytest.raises(tacita.TacitaError, match="asked once more"):
            _kept_consents(path)


def test_a_changed_byte_in_notes_on_rounds_ends_no_run(tmp_path):
    """A name that nobody has ended a program whose run was over."""
    diary = Diary(tmp_path, NAMES, rounds=2)
    for number in (1, 2):
        diary.ended(number, ["ada", "cyd"])
    path = tmp_path / NOTES
    known = diary.arrivals()
    assert known == [[0, 2], [0, 2]]
    found = []
    for _ in changed(path, len(path.read_bytes())):
        again = Diary(tmp_path, NAMES, rounds=2)
        assert again.attendance() and again.turns() and again.traffic()
        found.append(again.arrivals())
    assert None in found
