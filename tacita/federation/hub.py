"""A federation is made once: an authority, a broker, and an invitation for each party.

The broker is told which subjects each certificate may use: a party publishes only as
itself and reads only what is addressed to it.

    tacita.FEDERATION.RECEIVER.SENDER
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tacita.check import refuse
from tacita.disk import write_private
from tacita.federation import broker, certificates
from tacita.federation.certificates import Certificate
from tacita.federation.reading import read_table
from tacita.federation.seal import (
    PrivateKeys,
    PublicKeys,
    private_folder,
    read_private,
)
from tacita.federation.wire import LetterRefused

#: Bytes of one message; larger letters are cut into several.
MOST_PAYLOAD = 8 << 20
#: Bytes of an invitation, which names everybody.
_MOST_INVITATION = 32 << 20
#: Bytes that the broker holds for a slow reader before it cuts it off.
MOST_PENDING = 1 << 30
CONFIG = "broker.conf"
_NAME = re.compile(r"^[a-z0-9][a-z0-9-]{0,39}$")
_HOST = re.compile(r"^[\w.:-]+$")


@dataclass(frozen=True, repr=False)
class Invitation:
    """All that a party needs to take part.

    Attributes:
        federation: Its name.
        name: The party's name.
        server: Address of the broker, host:port.
        authority: Certificate of the authority, PEM.
        access: The party's own certificate and key for the broker.
        keys: Its own keys, if the hub made them; None where the party made its own.
        others: Public keys of everybody in the federation.
        coordinator: Name of the coordinator (of graph runs: the starter).
    """

    federation: str
    name: str
    server: str
    authority: bytes
    access: Certificate
    keys: PrivateKeys | None
    others: Mapping[str, PublicKeys]
    coordinator: str

    @property
    def agents(self) -> list[str]:
        """Everybody but the coordinator, in order."""
        return sorted(set(self.others) - {self.coordinator})

    @classmethod
    def load(cls, path: str | Path, identity: str | Path | None = None) -> Invitation:
        """Read an invitation; `identity` is the file with the party's own keys."""
        content = read_private(path)
        try:
            told = read_table(content, "the invitation", _MOST_INVITATION)
            own = told.pop("keys", None)
            access = (told.pop(k).encode() for k in ("certificate", "key"))
            others = {k: PublicKeys.of_words(v) for k, v in told.pop("others").items()}
            made = cls(
                authority=told.pop("authority").encode(),
                access=Certificate(*access),
                keys=PrivateKeys.of_words(own) if own else None,
                others=others,
                **told,
            )
            for name in (made.federation, made.coordinator, made.name, *others):
                check_name(name)
            if not _HOST.match(made.server):
                raise LetterRefused("no server")
        except (ValueError, KeyError, TypeError, AttributeError):
            refuse(f"{path} is no invitation; ask whoever runs the hub for a new one")
        if identity is not None:
            made = replace(made, keys=PrivateKeys.load(identity))
        if made.keys is None:
            refuse(f"{path} holds no keys of yours; name your key file with --keys")
        if made.keys.public != others.get(made.name):
            refuse(f"these are not the keys that {made.name!r} was invited with")
        return made


def check_name(name: str) -> str:
    """Refuse a name that a party or a federation cannot have."""
    if not _NAME.match(name):
        refuse(f"expected a name of a-z, 0-9 and '-', got {name!r}")
    return name


def make_keys(folder: str | Path, name: str) -> tuple[Path, Path]:
    """Make a party's own keys: the file that it keeps, and the one for the hub."""
    folder = Path(folder)
    private = folder / f"{check_name(name)}.keys.json"
    private_folder(folder)
    if private.exists():
        refuse(f"{private} exists; it may be in use")
    made = PrivateKeys.fresh()
    made.save(private)
    public = folder / f"{name}.public.json"
    public.write_text(json.dumps(made.public.as_words()))
    return private, public


