"""An agent whose letters enter secure sums: on the grid, with noise, and masked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from jax import Array

from tacita.aggregation.secure.secure_agent import SecureAgent, Wanted
from tacita.aggregation.secure.steps import Row, Send, Step
from tacita.check import refuse
from tacita.federation import sum_parts
from tacita.federation.agent_keys import AgentKeys
from tacita.federation.desk import Desk
from tacita.federation.party import Diverged
from tacita.federation.receipts import When
from tacita.federation.server_agent import ServerAgent
from tacita.federation.sum_parts import refusing
from tacita.federation.terms import Terms
from tacita.federation.wire import Letter, LetterRefused
from tacita.federation.work import ServerWork, answer
from tacita.runtime.seat import Seat
from tacita.runtime.secret_noise import question_digest
from tacita.trees import in_double_precision


class SumAgent(ServerAgent):
    """One agent; see `ServerAgent`.

    Args:
        desk: Its name, keys, folder and ledger.
        server: What the coordinator computes, and the forms of all letters.
        seat: Its own numbers and rows.
        coordinator: Who asks.
        own_keys: What it draws with.
        terms: How the run goes.
        agents: Everybody who is in the sums.
    """

    def __init__(
        self,
        desk: Desk,
        server: ServerWork,
        seat: Seat,
        coordinator: str,
        own_keys: AgentKeys,
        terms: Terms,
        agents: Sequence[str],
    ) -> None:
        super().__init__(desk, server, seat, coordinator, own_keys, terms)
        about = (desk, server, agents, coordinator, terms.rounds)
        self._sum_terms = sum_parts.sum_terms(*about)
        self._rule = server.algorithm.aggregation
        others = (name for name in agents if name != desk.name)
        self._read_from((coordinator, *others), sum_parts.most_bytes(self._sum_terms))
        self._secret = b""
        self._machine: Any = None

    @in_double_precision
    def start(self, now: float) -> None:
        """Begin, or go on from the checkpoint."""
        super().start(now)
        if self._machine is None and not self.finished:
            self._secret = self._keys.sum_secret()
            self._machine = self._new_machine()
            self._save()

    def _new_machine(self, *written: Any) -> SecureAgent:
        assert self.desk.signer is not None
        sign = self.desk.signer.sign
        return SecureAgent(self._sum_terms, self.name, self._secret, sign, *written)

    @in_double_precision
    def _take(self, letter: Letter, now: float) -> None:
        sender = letter.identity.sender
        if letter.identity.kind == "secure":
            self._hear(sender, *sum_parts.read(letter))
        elif sender != self._coordinator:
            raise LetterRefused("only the coordinator asks")
        else:
            super()._take(letter, now)

    def tick(self, now: float) -> None:
        """Also exchanges keys for the next question, while it waits for that."""
        super().tick(now)
        if self._machine is not None and not self.finished:
            self._machine.prepare_next()

    def _hear(self, sender: str, kind: str, content: bytes) -> None:
        if self.finished:
            return
        step = refusing(self._machine.heard, sender, kind, content)
        sends = self._written(step)
        if step.writes:
            self._note(sum_parts.as_note(step.writes))
        sum_parts.post(self._put_out, sends)

    def _written(self, step: Step, when: When | None = None) -> Iterable[Send]:
        """Write the rows of a step into the ledger; the rest is in the checkpoint.

        Of an answer the whole letter is charged: a folder that was put back may have
        other rows by now, and two letters under the same masks and noise would tell
        their difference.
        """
        for row in step.writes:
            if not isinstance(row, Row):
                continue
            if row.kind == "answer" and when is not None:
                name = self._identity("answer", self._coordinator, when)
                self.desk.charge(name, sum_parts.answer_in(step))
            elif self.desk.account is not None:
                self.desk.account.note(row.kind, row.number, row.digest)
        return self._machine.release(step)

    def _compute(self, when: When, key: Array, told: Any, counted: int) -> None:
        number, phase = when
        exchange = sum_parts.exchange_of(when, self._server.phases)
        wanted = refusing(self._machine.asked, exchange, question_digest(told))
        if not isinstance(wanted, Wanted):
            raise LetterRefused("that question was answered")
        # Masks and noise follow from the context, so must batches: under the same ones
        # two letters would tell their difference.
        key = self._keys.noise(number, phase, wanted.context.hex())
        state, letter = answer(phase, number, self._seat, key, self.state, told)
        context = self._keys.sum_context(wanted.context, number, phase, told)
        words = self._on_grid(np.asarray(letter), context)
        self._written(refusing(self._machine.answer, wanted, words), when)
        # The masked letter is with what the machine has kept.
        self.state, self._passed, self._answer = state, False, []

    def _on_grid(self, letter: np.ndarray, context: bytes) -> np.ndarray:
        """The letter as integers, with this agent's share of the noise."""
        rule = self._rule
        # What is no number counts as zero: clipped letters never are.
        letter = np.where(np.isnan(letter), 0.0, letter)
        if not rule.each and np.any(np.abs(letter) > rule.largest):
            raise Diverged(
                f"an entry of this agent's letter is beyond largest={rule.largest:g}, "
                "where a secure sum says nothing; begin a new run with a larger one"
            )
        return np.asarray(rule.letter(letter, 1.0, self._secret, context))

    def _tell(self) -> None:
        masked = self._machine.stored_answer()
        arrays = sum_parts.arrays_of(masked)
        self._send("answer", self._coordinator, self._answered, arrays)

    def _own_parts(self) -> tuple[dict[str, Any], list[np.ndarray]]:
        """With the run's secret; once it is over nobody needs either."""
        if self.finished or self._machine is None:
            return {}, []
        words, arrays = sum_parts.as_parts(*self._machine.written)
        told = {"sum": words, "rows": self._keys.of_rows().hex()}
        return told, [*arrays, np.frombuffer(self._secret, np.uint8)]

    def _restore(self, words: dict[str, Any], groups: dict[str, Any]) -> None:
        super()._restore(words, groups)
        if "sum" in words:
            self._require_same_rows(words)
            self._secret = groups["own"][1].tobytes()
            notes = self.desk.state_file.noted
            kept, rows = sum_parts.of_parts(words["sum"], groups["own"], notes)
            self._machine = self._new_machine(rows, kept)

    def _require_same_rows(self, words: dict[str, Any]) -> None:
        """Masks and noise are of a question, whatever the rows: they stay the same.

        A folder that was put back, with its ledger, knows nothing of a letter that
        left. The same question would get another letter of other rows, and the two
        would tell their difference.
        """
        mine = self._keys.of_rows().hex()
        if words.get("rows", mine) != mine:
            refuse(
                f"the rows of {self.name} were changed since it began this run, whose "
                "secure sums hide letters of the rows that it had: put those back, or "
                "leave the run with --abandon"
            )
