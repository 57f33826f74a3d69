"""A running hub: who is let in and cut off, clusters, metrics, doctor."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import ssl
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import tacita
from tacita.cli.app import app
from tacita.federation import (
    Agent,
    Coordinator,
    Hub,
    Invitation,
    PostRoom,
    broker,
    certificates,
    coordinate,
    correspondence,
    doctor,
    hub_numbers,
    join,
)
from tacita.federation.metrics import MetricsServer, Pulse, text_of
from tacita.federation.nats_post import NatsPost
from tacita.federation.registrar import Registrar
from tacita.federation.thread_post import ThreadPost
from tests.federation.towns import NAMES, Town, run_of, table_of_rows
from tests.patience import HANG

ANY = {"allow_shared_seed": True, "allow_unprotected": True}


def wait_until(true: Any, seconds: float = HANG) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hub")
    with Hub.create(folder, "clinics", ["oslo", "turku"], port=0) as made:
        yield made


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="only Linux tells")
def test_the_broker_listens_on_loopback_only(hub: Hub):
    numbers = hub_numbers.ask(hub.brokers[0]).numbers
    assert numbers is not None and numbers["host"] == "127.0.0.1"
    # What the kernel says: no socket of this port on all interfaces.
    table = Path("/proc/net/tcp").read_text().splitlines()
    listening = [line.split()[1] for line in table if " 0A " in line]
    mine = [address for address in listening if address.endswith(f":{hub.port:04X}")]
    assert mine == [f"0100007F:{hub.port:04X}"]


def test_connections_are_limited(hub: Hub):
    numbers = hub_numbers.ask(hub.brokers[0]).numbers
    assert numbers is not None and numbers["max_connections"] <= 64


def test_a_client_that_does_not_end_leaves_no_line_open(hub: Hub):
    post = NatsPost(Invitation.load(hub.invitations["coordinator"]))
    line = post._client._transport._io_writer

    async def never() -> None:
        await asyncio.sleep(60)

    post._client.close = never  # as one that waits for its own connection does
    post._end()
    assert line.is_closing() and not post._thread.is_alive()


def test_removed_parties_are_cut_off_and_new_ones_come_in(tmp_path: Path):
    made = Hub.create(tmp_path / "hub", "clinics", ["oslo", "turku"], port=0)
    with made, NatsPost(Invitation.load(made.invitations["turku"])) as turku:
        eve = Invitation.load(made.invitations["oslo"])
        with NatsPost(eve) as oslo:
            assert oslo.connected and turku.connected
            Hub(made.folder).remove("oslo")  # as another program does it
            wait_until(lambda: not oslo.connected)
        with pytest.raises(tacita.TacitaError, match="was this certificate revoked"):
            NatsPost(eve, patience=0.5)
        assert turku.connected
        Hub(made.folder).add("bergen")
        bergen = Invitation.load(made.invitations["bergen"])
        wait_until(lambda: _let_in(bergen))


def _let_in(who: Invitation) -> bool:
    try:
        with NatsPost(who, patience=3.0):
            return True
    except tacita.TacitaError:
        return False


@pytest.mark.long
def test_a_renewed_certificate_is_taken_and_the_revoked_one_is_not(tmp_path: Path):
    made = Hub.create(tmp_path / "hub", "clinics", ["oslo"], port=0)
    with made:
        old = Invitation.load(made.invitations["oslo"])
        made.renew("oslo")
        new = Invitation.load(made.invitations["oslo"])
        wait_until(lambda: _let_in(new))
        assert _let_in(old)
        made.renew("oslo", revoke_old=True)
        newest = Invitation.load(made.invitations["oslo"])
        wait_until(lambda: _let_in(newest))
        assert not _let_in(new) and not _let_in(old)


def test_no_party_passes_for_a_broker(tmp_path: Path):
    """The brokers' own port takes certificates of another authority only."""
    made = Hub.create(tmp_path / "hub", "clinics", ["oslo"], port=0, brokers=2)
    folder = made.folder / "brokers" / "2"
    me = Invitation.load(made.invitations["oslo"])
    own = tmp_path / "access.pem"
    own.write_bytes(me.access.certificate + me.access.key)
    with made:
        port = made.brokers[0].cluster
        certificate, key = folder / "cluster-broker.pem", folder / "cluster-broker.key"
        assert _greeting(port, certificate, key).startswith(b"INFO")
        with pytest.raises(ssl.SSLError):
            _greeting(port, own)
        with pytest.raises(ssl.SSLError):  # nor a broker's certificate for parties
            _greeting(port, folder / "broker.pem", folder / "broker.key")


