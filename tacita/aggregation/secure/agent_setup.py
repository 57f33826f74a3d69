"""How an agent comes to be ready for a window: keys, a roster, everybody's shares.

It publishes keys when it is called, accepts one roster an attempt, deals shares under
it, and is ready once it holds the shares of every entry, dealt under the same roster.
Without that rule two rosters of one attempt could be played off against each other.
"""

from __future__ import annotations

from collections.abc import Callable

from tacita.aggregation.secure.agent_records import AgentRecords
from tacita.aggregation.secure.dealing import Dealer, by_exchange
from tacita.aggregation.secure.letters import (
    Call,
    Entries,
    Keys,
    Lacking,
    Letter,
    Ready,
    Shares,
    Want,
    send_all,
)
from tacita.aggregation.secure.signatures import keys_message
from tacita.aggregation.secure.steps import Keep, Row, Send, Step
from tacita.aggregation.secure.window_roster import Roster, check_entries
from tacita.check import refuse


class AgentSetup:
    """The part of an agent's machine that ends with being ready.

    Args:
        dealer: The agent's secrets.
        sign: Signs with the agent's key.
        records: What the agent has written down.
    """

    def __init__(
        self, dealer: Dealer, sign: Callable[[bytes], bytes], records: AgentRecords
    ) -> None:
        self.terms, self.name = dealer.terms, dealer.name
        self._dealer, self._sign, self._records = dealer, sign, records
        #: Shares that came, until all are there; whoever sent them can send them again.
        self._heard: dict[bytes, dict[str, bytes]] = {}

    def awaited(self) -> tuple[str, ...]:
        """Agents whose shares are not here yet, of the last roster."""
        roster = self._records.newest()
        if roster is None or self._records.is_ready(roster):
            return ()
        here = self._heard.get(roster.digest, {})
        return tuple(n for n in roster.members if n != self.name and n not in here)

    def forget(self) -> None:
        """Shares that are on the disk, or of rosters that are over."""
        waiting = (r for r in self._records.rosters.values())
        digests = {r.digest for r in waiting if not self._records.is_ready(r)}
        self._heard = {d: here for d, here in self._heard.items() if d in digests}

    def called(self, call: Call) -> Step:
        """Publish keys for an attempt."""
        self._may_begin(call.attempt, call.start)
        if ("roster", call.attempt) in self._records.rows:
            refuse(f"the roster of attempt {call.attempt} is accepted already")
        body = self._dealer.body(call.attempt, call.start)
        signature = self._sign(keys_message(self.terms, *call, body))
        keys = Keys(call.attempt, call.start, body, signature)
        return Step((), self._reply(keys, call.attempt))

    def offered(self, entries: Entries) -> Step:
        """Accept a roster and deal under it."""
        roster = Roster(self.terms, entries)
        row = self._records.note(Row("roster", roster.attempt, roster.digest))
        if roster.attempt in self._records.rosters:
            return self._set_up_again(roster)
        self._may_begin(roster.attempt, roster.start)
        check_entries(self.terms, entries)
        if self.name not in roster.members:
            refuse(f"{self.name!r} is not in the roster that was sent to it")
        own = entries.bodies[roster.places[self.name]]
        if own != self._dealer.body(roster.attempt, roster.start):
            refuse("the roster has keys of this agent that are not those of its secret")
        kept = Keep(f"roster-{roster.attempt}", roster.content)
        return Step((*row, kept), self._deal(roster))

    def _may_begin(self, attempt: int, start: int) -> None:
        """Attempts only grow, and begin after all that was said under older ones."""
        newest = self._records.largest("roster")
        if attempt < newest:
            refuse(f"attempt {attempt} is older than attempt {newest}, accepted here")
        if start <= (last := self._records.latest()):
            refuse(
                f"attempt {attempt} begins with exchange {start}, but exchange {last} "
                "was answered, signed or opened here; begin later"
            )

    def _deal(self, roster: Roster) -> tuple[Send, ...]:
        """Shares to everybody else; the agent is a holder of its own, too."""
        hand = self._dealer.deal(roster)
        self._heard.setdefault(roster.digest, {})[self.name] = hand.pop(self.name)
        return tuple(
            send
            for name, dealt in hand.items()
            for send in self._shares(name, roster, dealt)
        )

    def _shares(self, to: str, roster: Roster, dealt: bytes) -> tuple[Send, ...]:
        letter = Shares(roster.digest, roster.start, dealt)
        return send_all((to,), letter, roster.attempt, self.terms)

    def _set_up_again(self, roster: Roster) -> Step:
        """The roster comes again: somebody misses a letter."""
        if self._records.is_ready(roster):
            return Step((), self._reply(Ready(roster.digest), roster.attempt))
        dealt, missing = self._deal(roster), self.awaited()
        wants = send_all(missing, Want(roster.digest), roster.attempt, self.terms)
        told = self._reply(Lacking(roster.digest, missing), roster.attempt)
        return Step((), (*dealt, *wants, *told))

    def dealt(self, sender: str, shares: Shares) -> Step:
        """Shares count only if they were dealt under this agent's own roster."""
        roster = self._records.of_digest(shares.roster)
        if sender not in roster.members or shares.start != roster.start:
            refuse(f"{sender!r} has nothing to deal under this roster")
        if self._records.is_ready(roster):
            return Step()
        here = self._heard.setdefault(roster.digest, {})
        if self.name not in here:
            self._deal(roster)
        here.setdefault(sender, shares.dealt)
        if len(here) < len(roster.members):
            return Step()
        writes = [
            Keep(f"shares-{roster.attempt}-{exchange}", held)
            for exchange, held in by_exchange(roster, here).items()
        ]
        writes.append(Keep(f"ready-{roster.attempt}", roster.digest))
        return Step(tuple(writes), self._reply(Ready(roster.digest), roster.attempt))

    def wanted(self, sender: str, want: Want) -> Step:
        """Deal to one holder again."""
        roster = self._records.of_digest(want.roster)
        if sender not in roster.members:
            refuse(f"{sender!r} is no holder of this roster")
        dealt = self._dealer.deal(roster)[sender]
        return Step((), self._shares(sender, roster, dealt))

    def _reply(self, letter: Letter, attempt: int) -> tuple[Send, ...]:
        return send_all((self.terms.coordinator,), letter, attempt, self.terms)
