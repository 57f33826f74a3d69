"""What a party has on its desk: its keys, its folder, its ledger, and a count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tacita.check import printable
from tacita.federation.account import Account
from tacita.federation.receipts import Pen
from tacita.federation.seal import Envelope
from tacita.federation.state_file import StateFile
from tacita.federation.wire import Identity, Letter

#: Called with a letter's identity and the bytes of its numbers before it may leave;
#: writes the release into the ledger, or raises and so keeps the letter back. Without
#: the bytes it is a letter that left, of which no more is known.
ChargeLetter = Callable[[Identity, bytes | None], None]
#: Most characters of a remark, and of a reason of refusal, that are kept.
REMARK = 200
#: Different reasons of refusal that are told apart: others may choose their words.
_REASONS = 30
#: Bytes of a letter without numbers: names, and a line of text.
MOST_NOTE = 1 << 14


def no_charge(identity: Identity, content: bytes | None) -> None:
    """For runs without a privacy budget."""


@dataclass(frozen=True)
class Signer:
    """Signs with the party's own key what others can check with the public ones.

    Attributes:
        sign: Makes a signature (Ed25519).
        key_of: Somebody's public key as it is now; None for who was removed.
    """

    sign: Callable[[bytes], bytes]
    key_of: Callable[[str], bytes | None]


@dataclass
class Desk:
    """What a party needs besides its mathematics.

    Attributes:
        name: The party.
        federation: The federation's name.
        run: The digest of the run description.
        envelope: How letters are closed and opened.
        state_file: Where its checkpoint is.
        pen: Stamps its letters.
        charge: Writes a release into the ledger.
        greet: Answers letters outside of any run: offers, and those who come late. It
            may raise `Withdrawn`.
        remark: What the party tells of itself with a letter of this kind to somebody,
            for the status only.
        ended: Told of every round that is over here, and who took part in it as far as
            this party knows; of one that a crash undid, twice.
        most_greeting: Bytes of a letter outside of any run, at most.
        signer: Signs what agents show to each other; secure sums need it.
    """

    name: str
    federation: str
    run: str
    envelope: Envelope
    state_file: StateFile
    pen: Pen
    charge: ChargeLetter = no_charge
    greet: Callable[[Letter], Letter | None] = lambda letter: None
    remark: Callable[[str, str], str] = lambda kind, to: ""
    ended: Callable[[int, Sequence[str]], None] = lambda number, who: None
    most_greeting: int = MOST_NOTE
    signer: Signer | None = None

    @property
    def account(self) -> Account | None:
        """The ledger, of a run with a budget."""
        return getattr(self.charge, "account", None)


@dataclass
class Counts:
    """What passed over a party's desk."""

    sent: int = 0
    sent_bytes: int = 0
    received: int = 0
    received_bytes: int = 0
    repeated: int = 0
    resent: int = 0
    refused: Counter[str] = field(default_factory=Counter)

    def refuse(self, reason: str) -> None:
        """Count a letter that was refused; the table of reasons stays small."""
        told = printable(reason, REMARK)
        if told not in self.refused and len(self.refused) >= _REASONS:
            told = "other reasons"
        self.refused[told] += 1