def _greeting(port: int, *certificate: Path) -> bytes:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(*certificate)
    with (
        socket.create_connection(("127.0.0.1", port), 5) as door,
        context.wrap_socket(door) as inside,
    ):
        return inside.recv(4096)


def test_somebody_who_was_invited_early_learns_who_came_later(tmp_path: Path):
    """Agents and the coordinator begin with rosters that know nobody else."""
    made = Hub.create(tmp_path / "hub", "town", port=0)
    early: dict[str, Any] = {}
    for name in [*NAMES, "centre"]:
        role = "coordinator" if name == "centre" else "agent"
        early[name] = Invitation.load(made.add(name, role))
    assert early["ada"].roster.names == ["ada"]
    with made, ThreadPoolExecutor() as pool:
        runs = [
            pool.submit(
                join,
                early[n],
                table_of_rows(n),
                ANY,
                60.0,
                folder=tmp_path / f"{n}-home",
            )
            for n in NAMES
        ]
        shared = coordinate(
            run_of(rounds=2), early["centre"], 60.0, folder=tmp_path / "centre-home"
        )
        assert shared is not None
        for run in runs:
            ours = run.result(HANG).models["shared"]
            assert ours.tobytes() == shared.models["shared"].tobytes()


class Heard(Exception):
    """What was waited for."""


def test_the_hub_is_asked_again_for_what_got_lost(tmp_path: Path, monkeypatch):
    """Somebody who waits for days hears of a change that it was not told."""
    made = Hub.create(tmp_path / "hub", "town", NAMES, port=0)
    monkeypatch.setattr(correspondence, "_HUB_PAUSE", 0.2)
    monkeypatch.setattr(Registrar, "_look", lambda self: None)
    said: list[str] = []

    def tell(line: str) -> None:
        said.append(line)
        if "version 2 of the roster is known now" in line:
            raise Heard

    with made:
        ada = Agent(
            made.invitations["ada"], {}, ANY, folder=tmp_path / "ada", tell=tell
        )
        with ThreadPoolExecutor() as pool:
            waits = pool.submit(ada.take_part, HANG)
            wait_until(lambda: any("connected" in line for line in said))
            made.add("dan")
            text = (made.folder / "roster.signed").read_text()
            assert made._registrar is not None
            made._registrar._text = text  # it knows, and has told nobody
            with pytest.raises(Heard):
                waits.result(HANG)
        with pytest.raises(tacita.TacitaError, match="no run was offered"):
            ada.take_part(0.05)


@pytest.mark.long
def test_a_member_removed_in_the_middle_ends_a_run_that_needs_it(tmp_path: Path):
    made = Hub.create(tmp_path / "hub", "town", NAMES, port=0)
    said: list[str] = []
    cyd = Invitation.load(made.invitations["cyd"])

    def options(who: str) -> Any:
        return {"folder": tmp_path / who, "tell": said.append, "silence": 1.5}

    def take_part(who: str) -> str:
        try:
            join(made.invitations[who], table_of_rows(who), ANY, 60.0, **options(who))
        except tacita.TacitaError as error:
            return str(error)
        raise AssertionError("it should not end well")

    def lead() -> str:
        centre = made.invitations["coordinator"]
        with pytest.raises(tacita.TacitaError) as error:
            coordinate(run_of(rounds=10**4), centre, 60.0, **options("coordinator"))
        return str(error.value)

    with made, ThreadPoolExecutor() as pool:
        agents = {name: pool.submit(take_part, name) for name in NAMES}
        centre = pool.submit(lead)
        wait_until(lambda: (tmp_path / "coordinator" / "status.json").exists())
        Hub(made.folder).remove("cyd")
        assert "cyd was removed from the federation" in centre.result(HANG)
        assert "'cyd' was removed from the federation" in agents["cyd"].result(HANG)
        # The others wait for the coordinator; when they give up, all is kept.
        for name in ("ada", "bob"):
            assert "the state is kept in" in agents[name].result(HANG)
            assert list((tmp_path / name).glob("*/party.state"))
    assert "version 2 of the roster is known now" in said
    with pytest.raises(tacita.TacitaError, match="'cyd' was removed"):
        Agent(cyd, {}, folder=tmp_path / "cyd")


