"""What keeps a party or a hub from working, and what to do about it, a line each."""

from __future__ import annotations

import shutil
import stat
import time
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from tacita.check import TacitaError
from tacita.federation import broker, certificates
from tacita.federation.broker_config import CONFIG, certificate_name
from tacita.federation.desk import MOST_NOTE
from tacita.federation.hub import Hub
from tacita.federation.hub_folder import OWNER, RECORD
from tacita.federation.hub_numbers import HubNumbers
from tacita.federation.invitation import Invitation
from tacita.federation.membership import Membership
from tacita.federation.post import Post
from tacita.federation.protocol import PROTOCOL
from tacita.federation.roster import HUB, Roster
from tacita.federation.seal import Sealed
from tacita.federation.wire import MOST_TEXT, Letter, LetterRefused, note

#: Free bytes below which a disk counts as full.
_ROOM = 1 << 30
#: Seconds by which a clock may differ from the hub's.
_CLOCK = 60.0
_PATIENCE = 5.0
#: Seconds after which the hub is asked again.
_AGAIN = 0.5
_MOST_BYTES = MOST_TEXT["roster"] + MOST_NOTE


_now = time.time


class Finding(NamedTuple):
    """One thing that was looked at.

    Attributes:
        what: What.
        good: Whether it is as it should be.
        words: How it is; if it is not good, also what to do.
    """

    what: str
    good: bool
    words: str


def examine(
    path: str | Path, keys: str | Path | None = None, folder: str | Path | None = None
) -> Iterator[Finding]:
    """Look at a hub, or at a party and its way to the hub.

    Args:
        path: The hub's folder, or a party's invitation.
        keys: The party's key file, if it made its own.
        folder: The party's folder; where `tacita join` puts it, if left out.
    """
    path = Path(path)
    yield _versions()
    if path.is_dir() or path.name == RECORD:
        yield from _hub(Hub(path if path.is_dir() else path.parent))
    else:
        yield from _party(Invitation.load(path, keys), folder)


def _versions() -> Finding:
    found, missing = [], []
    for package in ("tacita", "jax", "numpy", "cryptography", "nats-py"):
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            missing.append(package)
    if missing:
        what = ", ".join(missing)
        return Finding("versions", False, f"{what} missing; pip install tacita[deploy]")
    return Finding("versions", True, f"protocol {PROTOCOL}; {', '.join(found)}")


def _hub(hub: Hub) -> Iterator[Finding]:
    yield _tried("nats-server", _server_program)
    yield from _places(hub.folder, "hub's folder")
    secrets = [hub.folder / OWNER, *hub.folder.glob("**/*.key")]
    yield from (_private(path) for path in secrets if path.exists())
    authority = certificates.read(hub.folder / "authority.pem")
    for number, one in enumerate(hub.brokers, start=1):
        where = hub.broker_folder(number - 1)
        made = certificates.read(where / "broker.pem")
        remedy = "tacita hub renew FOLDER --brokers"
        good = certificates.is_issued_by(authority, made)
        yield _judge(
            f"chain of broker {number}", good, "issued by the authority", remedy
        )
        good = one.host in certificates.hosts(made)
        yield _judge(f"name of broker {number}", good, f"is for {one.host}", remedy)
        up = broker.listens(one.port, one.here)
        words = f"{one.here}:{one.port} answers"
        yield _judge(
            f"port of broker {number}", up, words, f"tacita hub start {hub.folder}"
        )
        good = (where / CONFIG).exists()
        yield _judge(
            f"configuration of broker {number}", good, str(where / CONFIG), "restore it"
        )
    for name, ends in HubNumbers(hub).ends().items():
        remedy = f"tacita hub renew {hub.folder} {name}"
        if name == HUB or name.startswith("broker "):
            remedy = f"tacita hub renew {hub.folder} --brokers"
        elif name == "the authority":
            remedy = "make a new federation before that"
        yield _end(f"certificate of {name}", ends, remedy)


def _server_program() -> str:
    program = broker.find()
    found = broker.version_of(program)
    broker.require_fixed(found)
    return f"{'.'.join(str(n) for n in found)} ({program})"


