"""The coordinator of secure sums: it asks as ever, and learns sums, not letters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from tacita.aggregation.secure.secure_coordinator import SecureCoordinator
from tacita.aggregation.secure.steps import Keep, Outcome, Step, Sum
from tacita.federation import sum_parts
from tacita.federation.desk import Desk
from tacita.federation.draws import Draws
from tacita.federation.receipts import WORDS
from tacita.federation.server_coordinator import ServerCoordinator
from tacita.federation.sum_parts import refusing
from tacita.federation.terms import Terms
from tacita.federation.wire import Letter, Repeated
from tacita.federation.work import ServerWork
from tacita.runtime.secret_noise import question_digest
from tacita.trees import in_double_precision

#: Sums in a row without an agent after which others do not wait for it any more.
_MOST_MISSED = 2
#: What a note has besides the machine's: everybody's last stamps.
_STAMPS = "stamps"


class SumCoordinator(ServerCoordinator):
    """The coordinator; see `ServerCoordinator`.

    Args:
        desk: Its name, keys and folder.
        work: What it computes.
        agents: Names of the agents.
        draws: Its randomness.
        terms: How the run goes.
    """

    def __init__(
        self,
        desk: Desk,
        work: ServerWork,
        agents: Sequence[str],
        draws: Draws,
        terms: Terms,
    ) -> None:
        super().__init__(desk, work, agents, draws, terms)
        self._sum_terms = sum_parts.sum_terms(
            desk, work, agents, desk.name, terms.rounds
        )
        self._read_from(self._number, sum_parts.most_bytes(self._sum_terms))
        self._machine = SecureCoordinator(self._sum_terms)
        #: Rounds that came to nothing, and why.
        self.void: dict[int, str] = {}
        #: Sums in a row that every agent was missing in.
        self._missed = Counter[str]()
        self._anew = False
        #: What an answer has brought about, until the letter is dealt with.
        self._due: Step | None = None

    def _begin(self, now: float) -> None:
        """Bring a roster about if there is none, then ask everybody in it."""
        if self.over:
            super()._begin(now)
            return
        self._since, machine = now, self._machine
        exchange = sum_parts.exchange_of(self._when, self._work.phases)
        if self._anew or not machine.serves(exchange):
            under_way = machine.stage in ("keys", "ready") and not self._anew
            self._anew = False
            step = machine.again() if under_way else self._attempt(exchange)
            self._do(step, now)
            return
        self._do(machine.ask(exchange, question_digest(self.broadcast)), now)
        if machine.stage == "answers" and self._when_of(exchange) == self._when:
            assert machine.roster is not None
            self._members = [self._number[name] for name in machine.roster.members]
            super()._begin(now)

    def _attempt(self, exchange: int) -> Step:
        """A new roster of all who were not missing for long."""
        present = [name for name in self.agents if self._missed[name] < _MOST_MISSED]
        enough = len(present) >= self._sum_terms.least
        # Whoever is left out now is asked again with the next roster.
        self._missed.clear()
        return self._machine.begin(exchange, present if enough else None)

    def _when_of(self, exchange: int) -> tuple[int, int]:
        number, phase = divmod(exchange, self._work.phases)
        return number + 1, phase

    @in_double_precision
    def _take(self, letter: Letter, now: float) -> None:
        sender = letter.identity.sender
        if letter.identity.kind != "secure":
            super()._take(letter, now)
            return
        self.patience.came((sender, "sum"), now)
        kind, content = sum_parts.read(letter)
        exchange = sum_parts.exchange_of(self._when, self._work.phases)
        spoken = kind in ("agreed", "opening") and letter.identity.round < exchange
        if self.over or spoken:
            raise Repeated("it comes after the end, as some always do")
        step = refusing(self._machine.heard, sender, kind, content)
        self._do(step, now)
        self._begin_if_ready(now)

    def _answer(self, agent: int, letter: Letter, now: float) -> None:
        self._require_awaited(agent, letter)
        one = letter.identity
        exchange = sum_parts.exchange_of((one.round, one.phase), self._work.phases)
        answer = sum_parts.answer_of(letter.arrays, self._sum_terms)
        self._due = refusing(self._machine.answer, one.sender, exchange, answer)
        self._count_in(agent)

    def _go_on(self, now: float) -> None:
        """Do what the last answer has brought about.

        At a deadline it goes on without those who are late. A sum that they do not open
        in time is given up: the round is void.
        """
        if self._due is not None:
            due, self._due = self._due, None
            self._do(due, now)
            return
        limit, machine = self.terms.deadline, self._machine
        if self.over or limit is None or now - self._since < limit:
            return
        self._since = now
        opening, step = machine.stage in ("agreed", "opening"), machine.time_up()
        if opening and step == Step():
            step = machine.give_up()
        self._do(step, now)
        self._begin_if_ready(now)

    def _begin_if_ready(self, now: float) -> None:
        if not self.over and self._machine.stage == "ask":
            self._begin(now)

    def _do(self, step: Step, now: float) -> None:
        """Write a step down, send its letters, and take its outcome."""
        stage = self._machine.stage
        sends = self._machine.release(step)
        if step.writes:
            # A set that stands is not asked for again: who was heard belongs to it.
            stamps = b"".join(self.receipts.of(a).tobytes() for a in self.agents)
            told = (*step.writes, Keep(_STAMPS, stamps))
            self._note(sum_parts.as_note(told))
        sum_parts.post(self._put_out, sends)
        if self._machine.stage != stage:
            self._since = now
        if step.outcome is not None:
            self._end(step.outcome, now)
        elif self._machine.stage != "answers":
            for name in self._machine.awaited:
                self.patience.wait((name, "sum"), now)

    def _end(self, outcome: Outcome, now: float) -> None:
        """A sum is combined; a round that is void changes nothing, and was paid for."""
        self._open.close_all()
        if isinstance(outcome, Sum):
            rule = self._work.algorithm.aggregation
            self._counted = {self._number[name] for name in outcome.chosen}
            self._note_missing(outcome.chosen)
            for name in outcome.false_holders:
                self.counts.refuse(f"shares of {name} do not fit")
            mean = rule.opened(outcome.total, float(len(outcome.chosen)))
            self._move_on([np.asarray(mean)])
        else:
            self.void[self._when[0]] = outcome.reason
            self.counts.refuse(f"a void round: {outcome.reason}")
            self._anew = True
            self._move_on(None)
        self._begin(now)

    def _note_missing(self, chosen: Sequence[str]) -> None:
        """Nobody waits for ever for an agent that is gone: the next roster does not."""
        assert self._machine.roster is not None
        for name in self._machine.roster.members:
            self._missed[name] = 0 if name in chosen else self._missed[name] + 1
        self._anew = max(self._missed.values()) >= _MOST_MISSED

    def _ask(self, peer: str, now: float) -> None:
        machine = self._machine
        if self.over or machine.stage == "answers":
            self.patience.forget((peer, "sum"))
            super()._ask(peer, now)
        elif peer in machine.awaited:
            others = set(machine.awaited) - {peer}  # each has a time of its own
            step = machine.again()
            if step.writes:  # somebody's key was changed: a new attempt
                self._do(step, now)
                return
            sends = machine.release(step)
            sum_parts.post(self._put_out, (s for s in sends if s.to not in others))
            for name in machine.awaited:  # the machine may have turned to more of them
                self.patience.wait((name, "sum"), now)
        else:
            self.patience.forget((peer, "sum"))

    def _own_parts(self) -> tuple[dict[str, Any], list[np.ndarray]]:
        words, arrays = sum_parts.as_parts(*self._machine.written)
        return {"sum": words}, arrays

    def _restore(self, words: dict[str, Any], groups: dict[str, Any]) -> None:
        super()._restore(words, groups)
        notes = self.desk.state_file.noted
        kept, _ = sum_parts.of_parts(words["sum"], groups["own"], notes)
        stamps = np.frombuffer(kept.pop(_STAMPS, b""), np.int64).reshape(-1, WORDS)
        for agent, stamp in zip(self.agents, stamps, strict=False):
            self.receipts.hear(agent, stamp)
        self._machine = SecureCoordinator(self._sum_terms, kept)
