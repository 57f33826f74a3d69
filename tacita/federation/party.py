"""What all parties share: opening letters, refusing and counting, keeping an outbox.

A party is a machine without clock, threads or network: it is handed letters and the
time, and leaves letters in its outbox. Whoever drives it takes them out *after* the
call returned, hence after everything they depend on was written to the disk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tacita.federation.seal import Envelope
from tacita.federation.state_file import StateFile
from tacita.federation.wire import Identity, Letter, LetterRefused, Repeated

#: Called with a letter's identity and the bytes of its numbers before it may leave;
#: writes the release into the ledger, or raises and so keeps the letter back.
ChargeLetter = Callable[[Identity, bytes], None]


#: Most letters of a remark that are kept.
_REMARK = 200
#: Seconds after which a missing letter is asked for again.
_PATIENCE = 1.0


class Withdrawn(Exception):
    """The run that this party is in does not take place."""


def no_charge(identity: Identity, content: bytes) -> None:
    """For runs without a privacy budget."""


@dataclass
class Desk:
    """What a party needs besides its mathematics.

    Attributes:
        name: The party.
        federation: The federation's name.
        run: The digest of the run description.
        envelope: How letters are closed and opened.
        state_file: Where its checkpoint is.
        charge: Writes a release into the ledger.
        greet: Answers letters outside of any run: offers, and those who come late. It
            may raise `Withdrawn`.
        remark: What the party tells of itself with a letter of this kind, for the
            status only.
    """

    name: str
    federation: str
    run: str
    envelope: Envelope
    state_file: StateFile
    charge: ChargeLetter = no_charge
    greet: Callable[[Letter], Letter | None] = lambda letter: None
    remark: Callable[[str], str] = lambda kind: ""


@dataclass
class Counts:
    """What passed over a party's desk."""

    sent: int = 0
    sent_bytes: int = 0
    received: int = 0
    received_bytes: int = 0
    repeated: int = 0
    refused: Counter[str] = field(default_factory=Counter)


class Party:
    """One party of a run. Abstract: the three kinds of parties derive from it."""

    def __init__(self, desk: Desk, most_bytes: int) -> None:
        self.desk = desk
        self.name = desk.name
        self.outbox: list[tuple[str, bytes]] = []
        self.counts = Counts()
        self.heard_at: dict[str, float] = {}
        self.remarks: dict[str, str] = {}
        self._most_bytes = most_bytes + (1 << 16)
        self._asked_at = 0.0

    @property
    def finished(self) -> bool:
        """Whether nobody needs this party any more."""
        raise NotImplementedError

    @property
    def round(self) -> int:
        """The round that it is in."""
        raise NotImplementedError

    def model(self) -> np.ndarray:
        """Its own model; the coordinator's is the shared one."""
        raise NotImplementedError

    def start(self, now: float) -> None:
        """Begin, or go on from the checkpoint."""
        raise NotImplementedError

    def receive(self, content: bytes, now: float) -> None:
        """Take one letter in; what is not acceptable is counted and forgotten."""
        try:
            letter = self.desk.envelope.open(content, self._most_bytes)
            if not letter.identity.run:
                self._greet(letter)
                return
            self._require_mine(letter.identity)
            self.heard_at[letter.identity.sender] = now
            if letter.text:
                self.remarks[letter.identity.sender] = letter.text[:_REMARK]
            self.counts.received += 1
            self.counts.received_bytes += len(content)
            self._take(letter, now)
        except Repeated:
            self.counts.repeated += 1
        except LetterRefused as refusal:
            self.counts.refused[str(refusal)] += 1

    def tick(self, now: float) -> None:
        """Look at the clock: ask again for what has not come."""
        if now - self._asked_at >= _PATIENCE:
            self._asked_at = now
            self._ask_again(now)

    def take_out(self) -> list[tuple[str, bytes]]:
        """Empty the outbox: (receiver, envelope) of every letter in it."""
        out, self.outbox = self.outbox, []
        return out

    def _greet(self, letter: Letter) -> None:
        reply = self.desk.greet(letter)
        if reply is not None:
            to = reply.identity.receiver
            self.outbox.append((to, self.desk.envelope.close(reply)))

    def _take(self, letter: Letter, now: float) -> None:
        raise NotImplementedError

    def _ask_again(self, now: float) -> None:
        raise NotImplementedError

    def _require_mine(self, identity: Identity) -> None:
        if identity.federation != self.desk.federation:
            raise LetterRefused("a letter of another federation")
        if identity.run != self.desk.run:
            raise LetterRefused("a letter of another run")
        if identity.receiver != self.name:
            raise LetterRefused("a letter to another party")

    def _send(
        self,
        kind: str,
        to: str,
        when: tuple[int, int],
        arrays: Sequence[np.ndarray] = (),
    ) -> None:
        name = self._identity(kind, to, when)
        letter = Letter(name, tuple(arrays), self.desk.remark(kind))
        content = self.desk.envelope.close(letter)
        self.counts.sent += 1
        self.counts.sent_bytes += len(content)
        self.outbox.append((to, content))

    def _identity(self, kind: str, to: str, when: tuple[int, int]) -> Identity:
        desk = self.desk
        return Identity(desk.federation, desk.run, kind, *when, self.name, to)


def bytes_of(arrays: Sequence[Any]) -> bytes:
    """The numbers of a letter, for its entry in the ledger."""
    return b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)
