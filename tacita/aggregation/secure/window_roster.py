"""Who shares masks with whom: the keys of all agents, each signed by its owner."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tacita.aggregation.secure import letters
from tacita.aggregation.secure.derive import digest
from tacita.aggregation.secure.letters import ENTRY_BYTES, KEY_BYTES, Entries
from tacita.aggregation.secure.plan import threshold
from tacita.aggregation.secure.shares import PRIME, number
from tacita.aggregation.secure.signatures import is_signed, keys_message
from tacita.aggregation.secure.terms import Terms, as_parts
from tacita.check import refuse

#: The points of Curve25519 and its twist whose multiples by 8 vanish: with them every
#: exchange would give the same. The library refuses them too, but only in an exchange.
LOW_ORDER = frozenset(
    {
        0,
        1,
        PRIME - 1,
        number(
            bytes.fromhex(
                "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"
            )
        ),
        number(
            bytes.fromhex(
                "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"
            )
        ),
    }
)


@dataclass(frozen=True)
class Roster:
    """The entries that a coordinator has put together, and what follows from them.

    Attributes:
        terms: Of the run.
        entries: As they travel.
    """

    terms: Terms
    entries: Entries

    @classmethod
    def of_bytes(cls, content: bytes, terms: Terms) -> Roster:
        """A roster out of a letter or a file; see `check_entries` for what it is."""
        return cls(terms, letters.decode("roster", content, terms))

    @cached_property
    def content(self) -> bytes:
        """As it travels."""
        return letters.encode(self.entries, self.terms)

    @cached_property
    def digest(self) -> bytes:
        """Its name: masks, shares and signatures are bound to it."""
        return digest(*as_parts("roster", self.terms.run, self.content))

    @property
    def attempt(self) -> int:
        """Which attempt at a roster it is; they only grow."""
        return self.entries.attempt

    @property
    def start(self) -> int:
        """The first exchange that it serves."""
        return self.entries.start

    @property
    def exchanges(self) -> range:
        """The exchanges that it serves, unless a later attempt ends it."""
        return range(self.start, self.start + self.terms.width(self.start))

    @property
    def members(self) -> tuple[str, ...]:
        """Its agents, by name; the holder of point k is number k - 1 of them."""
        return self.entries.members

    @cached_property
    def places(self) -> dict[str, int]:
        """Where each agent stands among the members."""
        return {name: place for place, name in enumerate(self.members)}

    @cached_property
    def needed(self) -> int:
        """Shares that open a secret, and signatures that stand behind a set."""
        return threshold(len(self.members), self.terms.colluding)

    @cached_property
    def only_whole(self) -> bool:
        """Whether its sums are of all its agents: fewer would be too few for a sum.

        There is nothing to agree on then, so answers carry their openings.
        """
        return len(self.members) == self.terms.least

    def keyed_as(self, exchange: int) -> int:
        """The exchange whose keys are behind the pair masks of an exchange.

        Every exchange has its own, for a key that was opened must not tell of others.
        Where keys are never opened those of the first serve all: masks differ by their
        context.
        """
        return self.start if self.only_whole else exchange

    def public(self, name: str, exchange: int) -> bytes:
        """An agent's public key in an exchange."""
        return self._entry(name, exchange)[:KEY_BYTES]

    def commitment(self, name: str, exchange: int) -> bytes:
        """What an agent's self mask was committed to."""
        return self._entry(name, exchange)[KEY_BYTES:]

    def _entry(self, name: str, exchange: int) -> bytes:
        body = self.entries.bodies[self.places[name]]
        at = (exchange - self.start) * ENTRY_BYTES
        return body[at : at + ENTRY_BYTES]


def check_entries(terms: Terms, entries: Entries) -> None:
    """Refuse a roster that no honest coordinator would send."""
    if len(entries.members) < terms.least:
        refuse(
            f"a roster of {len(entries.members)} agents cannot give a sum of "
            f"{terms.least}; wait for more of them"
        )
    for name in unsigned(terms, entries):
        refuse(f"the keys of {name!r} are not signed for this attempt by itself")
    check_keys(entries.bodies)


def unsigned(terms: Terms, entries: Entries) -> tuple[str, ...]:
    """Whose keys are not signed with the key that they have by now."""
    parts = zip(entries.members, entries.bodies, entries.signatures, strict=True)
    about = entries.attempt, entries.start
    return tuple(
        name
        for name, body, signature in parts
        if not is_signed(
            terms.signing[name], signature, keys_message(terms, *about, body)
        )
    )


def check_keys(bodies: tuple[bytes, ...]) -> None:
    """Refuse public keys that are of low order, written oddly, or there twice."""
    keys = [
        number(body[at : at + KEY_BYTES])
        for body in bodies
        for at in range(0, len(body), ENTRY_BYTES)
    ]
    if not LOW_ORDER.isdisjoint(keys):
        refuse("a public key of the roster is of low order: its owner deceives")
    # Another spelling of a key would be a second copy of it.
    if max(keys) >= PRIME:
        refuse("a public key of the roster is not in its canonical form")
    if len(set(keys)) != len(keys):
        refuse("a public key stands in the roster twice: somebody copied it")
