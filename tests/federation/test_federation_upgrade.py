"""Programs of different versions, and a run that outlives a change of its roster."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

import tacita
from tacita.disk import write_private
from tacita.federation import Agent, Coordinator, Hub, Invitation, PostRoom
from tacita.federation.description import Description, read_signed
from tacita.federation.protocol import PROTOCOL
from tacita.privacy import Ledger
from tests.federation.towns import NAMES, Town, run_of, table_of_rows
from tests.patience import HANG

ANY = {"allow_shared_seed": True, "allow_unprotected": True}


def begun(home: Path, me: Invitation, protocol: int, **tables) -> Description:
    """Leave a run in a folder, as a program of some protocol does."""
    run = Description(
        "town", "run", "coordinator", tuple(NAMES), {**run_of(), **tables}
    )
    run = replace(run, protocol=protocol)
    write_private(home / run.digest / "offer.json", run.signed(me.keys))
    return run


@pytest.fixture
def town(tmp_path: Path) -> Hub:
    return Hub.create(tmp_path / "hub", "town", NAMES, port=0)


def test_a_description_says_what_it_speaks(town: Hub):
    me = Invitation.load(town.invitations["coordinator"])
    run = Description("town", "run", "coordinator", tuple(NAMES), run_of())
    assert json.loads(run.text())["protocol"] == PROTOCOL
    read_signed(run.signed(me.keys), "town", me.others, "coordinator")
    other = replace(run, protocol=PROTOCOL + 1)
    assert other.digest != run.digest
    with pytest.raises(tacita.TacitaError, match=f"speaks protocol {PROTOCOL + 1}"):
        read_signed(other.signed(me.keys), "town", me.others, "coordinator")


def test_a_run_of_another_protocol_is_not_gone_on_with(town: Hub, tmp_path: Path):
    me = Invitation.load(town.invitations["coordinator"])
    begun(tmp_path / "ada", me, PROTOCOL + 1)
    ada = Agent(
        town.invitations["ada"],
        table_of_rows("ada"),
        ANY,
        folder=tmp_path / "ada",
        post=PostRoom(),
    )
    with pytest.raises(tacita.TacitaError, match="use the same version everywhere"):
        ada.take_part(1.0)
    begun(tmp_path / "centre", me, PROTOCOL + 1)
    with pytest.raises(tacita.TacitaError, match="which was begun here, speaks"):
        Coordinator(run_of(), me, folder=tmp_path / "centre")


@pytest.mark.parametrize("what", ["hub.json", "invitations/ada.json"])
def test_folders_of_another_protocol_are_refused(town: Hub, what: str):
    path = town.folder / what
    told = json.loads(path.read_text())
    write_private(path, json.dumps({**told, "protocol": PROTOCOL + 1}))
    with pytest.raises(tacita.TacitaError, match=f"speaks protocol {PROTOCOL + 1}"):
        Hub(path.parent) if what == "hub.json" else Invitation.load(path)


def test_a_run_goes_on_with_those_it_began_with(town: Hub, tmp_path: Path):
    """A coordinator that was killed must not offer another run after a site came."""
    old = Invitation.load(town.invitations["coordinator"])
    first = Coordinator(run_of(), old, folder=tmp_path / "centre").run
    write_private(
        tmp_path / "centre" / first.digest / "offer.json", first.signed(old.keys)
    )
    town.add("dan")
    new = Invitation.load(town.invitations["coordinator"])
    again = Coordinator(run_of(), new, folder=tmp_path / "centre").run
    assert again.digest == first.digest and again.agents == tuple(NAMES)
    other = Coordinator(run_of(rounds=7), new, folder=tmp_path / "centre").run
    assert other.agents == (*NAMES, "dan")
    result = tmp_path / "centre" / first.digest / "result.json"
    write_private(result, "{}")
    fresh = Coordinator(run_of(), new, folder=tmp_path / "centre").run
    assert fresh.agents == (*NAMES, "dan")


def test_no_run_is_proposed_to_strangers_or_past_who_must_approve(
    town: Hub, tmp_path: Path
):
    town.add("dan", approves=True)
    me = Invitation.load(town.invitations["coordinator"])
    with pytest.raises(tacita.TacitaError, match="'eve' is no agent"):
        Coordinator(run_of(agents=["ada", "eve"]), me, folder=tmp_path)
    with pytest.raises(tacita.TacitaError, match="without the consent of 'dan'"):
        Coordinator(run_of(agents=["ada", "bob"]), me, folder=tmp_path)


def test_an_agent_refuses_a_run_with_invented_names(town: Hub, tmp_path: Path):
    me = Invitation.load(town.invitations["coordinator"])
    agents = tuple(sorted([*NAMES, "invented"]))
    run = Description("town", "run", "coordinator", agents, run_of())
    ada = Agent(town.invitations["ada"], table_of_rows("ada"), ANY, folder=tmp_path)
    with Ledger(tmp_path / "ledger.db") as ledger:
        verdict = ada.judge.verdict(run, run.signed(me.keys), ledger)
    assert verdict == (False, "refused")
    assert "'invented' is no agent" in (tmp_path / "log.jsonl").read_text()


def test_who_must_approve_is_waited_for(tmp_path: Path):
    run = run_of(rounds=2)
    run["run"] |= {"least_agents": 1, "deadline": 0.5}
    with Town(tmp_path, PostRoom()) as town, ThreadPoolExecutor() as pool:
        hub = town.hub
        hub.remove("cyd")
        hub.add("cyd", approves=True)
        for name in ("ada", "bob"):
            town.join(name)
        centre = Coordinator(
            run, hub.invitations["coordinator"], **town.options("coordinator")
        )
        led = pool.submit(centre.lead, 60.0)
        said = town.said["coordinator"]
        while not {"ada accepts", "bob accepts"} <= set(said):
            assert not led.done()
        assert not list((tmp_path / "coordinator-home").glob("*/accepted.json"))
        town.join("cyd")
        assert led.result(HANG) is not None
        assert "cyd accepts" in said
