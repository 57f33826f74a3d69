"""An agent of a secure sum: what it answers to whom, and what it never answers twice.

| agent is | event | what it does |
| --- | --- | --- |
| ready, idle | question | ledger row, the masked letter on disk, `answer` |
| the same, in a roster of `least` | question | and its shares of all self masks |
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
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from tacita.aggregation.secure import letters, masks
from tacita.aggregation.secure.agent_records import AgentRecords
from tacita.aggregation.secure.agent_setup import AgentSetup
from tacita.aggregation.secure.dealing import Dealer, opened
from tacita.aggregation.secure.letters import (
    DIGEST_BYTES,
    Agreed,
    Alive,
    Call,
    Entries,
    Open,
    Opening,
    Shares,
    Want,
)
from tacita.aggregation.secure.shares import SHARE_BYTES
from tacita.aggregation.secure.signatures import (
    is_signed,
    set_digest,
    set_message,
)
from tacita.aggregation.secure.steps import Answer, Drop, Keep, Machine, Row, Send, Step
from tacita.aggregation.secure.terms import Terms
from tacita.aggregation.secure.window_roster import Roster
from tacita.check import TacitaError, refuse

_FROM_COORDINATOR = (Call, Entries, Alive, Open)
_FROM_AGENTS = (Shares, Want)


class Wanted(NamedTuple):
    """A question that wants an answer: make the letter, with noise of this context."""

    exchange: int
    context: bytes
    roster: bytes


class SecureAgent(Machine):
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
        super().__init__(self._records)
        self._setup = AgentSetup(self._dealer, sign, self._records)
        self._commons: dict[tuple[bytes, int], dict[str, bytes]] = {}

    def _refresh(self) -> None:
        self._setup.forget()

    @property
    def written(self) -> tuple[dict[str, bytes], list[Row]]:
        """Its files and ledger rows, for a caller that keeps them together."""
        rows = self._records.rows.items()
        return self._records.kept, [Row(*name, digest) for name, digest in rows]

    def stored_answer(self) -> Answer:
        """The masked letter of the last exchange that was answered."""
        kind, stored = self.terms.word_type, self._records.kept["answer"]
        start = 8 + DIGEST_BYTES
        end = start + self.terms.entries * kind.itemsize
        cuts = range(end, len(stored), SHARE_BYTES)
        shares = tuple(stored[at : at + SHARE_BYTES] for at in cuts)
        return Answer(stored[8:start], np.frombuffer(stored[start:end], kind), shares)

    def heard(self, sender: str, kind: str, content: bytes) -> Step:
        """What to do about a letter of the protocol; refused if it breaks the rules."""
        return self._issue(self._act(sender, kind, content))

    def _act(self, sender: str, kind: str, content: bytes) -> Step:
        letter = letters.decode(kind, content, self.terms)
        if isinstance(letter, _FROM_COORDINATOR):
            allowed = sender == self.terms.coordinator
        else:
            allowed = isinstance(letter, _FROM_AGENTS) and sender in self.terms.signing
        if not allowed:
            refuse(f"{sender!r} may not send a {kind} letter to an agent")
        if isinstance(letter, Call):
            return self._setup.called(letter)
        if isinstance(letter, Entries):
            return self._setup.offered(letter)
        if isinstance(letter, Shares):
            return self._setup.dealt(sender, letter)
        if isinstance(letter, Want):
            return self._setup.wanted(sender, letter)
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
        return Wanted(exchange, context, roster.digest)

    def answer(self, wanted: Wanted, letter: np.ndarray) -> Step:
        """Mask a letter and send it.

        Args:
            wanted: What `asked` returned.
            letter: The letter on the grid with its noise, as unsigned words.
        """
        exchange, context, _ = wanted
        if self._records.last_answered() == exchange:
            return self._answer_again(exchange)
        roster = self._records.in_force(exchange)
        if wanted.roster != roster.digest:
            refuse(f"exchange {exchange} has another roster by now; ask again")
        row = self._may_answer(exchange, context)
        kind = self.terms.word_type
        if letter.dtype != kind or letter.shape != (self.terms.entries,):
            refuse(
                f"expected a letter of {self.terms.entries} words of {self.terms.word} "
                f"bits, got {letter.dtype} of shape {letter.shape}"
            )
        commons = self.prepare(exchange)
        y = self._dealer.masked(letter, roster, exchange, commons, context)
        shares, used = (), []
        if roster.only_whole:
            # `open` could ask for nothing else, and anybody may open the whole roster.
            shares, drop = self._give(roster, exchange, roster.members)
            used.append(drop)
        stamp = exchange.to_bytes(8, "little") + context
        kept = Keep("answer", b"".join([stamp, y.tobytes(), *shares]))
        writes = (*row, kept, *used, *self._records.outdated(exchange))
        answer = Answer(context, y, shares)
        sends = (Send(self.terms.coordinator, "answer", exchange, answer),)
        return self._issue(Step(writes, sends))

    def prepare(self, exchange: int) -> dict[str, bytes]:
        """Exchange keys for an answer ahead of the question; it takes most of the time.

        Returns:
            What the agent shares with each of the others.
        """
        roster = self._records.in_force(exchange)
        key = roster.digest, roster.keyed_as(exchange)
        if key not in self._commons:
            self._commons = {key: self._dealer.commons(roster, exchange)}
        return self._commons[key]

    def prepare_next(self) -> None:
        """Exchange keys for the next exchange, where its roster is here and ready."""
        with suppress(TacitaError):
            self.prepare(self._records.latest() + 1)

    def awaited(self) -> tuple[str, ...]:
        """Agents whose shares are not here yet, of the last roster."""
        return self._setup.awaited()

    def _may_answer(self, exchange: int, context: bytes) -> list[Row]:
        if ("set", exchange) in self._records.rows:
            refuse(
                f"a set of exchange {exchange} was signed or opened here, so this "
                "agent's key may be public: it stays silent in this exchange"
            )
        return self._records.note(Row("answer", exchange, context))

    def _answer_again(self, exchange: int) -> Step:
        answer = self.stored_answer()
        return Step((), (Send(self.terms.coordinator, "answer", exchange, answer),))

    def _agree(self, alive: Alive) -> Step:
        _, row = self._check_set(alive)
        message = set_message(self.terms, alive.roster, alive.exchange, alive.chosen)
        agreed = Agreed(alive.exchange, alive.roster, self._sign(message))
        return Step(tuple(row), self._reply(agreed))

    def _open(self, letter: Open) -> Step:
        roster, row = self._check_set(letter)
        self._check_signatures(roster, letter)
        exchange, kept = letter.exchange, self._records.kept
        if kept.get("opening", b"")[:8] == exchange.to_bytes(8, "little"):
            again = letters.decode("opening", kept["opening"], self.terms)
            return Step((), self._reply(again))
        shares, drop = self._give(roster, exchange, letter.chosen)
        opening = Opening(exchange, roster.digest, roster.members, shares)
        writes = (
            *row,
            Keep("opening", letters.encode(opening, self.terms)),
            drop,
            *self._records.outdated(exchange),
        )
        return Step(writes, self._reply(opening))

    def _give(
        self, roster: Roster, exchange: int, chosen: tuple[str, ...]
    ) -> tuple[tuple[bytes, ...], Drop]:
        """Its shares for a set, and the end of all others of that exchange."""
        name = f"shares-{roster.attempt}-{exchange}"
        if name not in self._records.kept:
            refuse(f"the shares of exchange {exchange} are gone")
        return opened(roster, self._records.kept[name], chosen), Drop(name)

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

    def _reply(self, letter: Agreed | Opening) -> tuple[Send, ...]:
        hub = (self.terms.coordinator,)
        return letters.send_all(hub, letter, letter.exchange, self.terms)
