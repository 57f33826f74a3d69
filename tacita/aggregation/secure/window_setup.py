"""How a coordinator brings a roster about: keys, roster, ready; or a new attempt."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tacita.aggregation.secure import letters
from tacita.aggregation.secure.letters import (
    Call,
    Entries,
    Keys,
    Lacking,
    Letter,
    Ready,
    send_all,
)
from tacita.aggregation.secure.signatures import is_signed, keys_message
from tacita.aggregation.secure.steps import Drop, Keep, Memory, Step
from tacita.aggregation.secure.terms import Terms
from tacita.aggregation.secure.window_roster import (
    Roster,
    check_entries,
    check_keys,
    unsigned,
)
from tacita.check import refuse


@dataclass(frozen=True)
class Attempt:
    """An attempt at a roster.

    Attributes:
        number: They only grow, over the whole run.
        start: The first exchange that it is to serve.
        invited: Whose keys are waited for.
        liars: Agents that dealt false shares; they are not invited any more.
    """

    number: int
    start: int
    invited: tuple[str, ...]
    liars: tuple[str, ...] = ()

    def as_bytes(self, terms: Terms) -> bytes:
        """For a file."""
        numbers = (v.to_bytes(8, "little") for v in (self.number, self.start))
        return b"".join([*numbers, terms.pack(self.invited), terms.pack(self.liars)])

    @classmethod
    def of_bytes(cls, content: bytes, terms: Terms) -> Attempt:
        """Out of a file."""
        cut = 16 + terms.set_bytes
        number, start = (int.from_bytes(content[k : k + 8], "little") for k in (0, 8))
        return cls(
            number, start, terms.unpack(content[16:cut]), terms.unpack(content[cut:])
        )


class WindowSetup:
    """The part of the coordinator's machine that ends with a roster that is ready.

    Args:
        terms: Of the run.
        memory: What the coordinator has written down.
    """

    def __init__(self, terms: Terms, memory: Memory) -> None:
        self.terms, self._memory = terms, memory
        self.attempt: Attempt | None = None
        self.roster: Roster | None = None
        self._keys: dict[str, Keys] = {}
        self._ready: set[str] = set()
        self._lacking: dict[str, tuple[str, ...]] = {}
        # With which keys the roster was seen to be signed; looking takes its time.
        self._signed_by: tuple[bytes, ...] = ()
        self.refresh()

    def refresh(self) -> None:
        """Read what is on the disk now."""
        kept, before = self._memory.kept, self.attempt
        if "attempt" in kept:
            self.attempt = Attempt.of_bytes(kept["attempt"], self.terms)
        if (before and before.number) != (self.attempt and self.attempt.number):
            self._keys, self._ready, self._lacking = {}, set(), {}
            self.roster, self._signed_by = None, ()
        if self.attempt is not None and self.roster is None and "roster" in kept:
            roster = Roster.of_bytes(kept["roster"], self.terms)
            self.roster = roster if roster.attempt == self.attempt.number else None

    @property
    def is_ready(self) -> bool:
        """Whether everybody in the roster has everybody's shares."""
        roster = self.roster
        return roster is not None and self._memory.kept.get("ready") == roster.digest

    @property
    def awaited(self) -> tuple[str, ...]:
        """Who has to send something before it can go on."""
        if self.attempt is None or self.is_ready:
            return ()
        if self.roster is None:
            return tuple(n for n in self.attempt.invited if n not in self._keys)
        return tuple(n for n in self.roster.members if n not in self._ready)

    def begin(self, start: int, invited: Iterable[str] | None = None) -> Step:
        """A new attempt, which serves exchange `start` and those after it."""
        old, terms = self.attempt, self.terms
        liars = old.liars if old else ()
        asked = set(terms.names if invited is None else invited)
        chosen = tuple(n for n in terms.names if n in asked and n not in liars)
        if len(chosen) < terms.least:
            refuse(
                f"{len(chosen)} agents are left for a sum of {terms.least}; the run "
                "cannot go on without more of them"
            )
        attempt = Attempt(old.number + 1 if old else 0, start, chosen, liars)
        writes = Keep("attempt", attempt.as_bytes(terms)), Drop("fixed")
        call = Call(attempt.number, start)
        return Step(writes, send_all(chosen, call, attempt.number, terms))

    def without(self, liars: tuple[str, ...]) -> tuple[Keep, ...]:
        """Write down who dealt false shares."""
        if self.attempt is None or not liars:
            return ()
        old = self.attempt
        new = Attempt(old.number, old.start, old.invited, (*old.liars, *liars))
        return (Keep("attempt", new.as_bytes(self.terms)),)

    def keys(self, sender: str, keys: Keys) -> Step:
        """Take in an agent's keys; with the last of them the roster goes out."""
        attempt = self.attempt
        if attempt is None or (attempt.number, attempt.start) != keys[:2]:
            refuse(f"{sender!r} sends keys for another attempt")
        if self.roster is not None or sender in self._keys:
            return Step()
        if sender not in attempt.invited:
            refuse(f"{sender!r} was not asked for keys")
        message = keys_message(self.terms, keys.attempt, keys.start, keys.body)
        if not is_signed(self.terms.signing[sender], keys.signature, message):
            refuse(f"the keys of {sender!r} are not signed by itself")
        check_keys((*(k.body for k in self._keys.values()), keys.body))
        self._keys[sender] = keys
        if not self.awaited:
            self._forget_unsigned()
        return self._send_roster(attempt) if not self.awaited else Step()

    def ready(self, sender: str, ready: Ready) -> Step:
        """Take in that an agent is ready."""
        roster = self._of_this(sender, ready)
        self._ready.add(sender)
        if self.awaited or self.is_ready:
            return Step()
        return Step((Keep("ready", roster.digest),))

    def lacking(self, sender: str, lacking: Lacking) -> Step:
        """Take in whose shares an agent is without."""
        self._of_this(sender, lacking)
        self._lacking[sender] = lacking.missing
        return Step()

    def _of_this(self, sender: str, letter: Ready | Lacking) -> Roster:
        roster = self.roster
        if roster is None or letter.roster != roster.digest:
            refuse(f"{sender!r} speaks of another roster")
        if sender not in roster.members:
            refuse(f"{sender!r} is not in the roster")
        return roster

    def time_up(self) -> Step:
        """Go on without those who keep the others waiting, if enough are left.

        Whose shares are lacking is known once the roster was sent `again`.
        """
        attempt, terms = self.attempt, self.terms
        if attempt is None or self.is_ready:
            return Step()
        if (anew := self._anew()) is not None:
            return anew
        if self.roster is None:
            self._forget_unsigned()
            enough = len(self._keys) >= terms.least
            return self._send_roster(attempt) if enough else Step()
        left = [n for n in self.roster.members if n not in self._at_fault(self.roster)]
        return self.begin(attempt.start, left) if len(left) >= terms.least else Step()

    def _at_fault(self, roster: Roster) -> set[str]:
        """Who keeps the others from being ready: whoever more than c agents name.

        Where there is nobody, either side may lie: whoever is not ready is left out.
        """
        told, few = self._lacking.values(), self.terms.colluding
        named = {n for n in roster.members if sum(n in t for t in told) > few}
        return named or set(self.awaited)

    def again(self) -> Step:
        """Ask once more for what is awaited."""
        if self.attempt is None or not self.awaited:
            return Step()
        if (anew := self._anew()) is not None:
            return anew
        if self.roster is None:
            letter: Letter = Call(self.attempt.number, self.attempt.start)
        else:
            letter = self.roster.entries
        sends = send_all(self.awaited, letter, self.attempt.number, self.terms)
        return Step((), sends)

    def _anew(self) -> Step | None:
        """A new attempt, if somebody in the roster signed with a key that is no more.

        Agents refuse such a roster: sites change keys, and leave, while a run goes on.
        """
        attempt, roster = self.attempt, self.roster
        if attempt is None or roster is None:
            return None
        signing = tuple(self.terms.signing[name] for name in roster.members)
        if signing == self._signed_by:
            return None
        if unsigned(self.terms, roster.entries):
            return self.begin(attempt.start, roster.members)
        self._signed_by = signing
        return None

    def _forget_unsigned(self) -> None:
        """Ask anew for what was signed with a key that is no more."""
        for name in unsigned(self.terms, self._heard()):
            del self._keys[name]

    def _heard(self) -> Entries:
        """A roster of those whose keys are here."""
        assert self.attempt is not None
        chosen = tuple(n for n in self.attempt.invited if n in self._keys)
        return Entries(
            self.attempt.number,
            self.attempt.start,
            chosen,
            tuple(self._keys[name].body for name in chosen),
            tuple(self._keys[name].signature for name in chosen),
        )

    def _send_roster(self, attempt: Attempt) -> Step:
        entries = self._heard()
        check_entries(self.terms, entries)
        content = letters.encode(entries, self.terms)
        sends = send_all(entries.members, entries, attempt.number, self.terms)
        return Step((Keep("roster", content),), sends)