def test_files_in_a_folder_that_was_open_are_closed(tmp_path: Path):
    for who in ("ada-home", "coordinator-home"):
        (tmp_path / who).mkdir(mode=0o755)
        (tmp_path / who).chmod(0o755)
    umask = os.umask(0o022)
    try:
        with Town(tmp_path, PostRoom()) as town:
            town.run(
                run_of(rounds=1, privacy={"epsilon": 5.0, "delta": 1e-5, "norm": 1.0})
            )
    finally:
        os.umask(umask)
    for who in ("ada-home", "coordinator-home"):
        assert (tmp_path / who).stat().st_mode & 0o077 == 0
    private = {"ledger.db", "status.json", "result.json", "privacy.json", "offer.json"}
    seen = set()
    for path in (tmp_path / "ada-home").rglob("*"):
        if path.name in private:
            seen.add(path.name)
            assert path.stat().st_mode & 0o077 == 0, path
    assert seen == private


def fetch(port: int, path: str = "metrics") -> str:
    with urllib.request.urlopen(
        f"http://127.0.0.1:{port}/{path}", timeout=HANG
    ) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain")
        return answer.read().decode()


def numbers_in(text: str) -> dict[str, float]:
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (x.rpartition(" ") for x in lines)}


def test_parties_tell_their_numbers(tmp_path: Path):
    budget = {"epsilon": 5.0, "delta": 1e-5, "norm": 1.0}
    run, port = run_of(rounds=3, privacy=budget), broker.free_port()
    health: list[str] = []
    with Town(tmp_path, PostRoom()) as town, ThreadPoolExecutor() as pool:
        made = town.hub.invitations

        def tell(line: str) -> None:
            health.append(fetch(port, "healthz"))

        options = {**town.options("ada"), "metrics": port, "tell": tell}
        ada = Agent(made["ada"], table_of_rows("ada"), ANY, **options)
        centre = Coordinator(run, made["coordinator"], **town.options("coordinator"))
        ended = [pool.submit(ada.take_part, 60.0), pool.submit(centre.lead, 60.0)]
        ended += [town.join(name) for name in ("bob", "cyd")]
        for future in ended:
            future.result(HANG)
    assert set(health) == {"ok\n"}
    with MetricsServer(0, ada.pulse) as server:
        text = fetch(server.port)
        for path in ("", "etc", "metrics/../status.json"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                fetch(server.port, path)
    told = numbers_in(text)
    about = 'party="ada",observer="coordinator",unit="record",relation="replace_one",'
    about += 'delta="1e-05"'
    for word in ("spent", "allowed"):
        name = f"tacita_epsilon_{word}"
        assert told[f"{name}{{{about}}}"] == pytest.approx(5.0, rel=1e-2)
        (why,) = (x for x in text.splitlines() if x.startswith(f"# HELP {name} "))
        assert "Gaussian composition" in why and "(enforced)" in why
    for name in ("sent_bytes_total", "received_bytes_total", "roster_version"):
        assert told[f'tacita_{name}{{party="ada"}}'] > 0
    assert told['tacita_letters_sent_total{party="ada"}'] >= 3
    assert told['tacita_round{party="ada"}'] == 3
    # Nobody's budget is told anywhere else.
    with MetricsServer(0, centre.pulse) as server:
        text = fetch(server.port)
    assert "epsilon" not in text
    assert numbers_in(text)['tacita_finished{party="coordinator"}'] == 1


def test_the_time_of_a_round_is_told():
    pulse = Pulse("ada", lambda: {"certificate_ends": 1, "roster_version": 2})
    began = time.time()
    for number in (1, 1, 5):
        pulse.beat(ThreadPost("ada", {}), {"round": number, "rounds": 9})
    found = numbers_in(text_of(pulse.samples()))
    ended = found['tacita_last_round_timestamp_seconds{party="ada"}']
    # Numbers are told to the millisecond.
    assert began - 0.001 <= ended <= time.time() + 0.001
    assert 0 < found['tacita_last_round_seconds{party="ada"}'] <= ended - began + 0.002


def test_health_says_what_is_wrong(hub: Hub):
    source = hub_numbers.HubNumbers(hub)
    with MetricsServer(0, source) as server:
        assert fetch(server.port, "healthz") == "ok\n"
        told = numbers_in(fetch(server.port))
        assert told[f'tacita_broker_up{{broker="{hub.brokers[0].server}"}}'] == 1
        assert (
            told['tacita_certificate_end_timestamp_seconds{party="oslo"}'] > time.time()
        )
        assert told['tacita_members{federation="clinics"}'] == 3
        with pytest.raises(tacita.TacitaError, match="cannot tell metrics on port"):
            MetricsServer(server.port, source)
    idle = hub_numbers.HubNumbers(Hub(hub.folder))
    with MetricsServer(0, idle) as server:
        with pytest.raises(urllib.error.HTTPError, match="503"):
            fetch(server.port, "healthz")


def examined(*words: object) -> tuple[int, dict[str, str]]:
    answer = CliRunner().invoke(app, ["federation", "doctor", *map(str, words)])
    lines = [line for line in answer.output.splitlines() if ": " in line]
    assert all(line.startswith(("ok  ", "FAIL")) for line in lines)
    return answer.exit_code, {
        f"{line[6:].partition(': ')[0]}|{line[:4].strip()}": line for line in lines
    }


def test_the_doctor_finds_nothing_where_all_is_well(hub: Hub, tmp_path: Path):
    for words in ([hub.folder], [hub.invitations["oslo"], "--folder", tmp_path]):
        code, found = examined(*words)
        assert code == 0, found
        assert not [line for line in found.values() if line.startswith("FAIL")]
    assert {"clock|ok", "connection|ok", "hub|ok", "disk|ok", "versions|ok"} <= set(
        found
    )


def test_the_doctor_says_what_to_do(hub: Hub, tmp_path: Path, monkeypatch):
    # Somebody whose clock is wrong, whose folder is open and whose disk is full.
    home = tmp_path / "open"
    home.mkdir()
    home.chmod(0o755)
    monkeypatch.setattr(doctor, "_now", lambda: time.time() + 500)
    monkeypatch.setattr(doctor, "_ROOM", 1 << 80)
    code, found = examined(hub.invitations["turku"], "--folder", home)
    assert code == 1
    assert "500" in found["clock|FAIL"] and "synchronisation" in found["clock|FAIL"]
    assert f"chmod 700 {home}" in found["party's folder|FAIL"]
    assert "make room" in found["disk|FAIL"]
    monkeypatch.undo()
    # A certificate near its end, of another authority and of a former number.
    made = Hub.create(tmp_path / "hub", "clinics", ["oslo"], port=0)
    monkeypatch.setattr(certificates, "WARN_DAYS", 900)
    path = made.invitations["oslo"]
    told = json.loads(path.read_text())
    other = certificates.authority("other")
    key = certificates.load_key(told["secrets"]["access"].encode())
    forged = certificates.certify(other, "turku.7", key.public_key())
    path.write_text(json.dumps({**told, "certificate": forged.decode()}))
    monkeypatch.setattr(doctor, "_PATIENCE", 0.3)
    code, found = examined(path, "--folder", tmp_path / "oslo")
    assert code == 1
    for what in ("chain", "name", "end"):
        assert "new invitation" in found[f"certificate's {what}|FAIL"]
    assert "open the port in the firewall" in str(found)
    assert "is the hub running" in found["connection|FAIL"]
    # The same hub, which was never started, from its own side.
    (made.folder / "owner.keys.json").chmod(0o644)
    code, found = examined(made.folder)
    assert code == 1
    assert "tacita hub start" in str(found) and "chmod 600" in str(found)
    assert f"tacita hub renew {made.folder} oslo" in found["certificate of oslo|FAIL"]


def test_letters_go_from_one_broker_to_the_other(tmp_path: Path):
    made = Hub.create(tmp_path / "hub", "pair", ["a", "b"], port=0, brokers=2)

    def at(name: str, place: int) -> NatsPost:
        me = Invitation.load(made.invitations[name])
        one = replace(me.roster, brokers=me.roster.brokers[place : place + 1])
        return NatsPost(me.with_roster(one))

    with made, at("a", 0) as a, at("b", 1) as b:

        def arrives() -> bool:
            a.deliver("b", b"hello")
            return b.collect(0.1)[:1] == [b"hello"]

        wait_until(arrives)  # the two brokers find each other in a moment


@pytest.mark.long
def test_one_of_two_brokers_dies_in_the_middle_and_no_bit_changes(tmp_path: Path):
    run = run_of(rounds=60, privacy={"epsilon": 5.0, "delta": 1e-5, "norm": 1.0})
    with Town(tmp_path / "calm", PostRoom()) as town:
        expected = town.run(run)
    with Town(tmp_path / "pair", brokers=2) as town, ThreadPoolExecutor() as pool:
        assert len(town.hub.roster.brokers) == 2
        results = pool.submit(town.run, run)
        for doomed, number in zip(town.hub.children, (10, 30), strict=True):
            wait_until(lambda n=number: town.round() >= n)
            doomed.kill()
            doomed.wait(HANG)
            if number == 10:  # and it comes back before the other goes
                town.hub.children[0] = town.hub.start_broker(1)
        found = results.result(HANG)
    for who, result in expected.items():
        for which, model in result.models.items():
            assert found[who].models[which].tobytes() == model.tobytes()
