"""The letters of the protocol, as bytes of a size that is known before they are read.

Every letter is a record of fields in a fixed order. How many bytes a field has follows
from the run's terms and the fields before it, so there is one decoder for all of them,
and it refuses what is a byte too short or too long.

Numbers are 8 bytes, little-endian; sets of agents are bits in the order of their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tacita.aggregation.secure.shares import SHARE_BYTES
from tacita.aggregation.secure.steps import Send
from tacita.aggregation.secure.terms import Terms
from tacita.check import refuse

DIGEST_BYTES, SIGNATURE_BYTES, KEY_BYTES = 32, 64, 32
#: What an agent publishes of one exchange: a public key and a commitment.
ENTRY_BYTES = KEY_BYTES + DIGEST_BYTES
#: What an agent deals to another of one exchange: a share of either secret.
DEALT_BYTES = 2 * SHARE_BYTES


class Call(NamedTuple):
    """Coordinator to agents: send keys for a new attempt."""

    attempt: int
    start: int


class Keys(NamedTuple):
    """Agent to coordinator: its public keys and commitments, signed."""

    attempt: int
    start: int
    body: bytes
    signature: bytes


class Entries(NamedTuple):
    """Coordinator to agents: everybody's keys, as they were signed."""

    attempt: int
    start: int
    members: tuple[str, ...]
    bodies: tuple[bytes, ...]
    signatures: tuple[bytes, ...]


class Shares(NamedTuple):
    """Agent to agent, for its eyes only: shares of the sender's secrets."""

    roster: bytes
    start: int
    dealt: bytes


class Want(NamedTuple):
    """Agent to agent: send your shares (again)."""

    roster: bytes


class Ready(NamedTuple):
    """Agent to coordinator: everybody's shares are on its disk."""

    roster: bytes


class Lacking(NamedTuple):
    """Agent to coordinator: it is not ready, as shares of these are not there."""

    roster: bytes
    missing: tuple[str, ...]


class Alive(NamedTuple):
    """Coordinator to agents: these letters are in the sum; sign it."""

    exchange: int
    roster: bytes
    chosen: tuple[str, ...]


class Agreed(NamedTuple):
    """Agent to coordinator: its signature under the set."""

    exchange: int
    roster: bytes
    signature: bytes


class Open(NamedTuple):
    """Coordinator to agents: open the sum over this set, which these have signed."""

    exchange: int
    roster: bytes
    chosen: tuple[str, ...]
    signers: tuple[str, ...]
    signatures: tuple[bytes, ...]


class Opening(NamedTuple):
    """Agent to coordinator: its share of one secret of every agent of the roster."""

    exchange: int
    roster: bytes
    members: tuple[str, ...]
    opened: tuple[bytes, ...]


Letter = (
    Call
    | Keys
    | Entries
    | Shares
    | Want
    | Ready
    | Lacking
    | Alive
    | Agreed
    | Open
    | Opening
)
#: Every letter by the name of its kind.
KINDS: Mapping[str, type[Any]] = {
    "call": Call,
    "keys": Keys,
    "roster": Entries,
    "shares": Shares,
    "want": Want,
    "ready": Ready,
    "lacking": Lacking,
    "alive": Alive,
    "agreed": Agreed,
    "open": Open,
    "opening": Opening,
}
_NAMES = {made: kind for kind, made in KINDS.items()}
_NUMBERS = ("attempt", "start", "exchange")
_SETS = ("members", "missing", "chosen", "signers")
#: Fields that hold one piece for every agent of the set before them.
_LISTS = ("bodies", "signatures", "opened")


def kind_of(letter: Letter) -> str:
    """The name of a letter's kind."""
    return _NAMES[type(letter)]


def encode(letter: Letter, terms: Terms) -> bytes:
    """The bytes of a letter."""
    parts = []
    for field in letter._fields:
        value: Any = getattr(letter, field)
        if field in _NUMBERS:
            parts.append(value.to_bytes(8, "little"))
        elif field in _SETS:
            parts.append(terms.pack(value))
        elif field in _LISTS:
            parts += value
        else:
            parts.append(value)
    return b"".join(parts)


def decode(kind: str, content: bytes, terms: Terms) -> Any:
    """A letter out of its bytes; refused unless every field has its exact size."""
    if kind not in KINDS:
        refuse(f"a secure sum knows no letter of kind {kind!r}")
    found: dict[str, Any] = {}
    at = 0

    def take(size: int) -> bytes:
        nonlocal at
        at += size
        return bytes(content[at - size : at])

    for field in KINDS[kind]._fields:
        if field in _NUMBERS:
            value = int.from_bytes(take(8), "little")
            if field != "attempt" and value >= terms.exchanges:
                refuse(f"a {kind} letter names exchange {value} of {terms.exchanges}")
            found[field] = value
        elif field in _SETS:
            found[field] = terms.unpack(take(terms.set_bytes))
        elif field in _LISTS:
            members = found["signers"] if "signers" in found else found["members"]
            size = _size(field, found, terms)
            found[field] = tuple(take(size) for _ in members)
        else:
            found[field] = take(_size(field, found, terms))
    if at != len(content):
        refuse(f"expected a {kind} letter of {at} bytes, got {len(content)} bytes")
    return KINDS[kind](**found)


def _size(field: str, before: Mapping[str, Any], terms: Terms) -> int:
    if field in ("body", "bodies"):
        return terms.width(before["start"]) * ENTRY_BYTES
    if field == "dealt":
        return terms.width(before["start"]) * DEALT_BYTES
    return {
        "roster": DIGEST_BYTES,
        "signature": SIGNATURE_BYTES,
        "signatures": SIGNATURE_BYTES,
        "opened": SHARE_BYTES,
    }[field]


def send_all(
    names: Iterable[str], letter: Letter, number: int, terms: Terms
) -> tuple[Send, ...]:
    """The same letter to several.

    Args:
        names: To whom.
        letter: Which.
        number: The exchange that it belongs to, or the attempt.
        terms: Of the run.
    """
    kind, content = kind_of(letter), encode(letter, terms)
    return tuple(Send(name, kind, number, content) for name in names)
