"""An agent of a secure sum: what it answers to whom, and what it never answers twice.

| agent is | event | what it does |
| --- | --- | --- |
| ready, idle | question | ledger row, the masked letter on disk, `answer` |
| answered | question again, whatever it says | the letter on disk |
| ready | alive with a set | ledger row of the set, `agreed` |
| ready | open with a set | ledger row, the opening on disk, other shares deleted |
| opened | open again / with another set | the opening on disk / refused |
| signed or opened, not answered | question | refused: its key may be public now |

Exchanges only move on: what concerns one before the last that it answered, signed or
opened is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from tacita.aggregation.secure import letters, masks
from tacita.aggregation.secure.agent_records import AgentRecords
from tacita.aggregation.secure.dealing import Dealer, by_exchange, opened
from tacita.aggregation.secure.letters import (
    Agreed,
    Alive,
    Call,
    Entries,
    Keys,
    Letter,
    Open,
    Opening,
    Ready,
    Shares,
    Want,
)
from tacita.aggregation.secure.roster import Roster, check_entries
from tacita.aggregation.secure.signatures import (
    is_signed,
    keys_message,
    set_digest,
    set_message,
)
from tacita.aggregation.secure.steps import Drop, Keep, Row, Send, Step
from tacita.aggregation.secure.terms import Terms
from tacita.check import refuse

_FROM_COORDINATOR = (Call, Entries, Alive, Open)
_FROM_AGENTS = (Shares, Want)


class Wanted(NamedTuple):
    """A question that wants an answer: make the letter, with noise of this context."""

    exchange: int
    context: bytes


class SecureAgent:
    """One agent's machine; see `steps` for how it is driven.

    Args:
        terms: Of the run.
        name: Its own.
        secret: 32 bytes, fresh for this run, deleted after it.
        sign: Signs with the Ed25519 key that the terms name.
        rows: Its ledger rows of this run.
        kept: Its files of this run.
    """

    def __init__(
        self,
        terms: Terms,
        name: str,
        secret: bytes,
        sign: Callable[[bytes], bytes],
        rows: Iterable[Row] = (),
        kept: Mapping[str, bytes] | None = None,
    ) -> None:
        if name not in terms.signing:
            refuse(f"{name!r} is no agent of this run")
        self.terms, self.name = terms, name
        self._dealer, self._sign = Dealer(terms, name, secret), sign
        self._records = AgentRecords(terms, rows, kept)
        #: Shares that came, until all are there; whoever sent them can send them again.
        self._heard: dict[bytes, dict[str, bytes]] = {}
        self._commons: dict[tuple[bytes, int], dict[str, bytes]] = {}

    def release(self, step: Step) -> tuple[Send, ...]:
        """The letters of a step whose writes are on the disk."""
        self._records.apply(step.writes)
        return step.sends

    def heard(self, sender: str, kind: str, content: bytes) -> Step:
        """What to do about a letter of the protocol; refused if it breaks the rules."""
        letter = letters.decode(kind, content, self.terms)
        if isinstance(letter, _FROM_COORDINATOR):
            allowed = sender == self.terms.coordinator
        else:
            allowed = isinstance(letter, _FROM_AGENTS) and sender in self.terms.signing
        if not allowed:
            refuse(f"{sender!r} may not send a {kind} letter to an agent")
        if isinstance(letter, Call):
            return self._called(letter)
        if isinstance(letter, Entries):
            return self._offered(letter)
        if isinstance(letter, Shares):
            return self._dealt(sender, letter)
        if isinstance(letter, Want):
            return self._wanted(sender, letter)
        if isinstance(letter, Alive):
            return self._agree(letter)
        return self._open(letter)

    def asked(self, exchange: int, question: bytes) -> Wanted | Step:
        """What to do about a question: make a letter, or send the one on disk again.

        Args:
            exchange: Of the run.
            question: SHA-256 of all that was asked.
        """
        if self._records.last_answered() == exchange:
            return self._answer_again(exchange)
        roster = self._records.in_force(exchange)
        place = self.terms.round_and_phase(exchange)
        context = masks.context_of(self.terms.run, roster.digest, *place, question)
        self._may_answer(exchange, context)
        return Wanted(exchange, context)

    def answer(self, wanted: Wanted, letter: np.ndarray) -> Step:
        """Mask a letter and send it.

        Args:
            wanted: What `asked` returned.
            letter: The letter on the grid with its noise, as unsigned words.
        """
        exchange, context = wanted
        if self._records.last_answered() == exchange:
            return self._answer_again(exchange)
        roster = self._records.in_force(exchange)
        row = self._may_answer(exchange, context)
        kind = self.terms.word_type
        if letter.dtype != kind or letter.shape != (self.terms.entries,):
            refuse(
                f"expected a letter of {self.terms.entries} words of {self.terms.word} "
                f"bits, got {letter.dtype} of shape {letter.shape}"
            )
        commons = self.prepare(exchange)
        y = self._dealer.masked(letter, roster, exchange, commons, context)
        kept = Keep("answer", exchange.to_bytes(8, "little") + y.tobytes())
        writes = (*row, kept, *self._records.outdated(exchange))
        return Step(writes, (Send(self.terms.coordinator, "answer", exchange, y),))

    def prepare(self, exchange: int) -> dict[str, bytes]:
        """Exchange keys for an answer ahead of the question; it takes most of the time.

        Returns:
            What the agent shares with each of the others.
        """
        roster = self._records.in_force(exchange)
        key = roster.digest, exchange
        if key not in self._commons:
            self._commons = {key: self._dealer.commons(roster, exchange)}
        return self._commons[key]

    def awaited(self) -> tuple[str, ...]:
        """Agents whose shares are not here yet, of the last roster."""
        roster = self._records.newest()
        if roster is None or self._records.is_ready(roster):
            return ()
        here = self._heard.get(roster.digest, {})
        return tuple(n for n in roster.members if n != self.name and n not in here)

    # Set-up of a window.

    def _called(self, call: Call) -> Step:
        self._may_begin(call.attempt, call.start)
        if call.attempt in self._records.numbers("roster"):
            refuse(f"the roster of attempt {call.attempt} is accepted already")
        body = self._dealer.body(call.attempt, call.start)
        signature = self._sign(keys_message(self.terms, *call, body))
        keys = Keys(call.attempt, call.start, body, signature)
        return self._reply(keys, call.attempt)

    def _offered(self, entries: Entries) -> Step:
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
        newest = max(self._records.numbers("roster"), default=-1)
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
            self._send(name, Shares(roster.digest, roster.start, dealt), roster.attempt)
            for name, dealt in hand.items()
        )

    def _set_up_again(self, roster: Roster) -> Step:
        """The roster comes again: somebody misses a letter."""
        if self._records.is_ready(roster):
            return self._reply(Ready(roster.digest), roster.attempt)
        dealt, want = self._deal(roster), Want(roster.digest)
        wants = (self._send(name, want, roster.attempt) for name in self.awaited())
        return Step((), (*dealt, *wants))

    def _dealt(self, sender: str, shares: Shares) -> Step:
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
        reply = self._reply(Ready(roster.digest), roster.attempt)
        return Step(tuple(writes), reply.sends)

    def _wanted(self, sender: str, want: Want) -> Step:
        roster = self._records.of_digest(want.roster)
        if sender not in roster.members or sender == self.name:
            refuse(f"{sender!r} is no holder of this roster")
        dealt = self._dealer.deal(roster)[sender]
        shares = Shares(want.roster, roster.start, dealt)
        return Step((), (self._send(sender, shares, roster.attempt),))

    # An exchange.

    def _may_answer(self, exchange: int, context: bytes) -> list[Row]:
        if ("set", exchange) in self._records.rows:
            refuse(
                f"a set of exchange {exchange} was signed or opened here, so this "
                "agent's key may be public: it stays silent in this exchange"
            )
        return self._records.note(Row("answer", exchange, context))

    def _answer_again(self, exchange: int) -> Step:
        stored = self._records.kept["answer"][8:]
        y = np.frombuffer(stored, self.terms.word_type)
        return Step((), (Send(self.terms.coordinator, "answer", exchange, y),))

    def _agree(self, alive: Alive) -> Step:
        _, row = self._check_set(alive)
        message = set_message(self.terms, alive.roster, alive.exchange, alive.chosen)
        agreed = Agreed(alive.exchange, alive.roster, self._sign(message))
        return Step(tuple(row), self._reply(agreed, alive.exchange).sends)

    def _open(self, letter: Open) -> Step:
        roster, row = self._check_set(letter)
        self._check_signatures(roster, letter)
        exchange, kept = letter.exchange, self._records.kept
        if kept.get("opening", b"")[:8] == exchange.to_bytes(8, "little"):
            again = letters.decode("opening", kept["opening"], self.terms)
            return self._reply(again, exchange)
        if (name := f"shares-{roster.attempt}-{exchange}") not in kept:
            refuse(f"the shares of exchange {exchange} are gone")
        shares = opened(roster, kept[name], letter.chosen)
        opening = Opening(exchange, roster.digest, roster.members, shares)
        writes = (
            *row,
            Keep("opening", letters.encode(opening, self.terms)),
            Drop(name),
            *self._records.outdated(exchange),
        )
        return Step(writes, self._reply(opening, exchange).sends)

    def _check_set(self, letter: Alive | Open) -> tuple[Roster, list[Row]]:
        """Refuse a set that must not be opened; its row, if it is news."""
        exchange, chosen = letter.exchange, letter.chosen
        roster = self._records.in_force(exchange)
        if letter.roster != roster.digest:
            refuse(f"exchange {exchange} has another roster here")
        if not set(chosen) <= set(roster.members):
            refuse("the set names agents that are not in the roster")
        if len(chosen) < self.terms.least:
            refuse(
                f"a sum of {len(chosen)} letters is opened to nobody; the run's "
                f"description says {self.terms.least} at least"
            )
        if self.name in chosen and self._records.last_answered() != exchange:
            refuse(f"the set names {self.name!r}, which has not answered")
        name = set_digest(self.terms, roster.digest, exchange, chosen)
        return roster, self._records.note(Row("set", exchange, name))

    def _check_signatures(self, roster: Roster, letter: Open) -> None:
        """Everybody's sum needs no signatures: no other set can have enough then."""
        if letter.chosen == roster.members:
            return
        message = set_message(self.terms, roster.digest, letter.exchange, letter.chosen)
        signed = zip(letter.signers, letter.signatures, strict=True)
        valid = [
            name
            for name, signature in signed
            if name in roster.members
            and is_signed(self.terms.signing[name], signature, message)
        ]
        if len(valid) < roster.needed:
            refuse(
                f"the set is signed by {len(valid)} agents of the roster, "
                f"{roster.needed} are needed"
            )

    def _reply(self, letter: Letter, number: int) -> Step:
        return Step((), (self._send(self.terms.coordinator, letter, number),))

    def _send(self, to: str, letter: Letter, number: int) -> Send:
        content = letters.encode(letter, self.terms)
        return Send(to, letters.kind_of(letter), number, content)
