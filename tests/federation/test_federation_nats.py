"""The real post: what gets through the broker, and who is kept out."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import time
from pathlib import Path

import nats
import pytest

import tacita
from tacita.federation import (
    Hub,
    Invitation,
    Request,
    broker,
    certificates,
    make_request,
    nats_post,
)
from tacita.federation.nats_post import NatsPost, Pieces
from tests.patience import HANG


def wait_for(post: NatsPost, count: int, seconds: float = HANG) -> list[bytes]:
    found: list[bytes] = []
    end = time.monotonic() + seconds
    while len(found) < count and time.monotonic() < end:
        found += post.collect(0.2)
    return found


def test_letters_arrive_large_ones_too(clinics):
    a, b = (Invitation.load(clinics[name]) for name in ("oslo", "coordinator"))
    with NatsPost(a) as oslo, NatsPost(b) as centre:
        centre.expect(9 << 20)
        large = os.urandom(9 << 20)
        oslo.deliver("coordinator", b"small")
        oslo.deliver("coordinator", large)
        centre.deliver("oslo", b"back")
        assert wait_for(centre, 2) == [b"small", large]
        assert wait_for(oslo, 1) == [b"back"]
        assert oslo.connected and centre.collect(0.0) == []


def test_an_unknown_certificate_stays_outside(clinics, tmp_path: Path):
    known = Invitation.load(clinics["oslo"])
    stranger = certificates.issue(certificates.authority("clinics"), "oslo")
    with pytest.raises(tacita.TacitaError, match="no connection to the broker"):
        NatsPost(dataclasses.replace(known, access=stranger), patience=1.0)


def test_a_broker_with_another_certificate_is_not_believed(clinics):
    known = Invitation.load(clinics["oslo"])
    other = certificates.authority("clinics").certificate
    with pytest.raises(tacita.TacitaError, match="no connection to the broker"):
        NatsPost(dataclasses.replace(known, authority=other), patience=1.0)


def test_another_agents_subjects_are_closed(clinics):
    turku = Invitation.load(clinics["turku"])
    said: list[str] = []

    async def note(error: Exception) -> None:
        said.append(str(error))

    async def try_it() -> list[bytes]:
        got: list[bytes] = []

        async def keep(message) -> None:
            got.append(message.data)

        client = await nats.connect(
            f"tls://{turku.server}",
            tls=nats_post._context(turku),
            tls_hostname="127.0.0.1",
            error_cb=note,
            allow_reconnect=False,
        )
        arrived = asyncio.Event()

        async def own(message) -> None:
            arrived.set()

        await client.subscribe("tacita.clinics.turku.*", cb=own)
        await client.subscribe("tacita.clinics.oslo.*", cb=keep)  # to read its letters
        await client.subscribe("tacita.>", cb=keep)  # to read everybody's
        await client.publish("tacita.clinics.coordinator.oslo", b"as oslo")
        await client.flush()
        with NatsPost(Invitation.load(clinics["coordinator"])) as centre:
            centre.deliver("oslo", b"for oslo only")
            centre.deliver("turku", b"sent later, so it comes later")
            await asyncio.wait_for(arrived.wait(), HANG)
            assert centre.collect(0.0) == []
        await client.close()
        return got

    assert asyncio.run(try_it()) == []
    assert len(said) == 3
    assert all("permissions violation" in line.lower() for line in said)


def test_the_broker_refuses_old_tls_and_plain_text(clinics):
    async def try_it() -> None:
        oslo = Invitation.load(clinics["oslo"])
        context = nats_post._context(oslo)
        import ssl

        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        for options in ({"tls": context, "tls_hostname": "127.0.0.1"}, {}):
            scheme = "tls" if options else "nats"
            with pytest.raises(Exception):  # noqa: B017 - the library raises many kinds
                await nats.connect(
                    f"{scheme}://{oslo.server}",
                    allow_reconnect=False,
                    connect_timeout=2,
                    error_cb=ignore,
                    **options,
                )

    async def ignore(error: Exception) -> None:
        pass

    asyncio.run(try_it())


def test_a_broker_that_dies_and_returns(tmp_path: Path):
    hub = Hub.create(tmp_path / "hub", "pair", ["a", "b"], port=0)
    child = hub.start()
    try:
        one, two = (Invitation.load(hub.invitations[name]) for name in ("a", "b"))
        with NatsPost(one) as a, NatsPost(two) as b:
            a.deliver("b", b"before")
            assert wait_for(b, 1) == [b"before"]
            child.kill()
            child.wait(HANG)
            hub.start()
            end = time.monotonic() + HANG
            found: list[bytes] = []
            while not found and time.monotonic() < end:
                a.deliver("b", b"after")
                found = b.collect(0.3)
            assert found[0] == b"after"
            assert a._client.stats["reconnects"] == 1
            assert a.connected and not a.under_way()
    finally:
        hub.stop()


def test_pieces_come_together_in_any_order_and_nothing_else_does():
    pieces = Pieces(size=10, most_bytes=35)
    content = os.urandom(35)
    cut = pieces.cut(content)
    assert len(cut) == 4
    got = [pieces.join("a", piece) for piece in (cut[2], cut[0], cut[0], cut[3])]
    assert got == [None] * 4
    assert pieces.join("b", cut[1]) is None  # another sender's piece is not taken
    assert pieces.join("a", cut[1]) == content
    assert pieces.join("a", pieces.cut(b"")[0]) == b""
    for bad in (b"", b"x" * 23, b"x" * 40, nats_post._HEAD.pack(b"m" * 16, 0, 2**31)):
        assert pieces.join("a", bad) is None
    assert pieces.dropped == 4


def test_unfinished_letters_take_no_more_memory_than_one_letter():
    """Pieces are held before anybody can check who signed them."""
    pieces = Pieces(size=10, most_bytes=35)
    for _ in range(50):  # a sender who never finishes
        for piece in pieces.cut(os.urandom(35))[:3]:
            pieces.join("a", piece)
    held = [len(b) for one in pieces._open.values() for b in one.pieces.values()]
    assert sum(held) <= 35
    # One that says it is longer than anything that is read here is not even begun.
    assert all(pieces.join("b", p) is None for p in Pieces(size=10).cut(bytes(41)))
    assert pieces.join("c", Pieces(size=40).cut(bytes(36))[0]) is None
    assert set(pieces._open) == {"a"}


def test_old_servers_are_refused(tmp_path: Path, monkeypatch):
    fake = tmp_path / "nats-server"
    monkeypatch.setenv(broker.VARIABLE, str(fake))
    with pytest.raises(tacita.TacitaError, match="no file"):
        broker.find()
    for version, good in {
        "2.9.10": False,
        "2.11.14": False,
        "2.11.15": True,
        "2.12.5": False,
        "2.12.6": True,
        "3.0.0": True,
    }.items():
        fake.write_text(f"#!/bin/sh\necho nats-server: v{version}\n")
        fake.chmod(0o700)
        if good:
            assert broker.command(tmp_path / "c")[0] == str(fake)
        else:
            with pytest.raises(tacita.TacitaError, match="CVE-2026-33248"):
                broker.command(tmp_path / "c")


def test_invitations_are_private_and_checked(tmp_path: Path):
    folder = tmp_path / "hub"
    hub = Hub.create(folder, "f", ["b"])
    mine, request = make_request(tmp_path, "a")
    hub.sign(Request.load(request))
    made = hub.invitations
    for path in [*made.values(), mine, *folder.glob("**/*.*")]:
        assert path.stat().st_mode & 0o077 == 0, path
    secrets = json.loads(mine.read_text())
    kept = [p.read_text() for p in folder.glob("**/*") if p.is_file()]
    for secret in (*secrets["private"].values(), secrets["access"]):
        assert all(secret not in text for text in kept)  # the hub never had them
    assert Invitation.load(made["a"], mine).agents == ["a", "b"]
    with pytest.raises(tacita.TacitaError, match="--keys"):
        Invitation.load(made["a"])
    with pytest.raises(tacita.TacitaError, match="not the keys"):
        Invitation.load(made["b"], mine)
    made["b"].chmod(0o644)
    with pytest.raises(tacita.TacitaError, match="chmod 600"):
        Invitation.load(made["b"])
    made["a"].chmod(0o644)  # there is nothing secret in it, and it comes by mail
    assert Invitation.load(made["a"], mine).name == "a"
    with pytest.raises(tacita.TacitaError, match="holds a federation already"):
        Hub.create(folder, "f", ["a"])
    for names in (["a", "a"], ["A"], ["a.b"], ["*"], ["coordinator"], ["hub"]):
        with pytest.raises(tacita.TacitaError):
            Hub.create(tmp_path / "other", "f", names)
