"""The roster: signed, growing, and what its changes do to parties and letters."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import tacita
from tacita.federation import (
    Hub,
    Invitation,
    Member,
    PrivateKeys,
    Request,
    Roster,
    certificates,
    make_request,
)
from tacita.federation.membership import Membership, announce_end
from tacita.federation.roster import HUB
from tacita.federation.seal import Sealed
from tacita.federation.wire import LetterRefused, note

OWNER = PrivateKeys.fresh()
KEYS = {name: PrivateKeys.fresh() for name in ("centre", "oslo", "turku")}


def roster(version: int = 1, approves: str = "", **roles: str) -> Roster:
    roles = roles or {"centre": "coordinator", "oslo": "agent", "turku": "agent"}
    members = {
        name: Member(role, KEYS[name].public, approves=name == approves)
        for name, role in roles.items()
    }
    return Roster("clinics", version, members, ("127.0.0.1:4222",))


def test_a_roster_comes_back_as_it_was(tmp_path: Path):
    one = roster()
    path = tmp_path / "roster.signed"
    path.write_text(one.signed(OWNER))
    read = Roster.load(path, OWNER.public)
    assert read == one
    assert read.names == ["centre", "oslo", "turku"]
    assert (read.agents, read.coordinators) == (["oslo", "turku"], ["centre"])


def test_a_changed_byte_or_another_owner_is_refused():
    signed = roster().signed(OWNER)
    with pytest.raises(LetterRefused, match="not signed"):
        Roster.verify(signed, PrivateKeys.fresh().public)
    for place in (0, 5, 127, 128, 129, 200, len(signed) - 1):
        bad = signed[:place] + ("0" if signed[place] != "0" else "1")
        with pytest.raises(LetterRefused):
            Roster.verify(bad + signed[place + 1 :], OWNER.public)
    for bad in ("", "zz" * 64 + "\n{}", signed[:-1], "[" * 100_000):
        with pytest.raises(LetterRefused):
            Roster.verify(bad, OWNER.public)


def test_another_protocol_is_refused():
    signed = replace(roster(), protocol=99).signed(OWNER)
    with pytest.raises(tacita.TacitaError, match="speaks protocol 99"):
        Roster.verify(signed, OWNER.public)


def test_versions_grow_and_never_fork():
    old, new = roster(3), roster(4)
    old.require_successor(new)
    old.require_successor(old)
    with pytest.raises(LetterRefused, match="older than 4"):
        new.require_successor(old)
    fork = roster(3, centre="coordinator", oslo="agent")
    with pytest.raises(LetterRefused, match="both called version 3"):
        old.require_successor(fork)
    with pytest.raises(LetterRefused, match="another federation"):
        old.require_successor(replace(new, federation="banks"))


@pytest.mark.parametrize(
    "starter, agents, reason",
    [
        ("oslo", ["oslo", "turku"], "'oslo' may not propose runs"),
        ("eve", ["oslo", "turku"], "'eve' may not propose runs"),
        ("centre", ["oslo", "invented"], "'invented' is no agent"),
        ("centre", ["oslo", "centre"], "'centre' is no agent"),
        ("centre", ["oslo"], "without the consent of 'turku'"),
    ],
)
def test_runs_of_strangers_are_refused(starter, agents, reason):
    one = roster(approves="turku")
    one.require("centre", ["oslo", "turku"])
    with pytest.raises(tacita.TacitaError, match=reason):
        one.require(starter, agents)


def invited(name: str, known: Roster) -> Invitation:
    made = certificates.authority("any")
    return Invitation(name, b"", made, KEYS[name], OWNER.public, known)


def test_a_party_keeps_the_newest_roster_over_a_restart(tmp_path: Path):
    first = Membership(invited("oslo", roster(1)), tmp_path)
    assert first.take(roster(5).signed(OWNER))
    assert not first.take(roster(5).signed(OWNER))
    with pytest.raises(LetterRefused, match="older than 5"):
        first.take(roster(4).signed(OWNER))
    again = Membership(invited("oslo", roster(1)), tmp_path)
    assert again.me.roster.version == 5
    with pytest.raises(LetterRefused, match="older than 5"):
        again.take(roster(4).signed(OWNER))
    forked = replace(roster(5), brokers=("other:4222",))
    with pytest.raises(tacita.TacitaError, match="both called version 5"):
        Membership(invited("oslo", forked), tmp_path)
    newer = Membership(invited("oslo", roster(6)), tmp_path)
    assert newer.me.roster.version == 6
    (tmp_path / "roster.signed").write_text("rubbish")
    with pytest.raises(tacita.TacitaError, match="damaged or of another federation"):
        Membership(invited("oslo", roster(1)), tmp_path)


def test_a_party_that_was_removed_or_got_other_keys_stops(tmp_path: Path):
    member = Membership(invited("oslo", roster(1)), tmp_path)
    gone = roster(2, centre="coordinator", turku="agent")
    with pytest.raises(tacita.TacitaError, match="'oslo' was removed"):
        member.take(gone.signed(OWNER))
    member = Membership(invited("turku", roster(1)), tmp_path / "turku")
    members = {**roster().members, "turku": Member("agent", KEYS["oslo"].public)}
    other = roster().changed(members)
    with pytest.raises(tacita.TacitaError, match="'turku' has other keys"):
        member.take(other.signed(OWNER))


def test_letters_of_a_revoked_key_are_refused():
    centre = Sealed("centre", KEYS["centre"], roster().keys)
    oslo = Sealed("oslo", KEYS["oslo"], roster().keys)
    letter = oslo.close(note("ask", "clinics", "oslo", "centre"))
    assert centre.open(letter, 1 << 20).identity.sender == "oslo"
    # Its keys are replaced: what the old ones sign is worth nothing.
    centre.know({**roster().keys, "oslo": PrivateKeys.fresh().public})
    with pytest.raises(LetterRefused, match="not signed by whom it says"):
        centre.open(letter, 1 << 20)
    # It is removed: not heard, and what is still addressed to it, it cannot read.
    centre.know({k: v for k, v in roster().keys.items() if k != "oslo"})
    with pytest.raises(LetterRefused, match="not one that this party talks to"):
        centre.open(letter, 1 << 20)
    closed = centre.close(note("offer", "clinics", "centre", "oslo"))
    with pytest.raises(LetterRefused, match="damaged or altered"):
        oslo.open(closed, 1 << 20)
    with pytest.raises(tacita.TacitaError, match="no public key"):
        centre.close(note("offer", "clinics", "centre", "nobody"))


def test_members_come_and_go_and_the_others_stay(tmp_path: Path):
    hub = Hub.create(tmp_path / "hub", "clinics", ["oslo", "turku"], port=0)
    before = {n: json.loads(p.read_text()) for n, p in hub.invitations.items()}
    assert hub.roster.version == 1
    hub.add("bergen", approves=True)
    assert hub.roster.agents == ["bergen", "oslo", "turku"]
    assert hub.roster.approvers == ["bergen"]
    hub.remove("turku")
    assert hub.roster.names == ["bergen", "coordinator", "oslo"]
    assert hub.roster.version == 3 and "turku" not in hub.invitations
    after = json.loads(hub.invitations["oslo"].read_text())
    assert {k: v for k, v in after.items() if k != "roster"} == {
        k: v for k, v in before["oslo"].items() if k != "roster"
    }
    assert Invitation.load(hub.invitations["oslo"]).roster == hub.roster
    for change in (lambda: hub.add("oslo"), lambda: hub.add(HUB)):
        with pytest.raises(tacita.TacitaError):
            change()
    with pytest.raises(tacita.TacitaError, match="'coordinator' coordinates this"):
        hub.add("second", "coordinator")
    for change in (hub.remove, hub.renew):
        with pytest.raises(tacita.TacitaError, match="no member"):
            change("turku")


def config_of(hub: Hub) -> str:
    return (hub.folder / "brokers" / "1" / "broker.conf").read_text()


def test_no_certificate_becomes_good_again(tmp_path: Path):
    hub = Hub.create(tmp_path / "hub", "clinics", ["oslo"], port=0)
    assert '"CN=oslo.1"' in config_of(hub)
    hub.renew("oslo")  # the site may change over when it likes
    assert '"CN=oslo.1"' in config_of(hub) and '"CN=oslo.2"' in config_of(hub)
    hub.renew("oslo", revoke_old=True)
    assert '"CN=oslo.2"' not in config_of(hub) and '"CN=oslo.3"' in config_of(hub)
    hub.remove("oslo")
    assert "oslo" not in config_of(hub)
    hub.add("oslo")
    assert '"CN=oslo.4"' in config_of(hub) and '"CN=oslo.3"' not in config_of(hub)


def test_a_site_rotates_its_keys_and_keeps_its_secret(tmp_path: Path):
    hub = Hub.create(tmp_path / "hub", "clinics", port=0)
    keys, request = make_request(tmp_path / "a", "oslo")
    path = hub.sign(Request.load(request))
    old = Invitation.load(path, keys)
    locked = old.keys.lock("secret", b"noise")
    new_keys, asked = make_request(tmp_path / "b", "oslo", rotate=keys)
    with pytest.raises(tacita.TacitaError, match="is a member already"):
        hub.sign(Request.load(asked))
    path = hub.sign(Request.load(asked), renew=True)
    with pytest.raises(tacita.TacitaError, match="not the keys"):
        Invitation.load(path, keys)
    new = Invitation.load(path, new_keys)
    assert new.keys.public != old.keys.public
    assert new.keys.unlock("secret", locked) == b"noise"
    assert '"CN=oslo.1"' not in config_of(hub)


def test_requests_are_checked(tmp_path: Path):
    hub = Hub.create(tmp_path / "hub", "clinics", port=0)
    _, request = make_request(tmp_path, "oslo")
    _, other = make_request(tmp_path, "turku")
    good, foreign = json.loads(request.read_text()), json.loads(other.read_text())
    for change in (
        {"name": "bergen"},
        {"public": foreign["public"]},
        {"signing_request": foreign["signing_request"]},
        {"signature": foreign["signature"]},
        {"signature": "zz"},
        {"signing_request": "rubbish"},
        {"protocol": 99},
        {"public": None},
        {"name": ["oslo"]},
    ):
        request.write_text(json.dumps({**good, **change}))
        with pytest.raises(tacita.TacitaError):
            Request.load(request)
    for content in ("", "[]", "[" * 100_000, "x" * (1 << 23)):
        request.write_text(content)
        with pytest.raises(tacita.TacitaError, match="file of this federation"):
            Request.load(request)
    request.write_text(json.dumps(good))
    assert hub.sign(Request.load(request), "coordinator").exists()
    assert hub.roster.coordinators == ["oslo"]


def test_the_end_of_a_certificate_is_announced():
    authority = certificates.authority("any")
    said: list[str] = []
    for days in (100, 12):
        made = certificates.issue(authority, "oslo.1", days=days)
        announce_end(made.certificate, said.append)
    assert len(said) == 1 and "ends in 11 days" in said[0]
    made = certificates.issue(authority, "oslo.1", days=0)
    with pytest.raises(tacita.TacitaError, match="has ended"):
        announce_end(made.certificate, said.append)


JUNK = (None, 1, -1, 1.5, True, "x", "\x1b[31m", [], ["x"], {}, {"x": 1}, "9" * 5000)


@pytest.mark.parametrize("field", ["version", "members", "brokers", "federation"])
def test_no_roster_however_odd_ends_in_a_traceback(field: str):
    words = json.loads(roster().text())
    odd = [{**words, field: junk} for junk in JUNK]
    for key in words["members"]["oslo"] if field == "members" else ():
        for junk in JUNK:
            member = {**words["members"]["oslo"], key: junk}
            odd.append({**words, "members": {**words["members"], "oslo": member}})
    for one in odd:
        text = json.dumps(one, sort_keys=True, separators=(",", ":"))
        signature = OWNER.sign(b"tacita roster 1\n" + text.encode()).hex()
        try:
            read = Roster.verify(f"{signature}\n{text}", OWNER.public)
        except tacita.TacitaError:
            continue
        # What is taken is as it should be.
        assert isinstance(read.version, int) and read.text() == text


def test_no_invitation_however_odd_ends_in_a_traceback(tmp_path: Path):
    hub = Hub.create(tmp_path / "hub", "clinics", ["oslo"], port=0)
    path = hub.invitations["oslo"]
    good = json.loads(path.read_text())
    odd = [{**good, k: junk} for k in good for junk in JUNK if junk != good[k]]
    odd.append({**good, "protocol": True})
    for key in good["secrets"]:
        odd += [{**good, "secrets": {**good["secrets"], key: junk}} for junk in JUNK]
    for one in odd:
        path.write_text(json.dumps(one))
        with pytest.raises(tacita.TacitaError):
            Invitation.load(path)
    for content in ("", "[" * 100_000, "null", "{}"):
        path.write_text(content)
        with pytest.raises(tacita.TacitaError):
            Invitation.load(path)