def _party(me: Invitation, folder: str | Path | None) -> Iterator[Finding]:
    home = Path(folder or me.usual_folder)
    yield from _places(home, "party's folder")
    made, remedy = me.access.certificate, "ask the hub's owner for a new invitation"
    good = certificates.is_issued_by(me.authority, made)
    yield _judge("certificate's chain", good, "issued by the hub's authority", remedy)
    serial = me.roster.members[me.name].serial
    good = certificates.common_name(made) == certificate_name(me.name, serial)
    yield _judge("certificate's name", good, f"{me.name}, number {serial}", remedy)
    yield _end("certificate's end", certificates.expires(made), remedy)
    yield _end("authority's end", certificates.expires(me.authority), remedy)
    yield _tried("roster", lambda: _kept_roster(me, home))
    for server in me.roster.brokers:
        host, _, port = server.rpartition(":")
        good = broker.listens(int(port), host.strip("[]"), _PATIENCE)
        remedy = "start the hub, or open the port in the firewall"
        yield _judge(f"broker {server}", good, "answers", remedy)
    yield from _hub_answers(me)


def _kept_roster(me: Invitation, home: Path) -> str:
    now = Membership(me, home).me.roster
    return f"version {now.version}: {', '.join(now.names)}"


def _hub_answers(me: Invitation) -> Iterator[Finding]:
    """Whether the hub lets us in, tells its roster, and has our time."""
    from tacita.federation.nats_post import NatsPost  # a library of its own

    envelope = Sealed(me.name, me.keys, me.others)
    try:
        with NatsPost(me, _PATIENCE) as post:
            yield Finding("connection", True, "the broker lets this party in")
            asked = _now()
            letter = _ask_hub(me, envelope, post)
            between = (asked + _now()) / 2
    except TacitaError as error:
        yield Finding("connection", False, str(error))
        return
    if letter is None:
        words = "does not answer; it is started with: tacita hub start FOLDER"
        yield Finding("hub", False, words)
        return
    told = _tried(
        "hub", lambda: f"tells version {Roster.verify(letter.text, me.owner).version}"
    )
    yield told
    off = between - float(letter.arrays[0])
    words = f"{abs(off):.1f} s {'before' if off > 0 else 'behind'} the hub's"
    yield _judge("clock", abs(off) <= _CLOCK, words, "switch time synchronisation on")


def _ask_hub(me: Invitation, envelope: Sealed, post: Post) -> Letter | None:
    hello = note("ask", me.federation, me.name, HUB)
    post.expect(_MOST_BYTES)
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        post.deliver(HUB, envelope.close(hello))
        for content in post.collect(_AGAIN):
            try:
                letter = envelope.open(content, _MOST_BYTES)
            except LetterRefused:
                continue  # somebody else's, to the party's own program
            if letter.identity.kind == "roster" and len(letter.arrays) == 1:
                return letter
    return None


def _places(folder: Path, what: str) -> Iterator[Finding]:
    there = next(p for p in (folder, *folder.absolute().parents) if p.exists())
    free = shutil.disk_usage(there).free
    room = f"{free / (1 << 30):.1f} GB free"
    yield _judge("disk", free >= _ROOM, room, f"make room at {there}")
    if folder.exists():
        closed = not stat.S_IMODE(folder.stat().st_mode) & 0o077
        words = f"{folder} is closed to others" if closed else f"others see {folder}"
        yield _judge(what, closed, words, f"chmod 700 {folder}")


def _private(path: Path) -> Finding:
    closed = not stat.S_IMODE(path.stat().st_mode) & 0o077
    words = "is closed to others" if closed else "can be read by others"
    return _judge(f"secret {path.name}", closed, words, f"chmod 600 {path}")


def _end(what: str, ends: int, remedy: str) -> Finding:
    left = certificates.days_left(ends)
    words = f"ends in {left} days" if left >= 0 else "has ended"
    return _judge(what, left >= certificates.WARN_DAYS, words, remedy)


def _judge(what: str, good: bool, words: str, remedy: str) -> Finding:
    return Finding(what, good, words if good else f"{words}: no; {remedy}")


def _tried(what: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(what, True, look())
    except TacitaError as error:
        return Finding(what, False, str(error))
