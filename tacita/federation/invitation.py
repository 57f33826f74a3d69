"""What a party needs to take part, and the request with which a site asks for it.

A site makes its keys itself (`make_request`), keeps them, and sends a request; the
hub's owner signs it, and what comes back holds no secret. For trials the hub makes the
keys too, and puts them into the invitation.
"""

from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tacita import check
from tacita.check import refuse
from tacita.disk import write_private
from tacita.federation import certificates
from tacita.federation.certificates import Certificate
from tacita.federation.json_words import read_table
from tacita.federation.protocol import PROTOCOL, require_protocol
from tacita.federation.roster import Roster, check_party
from tacita.federation.seal import (
    PrivateKeys,
    PublicKeys,
    read_private,
    require_signature,
)
from tacita.federation.wire import LetterRefused

_DOMAIN = b"tacita request 1\n"
#: Bytes of a request or an invitation, at most.
_MOST_BYTES = 1 << 22


@dataclass(frozen=True, repr=False)
class Invitation:
    """All that a party needs to take part.

    Attributes:
        name: The party's name.
        authority: Certificate of the authority, PEM.
        access: The party's own certificate and key for the broker.
        keys: Its own keys, with which letters are signed and read.
        owner: Public keys of the federation's owner, who signs rosters.
        roster: Who belongs to the federation, and where its brokers are.
    """

    name: str
    authority: bytes
    access: Certificate
    keys: PrivateKeys
    owner: PublicKeys
    roster: Roster

    @property
    def federation(self) -> str:
        """Its name."""
        return self.roster.federation

    @property
    def server(self) -> str:
        """Addresses of the brokers, for people."""
        return ", ".join(self.roster.brokers)

    @property
    def usual_folder(self) -> Path:
        """Where the party keeps its files unless it is told otherwise."""
        return Path(f"tacita-{self.federation}-{self.name}")

    @property
    def others(self) -> Mapping[str, PublicKeys]:
        """Public keys of everybody in the federation."""
        return self.roster.keys

    @property
    def agents(self) -> list[str]:
        """Everybody who takes part in runs, in order."""
        return self.roster.agents

    @property
    def coordinator(self) -> str:
        """Who proposes runs (of graph runs: the starter)."""
        found = self.roster.coordinators
        if not found:
            refuse(
                f"nobody may propose runs in version {self.roster.version} of the "
                "roster; let the hub's owner sign a coordinator's request"
            )
        return self.name if self.name in found else found[0]

    @classmethod
    def load(cls, path: str | Path, identity: str | Path | None = None) -> Invitation:
        """Read an invitation; `identity` is the file with the party's own keys."""
        path = Path(path)
        try:
            told = read_file(path)
            require_protocol(told["protocol"], f"the invitation {path}")
            owner = PublicKeys.of_words(told["owner"])
            roster = Roster.verify(told["roster"], owner)
            name, made = str(told["name"]), told["certificate"].encode()
            authority, secrets = told["authority"].encode(), told.get("secrets")
        except (LetterRefused, KeyError, TypeError, AttributeError):
            refuse(f"{path} is no invitation; ask whoever runs the hub for a new one")
        if secrets is not None:
            read_private(path)  # refused if others may read it
        if identity is not None:
            secrets = _read_secrets(identity)
        if secrets is None:
            refuse(f"{path} holds no keys of yours; name your key file with --keys")
        try:
            keys, key = _own(secrets)
            fits = certificates.fits(made, key)
            certificates.expires(authority)
        except (ValueError, KeyError, TypeError, AttributeError):
            refuse(
                f"the keys in {identity or path} or the certificates in {path} are "
                "damaged; restore the file, or ask the hub's owner for a new one"
            )
        if name not in roster.members or keys.public != roster.keys[name] or not fits:
            refuse(f"these are not the keys that {name!r} was invited with")
        return cls(name, authority, Certificate(made, key), keys, owner, roster)

    def with_roster(self, roster: Roster) -> Invitation:
        """The same party, with what it knows now of the others."""
        return replace(self, roster=roster)


