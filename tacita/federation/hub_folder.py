"""The hub's folder: who belongs to the federation, and what brokers are told of it.

hub.json           which brokers there are, which certificates open their doors
owner.keys.json    signs the roster; needed to change it, not to run the hub
roster.signed      who belongs to the federation
authority.key      issues certificates; needed to change the roster, as above
brokers/N/         all that broker N needs, and may be copied to its machine
invitations/       what was handed out, with the newest roster
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacita.check import nearest, one_of, refuse
from tacita.disk import lock, write_private
from tacita.federation import certificates
from tacita.federation.broker_config import CONFIG, Broker, certificate_name, config
from tacita.federation.certificates import Certificate
from tacita.federation.invitation import (
    Request,
    fresh_secrets,
    invitation_words,
    read_file,
)
from tacita.federation.json_words import read_table
from tacita.federation.protocol import require_protocol
from tacita.federation.roster import HUB, ROLES, Member, Roster, check_party
from tacita.federation.seal import PrivateKeys, PublicKeys, read_private
from tacita.federation.wire import LetterRefused

RECORD, ROSTER, OWNER = "hub.json", "roster.signed", "owner.keys.json"
OWN_INVITATION = "hub.invitation.json"
#: Bytes of the record, which names every certificate that was given.
_MOST_RECORD = 32 << 20


@dataclass(frozen=True, repr=False)
class Candidate:
    """Somebody who is to get a certificate.

    Attributes:
        name: The party.
        role: What it may do.
        approves: Whether no run may begin without its consent.
        keys: Public halves of its keys for letters.
        access: Public half of its key for the broker.
        secrets: The private halves, if the hub made them.
    """

    name: str
    role: str
    approves: bool
    keys: PublicKeys
    access: Any
    secrets: Mapping[str, Any] | None = None

    @classmethod
    def fresh(cls, name: str, role: str, approves: bool = False) -> Candidate:
        """A party whose keys are made here."""
        secrets = fresh_secrets()
        keys = PrivateKeys.of_words(secrets["private"]).public
        access = certificates.load_key(secrets["access"].encode()).public_key()
        return cls(name, role, approves, keys, access, secrets)


class HubFolder:
    """What the hub has on its disk.

    Args:
        folder: Where `Hub.create` has made it.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        path = self.folder / RECORD
        if not path.exists():
            refuse(
                f"no federation in {folder}; make one with: tacita hub init {folder} "
                "--name NAME"
            )
        told = self._record()
        require_protocol(told.get("protocol"), f"the hub in {folder}")
        try:
            self.federation = str(told["federation"])
            self.brokers = [Broker(**words) for words in told["brokers"]]
            self.owner = PublicKeys.of_words(told["owner"])
        except (ValueError, KeyError, TypeError, AttributeError):
            refuse(f"{path} was changed; restore it from a backup")

    @property
    def port(self) -> int:
        """The port of the first broker."""
        return self.brokers[0].port

    @property
    def roster(self) -> Roster:
        """Who belongs to the federation now."""
        return Roster.load(self.folder / ROSTER, self.owner)

    @property
    def invitations(self) -> dict[str, Path]:
        """The invitation of every party, by name."""
        found = sorted((self.folder / "invitations").glob("*.json"))
        return {path.stem: path for path in found}

    def add(self, name: str, role: str = "agent", approves: bool = False) -> Path:
        """Add a party whose keys the hub makes; its invitation.

        Args:
            name: The party.
            role: "agent", or "coordinator" for one who may propose runs.
            approves: Whether no run may begin without its consent.
        """
        self._require_new(check_party(name), role)
        return self.admit([Candidate.fresh(name, _role(role), approves)])[0]

    def sign(
        self,
        request: Request,
        role: str = "agent",
        approves: bool = False,
        renew: bool = False,
    ) -> Path:
        """Let a site in that made its own keys; its invitation holds no secret.

        Args:
            request: What the site sent; compare its fingerprint first.
            role: As in `add`.
            approves: As in `add`.
            renew: The site is a member already: these keys replace its present ones,
                which are worth nothing from now on.
        """
        asked = (request.keys, request.access)
        if renew:
            known = self._member(request.name)
            again = Candidate(request.name, known.role, known.approves, *asked)
            return self.admit([again], keep_old=False)[0]
        self._require_new(request.name, role)
        return self.admit([Candidate(request.name, _role(role), approves, *asked)])[0]

    def renew(self, name: str, revoke_old: bool = False) -> Path:
        """A new certificate for a party, whose keys stay; its invitation.

        Args:
            name: The party.
            revoke_old: Shut its former certificate out at once, not at its end.
        """
        self._member(name)
        return self._renew(name, not revoke_old)

    def _renew(self, name: str, keep_old: bool = True) -> Path:
        known = self.roster.members[name]
        path = self._invitation(name)
        told = read_file(path)
        try:
            access = certificates.public_key_of(told["certificate"].encode())
        except (ValueError, KeyError, AttributeError):
            refuse(f"{path} is damaged; restore it from a backup")
        again = Candidate(
            name, known.role, known.approves, known.keys, access, told.get("secrets")
        )
        return self.admit([again], keep_old)[0]

    def remove(self, name: str) -> None:
        """Take a party off the roster, and shut its certificates out."""
        self._member(name)
        with self._changing() as record:
            members = dict(self.roster.members)
            del members[name]
            record["allowed"][name] = []
            self._publish(record, members, {})
            self._invitation(name).unlink(missing_ok=True)

    def renew_brokers(self) -> None:
        """New certificates for the brokers, and for the hub at its next start."""
        for place, one in enumerate(self.brokers):
            folder = self.broker_folder(place)
            hosts = sorted({one.host, one.here, "localhost"})
            for authority, file in (
                ("authority", "broker"),
                ("cluster", "cluster-broker"),
            ):
                ca = self._authority(authority)
                name = f"{self.federation} broker {place + 1}"
                made = certificates.issue(ca, name, hosts)
                write_private(folder / f"{authority}.pem", ca.certificate)
                write_private(folder / f"{file}.pem", made.certificate)
                write_private(folder / f"{file}.key", made.key)
        if HUB in self.roster.members:
            self._renew(HUB)

    def admit(
        self, candidates: Sequence[Candidate], keep_old: bool = True
    ) -> list[Path]:
        """Give parties a certificate and a place in the roster; their invitations."""
        with self._changing() as record:
            members, ca = dict(self.roster.members), self._authority("authority")
            made: dict[str, dict[str, Any]] = {}
            for one in candidates:
                # Kept of removed parties too: no certificate ever becomes good again.
                serial = record["serials"].get(one.name, 0) + 1
                record["serials"][one.name] = serial
                older = record["allowed"].get(one.name, [])[-1:] if keep_old else []
                record["allowed"][one.name] = [*older, serial]
                name = certificate_name(one.name, serial)
                pem = certificates.certify(ca, name, one.access)
                ends = certificates.expires(pem)
                members[one.name] = Member(
                    one.role, one.keys, serial, one.approves, ends
                )
                made[one.name] = invitation_words(
                    one.name, ca.certificate, pem, self.owner, one.secrets
                )
            self._publish(record, members, made)
            return [self._invitation(one.name) for one in candidates]

    def _publish(
        self,
        record: dict[str, Any],
        members: Mapping[str, Member],
        made: Mapping[str, dict[str, Any]],
    ) -> None:
        """Write all that a change touches; the roster last, for it sets all going."""
        signed = self.roster.changed(members).signed(
            PrivateKeys.load(self.folder / OWNER)
        )
        known = {name: read_file(path) for name, path in self.invitations.items()}
        for name, words in {**known, **made}.items():
            told = json.dumps({**words, "roster": signed}, indent=1)
            write_private(self._invitation(name), told)
        for place in range(len(self.brokers)):
            words = config(self.federation, record["allowed"], self.brokers, place)
            write_private(self.broker_folder(place) / CONFIG, words)
        write_private(self.folder / RECORD, json.dumps(record, indent=1))
        write_private(self.folder / ROSTER, signed)

    def _record(self) -> dict[str, Any]:
        path = self.folder / RECORD
        try:
            return read_table(read_private(path), "the file", _MOST_RECORD)
        except LetterRefused:
            refuse(f"{path} was changed; restore it from a backup")

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Any]]:
        """The record, while nobody else changes it."""
        file = os.open(self.folder, os.O_RDONLY)
        try:
            lock(file)
            yield self._record()
        finally:
            os.close(file)

    def _authority(self, name: str) -> Certificate:
        path = self.folder / f"{name}.key"
        key = read_private(path)
        try:
            certificates.load_key(key)
        except (ValueError, TypeError):
            refuse(f"{path} is damaged; restore it from a backup")
        return Certificate(certificates.read(self.folder / f"{name}.pem"), key)

    def broker_folder(self, place: int) -> Path:
        """All that one broker needs, and nothing else."""
        return self.folder / "brokers" / str(place + 1)

    def _invitation(self, name: str) -> Path:
        if name == HUB:
            return self.folder / OWN_INVITATION
        return self.folder / "invitations" / f"{name}.json"

    def _member(self, name: str) -> Member:
        roster = self.roster
        if name not in roster.names:
            refuse(f"{name!r} is no member of this federation; {_hint(name, roster)}")
        return roster.members[name]

    def _require_new(self, name: str, role: str) -> None:
        known = self.roster.coordinators
        if role == "coordinator" and known:
            refuse(f"{known[0]!r} coordinates this federation; remove it first")
        if name in self.roster.names:
            refuse(
                f"{name!r} is a member already; renew its certificate with tacita hub "
                "renew, or its keys with tacita hub sign --renew"
            )


def _role(role: str) -> str:
    return one_of([r for r in ROLES if r != HUB], role=role)


def _hint(name: str, roster: Roster) -> str:
    return nearest(name, roster.names) if roster.names else "it has none yet"
