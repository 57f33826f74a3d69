"""What an agent of a secure sum has written down, and what follows from it.

Its ledger rows say once for all which roster an attempt has, and what was answered and
which set was agreed to in an exchange. Its files, by name:

    roster-K       the roster of attempt K
    shares-K-R     what all agents dealt for exchange R; deleted once R is over
    ready-K        that all shares of attempt K were here
    answer         the last exchange that was answered, its context, the masked letter,
                   and the shares that went with it
    opening        the last exchange that was opened, and the shares given
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tacita.aggregation.secure.steps import Drop, Memory, Row, Write
from tacita.aggregation.secure.terms import Terms
from tacita.aggregation.secure.window_roster import Roster
from tacita.check import refuse


class AgentRecords(Memory):
    """The memory of one agent.

    Args:
        terms: Of the run.
        rows: Its ledger rows of this run; the last ones are enough.
        kept: Its files of this run.
    """

    def __init__(
        self,
        terms: Terms,
        rows: Iterable[Row] = (),
        kept: Mapping[str, bytes] | None = None,
    ) -> None:
        self._terms = terms
        self.rosters: dict[int, Roster] = {}
        super().__init__(rows, kept)

    def apply(self, writes: Sequence[Write]) -> None:
        """Remember what is on the disk now."""
        super().apply(writes)
        self._read_rosters()
        # Nothing is said any more of exchanges before the latest; the ledger has them.
        for kind, number in [*self.rows]:
            if kind != "roster" and number < self.latest():
                del self.rows[kind, number]

    def latest(self) -> int:
        """The last exchange that was answered, signed or opened; -1 if none was."""
        return max(self.largest("answer"), self.largest("set"))

    def last_answered(self) -> int:
        """The exchange whose masked letter is on the disk; -1 if there is none."""
        stored = self.kept.get("answer")
        return -1 if stored is None else int.from_bytes(stored[:8], "little")

    def newest(self) -> Roster | None:
        """The roster accepted last; None if none was, or the disk has lost it."""
        return self.rosters.get(self.largest("roster"))

    def in_force(self, exchange: int) -> Roster:
        """The roster of an exchange: that of the last attempt that began before it."""
        if exchange < self.latest():
            refuse(f"exchange {exchange} is over; the last one is {self.latest()}")
        begun = [a for a, r in self.rosters.items() if r.start <= exchange]
        # A newer roster that is only in the ledger may have ended all older ones.
        if self.newest() is None or not begun:
            refuse(f"no roster is here for exchange {exchange}; begin a new attempt")
        roster = self.rosters[max(begun)]
        if exchange not in roster.exchanges:
            refuse(f"no roster serves exchange {exchange}; begin a new attempt")
        if not self.is_ready(roster):
            refuse(f"attempt {roster.attempt} is not ready: shares are missing")
        return roster

    def of_digest(self, digest: bytes) -> Roster:
        """The roster of this name; refused unless it was accepted here."""
        for roster in self.rosters.values():
            if roster.digest == digest:
                return roster
        refuse("the letter belongs to a roster that is not this agent's")

    def is_ready(self, roster: Roster) -> bool:
        """Whether all shares of a roster were here."""
        return f"ready-{roster.attempt}" in self.kept

    def outdated(self, exchange: int) -> list[Write]:
        """Deletes shares of earlier exchanges, and what belongs to older attempts."""
        attempt = self.in_force(exchange).attempt
        found: list[Write] = []
        for name in self.kept:
            what, *numbers = name.split("-")
            old = bool(numbers) and int(numbers[0]) < attempt
            if old or (what == "shares" and int(numbers[1]) < exchange):
                found.append(Drop(name))
        return found

    def _read_rosters(self) -> None:
        names = [name for name in self.kept if name.startswith("roster-")]
        known = {int(name.removeprefix("roster-")): name for name in names}
        for attempt in set(self.rosters) - set(known):
            del self.rosters[attempt]
        for attempt in set(known) - set(self.rosters):
            content = self.kept[known[attempt]]
            self.rosters[attempt] = Roster.of_bytes(content, self._terms)