class Hub:
    """A federation's folder: its authority, its broker, and everybody's invitation.

    Used as a context, it runs the broker.

    Args:
        folder: Where `Hub.create` has made it.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        try:
            words = (self.folder / CONFIG).read_text()
        except OSError:
            words = ""
        found = re.search(r"^port: (\d+)$", words, re.MULTILINE)
        if found is None:
            refuse(
                f"no federation in {folder}; make one with: tacita hub init {folder}"
            )
        self.port = int(found[1])
        self.broker: subprocess.Popen | None = None

    @property
    def invitations(self) -> dict[str, Path]:
        """The invitation of every party, by name."""
        found = sorted((self.folder / "invitations").glob("*.json"))
        return {path.stem: path for path in found}

    def start(self) -> subprocess.Popen:
        """Start the broker, and wait until it listens."""
        self.broker = broker.start(self.folder / CONFIG, self.port)
        return self.broker

    def stop(self) -> None:
        """Stop the broker; it keeps nothing, so it may be started again."""
        if self.broker is not None:
            broker.stop(self.broker)

    def __enter__(self) -> Hub:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    @classmethod
    def create(
        cls,
        folder: str | Path,
        name: str,
        agents: Sequence[str],
        *,
        coordinator: str = "coordinator",
        host: str = "127.0.0.1",
        port: int = 4222,
        own_keys: Mapping[str, PublicKeys] | None = None,
    ) -> Hub:
        """Make a federation: the broker's configuration and all invitations.

        Args:
            folder: A new folder; it holds the authority's key and must stay private.
            name: The federation's name.
            agents: Names of the agents.
            coordinator: Name of the coordinator.
            host: Name or address under which parties reach the broker.
            port: Its port; 0 for one that is free now.
            own_keys: Public keys of parties that made their keys themselves; the hub
                then never sees their private ones. For others it makes keys, and could
                read their letters.
        """
        folder, names, own = Path(folder), [*agents, coordinator], dict(own_keys or {})
        _check(folder, name, names, host, port, own)
        port = port or broker.free_port()
        ca = _make_broker(folder, name, names, host, port)
        made = {who: PrivateKeys.fresh() for who in names if who not in own}
        public = own | {who: keys.public for who, keys in made.items()}
        shared = {
            "federation": name,
            "server": f"{host}:{port}",
            "authority": ca.certificate.decode(),
            "coordinator": coordinator,
            "others": {who: public[who].as_words() for who in names},
        }
        for who in names:
            access = certificates.issue(ca, who)
            told = shared | {
                "name": who,
                "certificate": access.certificate.decode(),
                "key": access.key.decode(),
            }
            if who in made:
                told["keys"] = made[who].as_private_words()
            path = folder / "invitations" / f"{who}.json"
            write_private(path, json.dumps(told, indent=1))
        return cls(folder)


def _check(
    folder: Path,
    federation: str,
    names: Sequence[str],
    host: str,
    port: int,
    own_keys: Mapping[str, PublicKeys],
) -> None:
    for name in (federation, *names):
        check_name(name)
    if len(names) < 2:
        refuse("a federation needs agents; name them with --agents oslo,turku")
    if len(set(names)) != len(names):
        refuse(f"every party needs a name of its own, got {', '.join(names)}")
    if not 0 <= port < 1 << 16:
        refuse(f"expected a port from 1 to 65535, got {port}")
    if not _HOST.match(host):
        refuse(f"expected a host's name or address, got host={host!r}")
    if (folder / CONFIG).exists():
        refuse(f"{folder} holds a federation already; choose another folder")
    for name in own_keys:
        if name not in names:
            refuse(f"keys of {name!r} were given, who is no party")


def _make_broker(
    folder: Path, federation: str, names: Sequence[str], host: str, port: int
) -> Certificate:
    """Write all that the broker needs; the authority that issues certificates."""
    private_folder(folder)
    ca = certificates.authority(federation)
    hosts = sorted({host, "127.0.0.1", "localhost"})
    server = certificates.issue(ca, f"{federation} broker", hosts)
    files = {
        "authority.pem": ca.certificate,
        "authority.key": ca.key,
        "broker.pem": server.certificate,
        "broker.key": server.key,
        CONFIG: _config(federation, names, port).encode(),
    }
    for file, content in files.items():
        write_private(folder / file, content)
    return ca


def _config(federation: str, names: Sequence[str], port: int) -> str:
    """The broker's configuration; paths are meant from its own folder."""
    users = "\n".join(
        f'    {{ user: "CN={name}", permissions: {{\n'
        f'        publish: {{ allow: ["tacita.{federation}.*.{name}"] }}\n'
        f'        subscribe: {{ allow: ["tacita.{federation}.{name}.*"] }} }} }}'
        for name in names
    )
    return f"""port: {port}
max_payload: {MOST_PAYLOAD}
max_pending: {MOST_PENDING}
write_deadline: "30s"
tls {{
  cert_file: "broker.pem"
  key_file: "broker.key"
  ca_file: "authority.pem"
  verify_and_map: true
  min_version: "1.3"
  timeout: 10
}}
authorization {{
  users: [
{users}
  ]
}}
"""
