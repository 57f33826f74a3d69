"""The roster: who belongs to a federation, as its owner signs it.

Every party has it, checks runs and letters against it, and takes a newer one when the
hub sends it. Versions only grow, so what was removed does not come back:

    signature (hex), line break, canonical JSON

The signature is checked before anything else is read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tacita.check import count, flag, given, nearest, one_of, refuse
from tacita.federation.json_words import read_table
from tacita.federation.protocol import PROTOCOL, require_protocol
from tacita.federation.seal import PrivateKeys, PublicKeys, require_signature
from tacita.federation.wire import MOST_TEXT, LetterRefused

_DOMAIN = b"tacita roster 1\n"
_SIGNATURE = 128
#: "coordinator" may propose runs, "agent" takes part in them, "hub" tells the roster.
ROLES = ("coordinator", "agent", "hub")
#: The party that tells the roster; nobody else may have its name.
HUB = "hub"
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_ADDRESS = re.compile(r"[\w.:\[\]-]{1,300}:\d{1,5}", re.ASCII)


def check_name(name: Any) -> str:
    """Refuse a name that a party or a federation cannot have."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        refuse(f"expected a name of a-z, 0-9 and '-', got {str(name)[:60]!r}")
    return name


def check_party(name: Any) -> str:
    """Refuse a name that no party may have but the hub itself."""
    if check_name(name) == HUB:
        refuse(f"no party may be called {HUB!r}; choose another name")
    return name


@dataclass(frozen=True)
class Member:
    """One party, as everybody knows it.

    Attributes:
        role: One of `ROLES`.
        keys: With these its letters are signed, and letters to it closed.
        serial: Of its certificate; grows with every renewal.
        approves: Whether no run may begin without its consent.
        expires: When its certificate ends, in seconds since 1970.
    """

    role: str
    keys: PublicKeys
    serial: int = 1
    approves: bool = False
    expires: int = 0

    def __post_init__(self) -> None:
        one_of(ROLES, role=self.role)
        count(serial=given(serial=self.serial))
        count(0, expires=given(expires=self.expires))
        flag(approves=self.approves)

    def as_words(self) -> dict[str, Any]:
        """For a file."""
        return {**vars(self), "keys": self.keys.as_words()}

    @classmethod
    def of_words(cls, words: Mapping[str, Any]) -> Member:
        """Out of a file."""
        return cls(**{**words, "keys": PublicKeys.of_words(words["keys"])})


@dataclass(frozen=True)
class Roster:
    """Who belongs to a federation.

    Attributes:
        federation: Its name.
        version: Grows with every change.
        members: Everybody by name.
        brokers: Addresses of all brokers, host:port.
        protocol: What the federation speaks.
    """

    federation: str
    version: int
    members: Mapping[str, Member]
    brokers: tuple[str, ...]
    protocol: int = PROTOCOL

    def __post_init__(self) -> None:
        for name in (self.federation, *self.members):
            check_name(name)
        count(0, version=given(version=self.version))
        for broker in self.brokers:
            if not isinstance(broker, str) or not _ADDRESS.fullmatch(broker):
                refuse(f"expected a broker's address host:port, got {broker!r:.60}")

    @property
    def names(self) -> list[str]:
        """Coordinators and agents, in order."""
        return sorted(n for n, m in self.members.items() if m.role != "hub")

    @property
    def agents(self) -> list[str]:
        """Who takes part in runs, in order."""
        return sorted(n for n, m in self.members.items() if m.role == "agent")

    @property
    def coordinators(self) -> list[str]:
        """Who may propose runs, in order."""
        return sorted(n for n, m in self.members.items() if m.role == "coordinator")

    @property
    def approvers(self) -> list[str]:
        """Agents without whose consent no run begins."""
        return [name for name in self.agents if self.members[name].approves]

    @property
    def keys(self) -> dict[str, PublicKeys]:
        """Public keys of everybody."""
        return {name: member.keys for name, member in self.members.items()}

    def require(self, starter: str, agents: Iterable[str]) -> None:
        """Refuse a run that others propose, or with agents whom nobody knows.

        Args:
            starter: Who proposes the run.
            agents: Who is to take part.
        """
        agents = list(agents)
        here = f"in version {self.version} of the roster"
        if starter not in self.coordinators:
            refuse(f"{starter!r} may not propose runs {here}; ask the hub's owner")
        for agent in agents:
            if agent not in self.agents:
                hint = nearest(agent, self.agents)
                refuse(f"{agent!r} is no agent {here}; {hint}")
        for agent in self.approvers:
            if agent not in agents:
                refuse(f"no run may do without the consent of {agent!r}; add it")

    def text(self) -> str:
        """The canonical text: the same roster gives the same bytes everywhere."""
        words = {
            **vars(self),
            "members": {n: m.as_words() for n, m in self.members.items()},
        }
        return json.dumps(words, sort_keys=True, separators=(",", ":"))

    def signed(self, owner: PrivateKeys) -> str:
        """The roster with its owner's signature."""
        text = self.text()
        if len(text) > MOST_TEXT["roster"] - _SIGNATURE - 1:
            refuse(f"{len(self.members)} members are more than one roster can hold")
        return owner.sign(_DOMAIN + text.encode()).hex() + "\n" + text

    @classmethod
    def verify(cls, content: str, owner: PublicKeys) -> Roster:
        """Read a roster; refused unless the owner signed every byte of it."""
        try:
            signature, text = bytes.fromhex(content[:_SIGNATURE]), content[_SIGNATURE:]
        except ValueError:
            raise LetterRefused("no roster: it begins with no signature") from None
        body = text.removeprefix("\n")
        require_signature(owner, signature, _DOMAIN + body.encode(), "the roster")
        try:
            words = read_table(body, "the roster", MOST_TEXT["roster"])
            require_protocol(words.get("protocol"), "the federation's roster")
            members = {n: Member.of_words(m) for n, m in words["members"].items()}
            brokers = tuple(words["brokers"])
            made = cls(**{**words, "members": members, "brokers": brokers})
            if made.text() != body:
                refuse("it is not in its canonical form")
            return made
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise LetterRefused(f"the roster cannot be read: {error}") from None

    @classmethod
    def load(cls, path: str | Path, owner: PublicKeys) -> Roster:
        """Read a roster from its file."""
        try:
            content = Path(path).read_text()
        except OSError as error:
            refuse(f"cannot read {path}: {error.strerror}; check the path")
        except UnicodeDecodeError:
            refuse(f"{path} is no roster; take it from the hub's folder again")
        return cls.verify(content, owner)

    def require_successor(self, new: Roster) -> None:
        """Refuse an older roster, and another one of the same version."""
        if new.federation != self.federation:
            raise LetterRefused("a roster of another federation")
        if new.version < self.version:
            raise LetterRefused(
                f"version {new.version} of the roster is older than {self.version}, "
                "which is known here"
            )
        if new.version == self.version and new.text() != self.text():
            raise LetterRefused(
                f"two rosters are both called version {self.version}; ask the hub's "
                "owner which is right"
            )

    def changed(self, members: Mapping[str, Member]) -> Roster:
        """The next version, with these members."""
        return replace(self, version=self.version + 1, members=dict(members))