def invitation_words(
    name: str,
    authority: bytes,
    certificate: bytes,
    owner: PublicKeys,
    secrets: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """An invitation's file, but for the roster; `secrets` are those the hub made."""
    told: dict[str, Any] = {
        "protocol": PROTOCOL,
        "name": name,
        "authority": authority.decode(),
        "certificate": certificate.decode(),
        "owner": owner.as_words(),
    }
    return told if secrets is None else {**told, "secrets": dict(secrets)}


def fresh_secrets(former: PrivateKeys | None = None) -> dict[str, Any]:
    """Keys for letters and for the broker; former ones still open what they locked."""
    made = {
        "private": PrivateKeys.fresh().as_private_words(),
        "access": certificates.key_pem(certificates.new_key()).decode(),
    }
    if former is None:
        return made
    older = [keys.as_private_words() for keys in (former, *former.former)]
    return {**made, "former": older}


def _own(secrets: Mapping[str, Any]) -> tuple[PrivateKeys, bytes]:
    keys = PrivateKeys.of_words(secrets["private"], secrets.get("former", ()))
    return keys, secrets["access"].encode()


@dataclass(frozen=True)
class Request:
    """What a site sends to the hub: public halves only.

    Attributes:
        name: The site.
        keys: Public halves of its keys for letters.
        access: Public half of its key for the broker.
    """

    name: str
    keys: PublicKeys
    access: Any

    @property
    def fingerprint(self) -> str:
        """What to compare over the telephone before signing."""
        return fingerprint(self.keys)

    @classmethod
    def load(cls, path: str | Path) -> Request:
        """Read a request; refused unless the holder of its keys made it."""
        path = Path(path)
        told = read_file(path)
        try:
            require_protocol(told["protocol"], f"the request {path}")
            name, keys = str(told["name"]), PublicKeys.of_words(told["public"])
            asked, signature = told["signing_request"], _bytes(told["signature"])
            content = _request_bytes(name, keys, asked)
            require_signature(keys, signature, content, f"the request {path}")
        except (KeyError, TypeError, AttributeError):
            refuse(f"{path} is no request; make one with: tacita site request NAME")
        check_party(name)
        return cls(name, keys, certificates.requested_key(asked.encode(), name))


def make_request(
    folder: str | Path, name: str, rotate: str | Path | None = None
) -> tuple[Path, Path]:
    """Make a site's keys: the file that it keeps, and the request for the hub.

    Args:
        folder: Where to write them.
        name: The site.
        rotate: The key file in use now, whose keys are to be replaced.
    """
    folder = Path(folder)
    check_party(name)
    former = None if rotate is None else PrivateKeys.load(rotate)
    private = folder / f"{name}.keys.json"
    if private.exists():
        refuse(
            f"{private} exists and may be in use; for new keys name another --folder, "
            f"and the ones in use: --rotate {private}"
        )
    check.folder(folder=folder)
    secrets = fresh_secrets(former)
    keys, access = _own(secrets)
    asked = certificates.signing_request(name, certificates.load_key(access)).decode()
    signature = keys.sign(_request_bytes(name, keys.public, asked)).hex()
    told = {
        "protocol": PROTOCOL,
        "name": name,
        "public": keys.public.as_words(),
        "signing_request": asked,
        "signature": signature,
    }
    write_private(private, json.dumps(secrets, indent=1))
    request = folder / f"{name}.request.json"
    request.write_text(json.dumps(told, indent=1))
    return private, request


def _bytes(words: str) -> bytes:
    """Bytes out of hexadecimal digits; none, which sign nothing, if they are others."""
    try:
        return bytes.fromhex(words)
    except ValueError:
        return b""


def _request_bytes(name: str, keys: PublicKeys, asked: str) -> bytes:
    words = [name, keys.as_words(), asked]
    return _DOMAIN + json.dumps(words, sort_keys=True).encode()


def fingerprint(keys: PublicKeys) -> str:
    """Public keys in a form that can be read out over the telephone."""
    digest = hashlib.sha256(keys.sign + keys.write_to).hexdigest()[:32]
    return "-".join(digest[i : i + 4] for i in range(0, len(digest), 4))


def read_file(path: Path) -> dict[str, Any]:
    """An object out of a file of somebody else's; refused if it is none."""
    try:
        if path.stat().st_size > _MOST_BYTES or not stat.S_ISREG(path.stat().st_mode):
            refuse(f"{path} is no file of this federation; check the path")
        return read_table(path.read_bytes(), "the file", _MOST_BYTES)
    except OSError as error:
        refuse(f"cannot read {path}: {error.strerror}; check the path")
    except LetterRefused:
        refuse(f"{path} is damaged or no file of this federation; ask for it again")


def _read_secrets(path: str | Path) -> dict[str, Any]:
    try:
        return read_table(read_private(path), "the file")
    except LetterRefused:
        refuse(f"{path} holds no keys; make new ones or restore the file")
