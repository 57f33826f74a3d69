"""An agent of a server algorithm: it answers the coordinator's questions.

A question is one exchange of one round. Its answer is written to the disk before it is
sent; the same question again gets the same answer from there. For algorithms whose
coordinator averages everybody's last letter, the answer is the *change* since the last
letter that was counted, which the question names; so the coordinator keeps one vector,
not one per agent.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from jax import Array

from tacita.federation.agent_keys import AgentKeys, next_history
from tacita.federation.desk import Desk
from tacita.federation.party import WINDOW, Party, bytes_of, require_own
from tacita.federation.receipts import When
from tacita.federation.shapes import Form, by_round, to_list
from tacita.federation.terms import Terms
from tacita.federation.wire import Letter, LetterRefused, Repeated, require_bounded
from tacita.federation.work import ServerWork, answer, largest_entry
from tacita.runtime.seat import Seat
from tacita.trees import in_double_precision


class ServerAgent(Party):
    """One agent.

    Args:
        desk: Its name, keys, folder and ledger.
        server: What the coordinator computes, and the forms of all letters.
        seat: Its own numbers and rows.
        coordinator: Who asks.
        own_keys: What it draws with.
        terms: How the run goes; it answers no question beyond its rounds.
        chance: That it answers in a round, where agents draw that themselves.
    """

    def __init__(
        self,
        desk: Desk,
        server: ServerWork,
        seat: Seat,
        coordinator: str,
        own_keys: AgentKeys,
        terms: Terms,
        chance: float = 1.0,
    ) -> None:
        super().__init__(desk, server.most_bytes, (coordinator,))
        self._server, self._seat, self._coordinator = server, seat, coordinator
        self._keys, self._terms, self._chance = own_keys, terms, chance
        self._rounds, self._phases = terms.rounds, server.phases
        self._next = (coordinator, "question")
        self.state: Any = None
        self.final: Any = None
        self._answered = (0, 0)
        self._history = ""
        self._passed = False
        self._answer: list[np.ndarray] = []
        #: What was told last, and after how many rounds; None since a restart.
        self._told: tuple[int, Any] | None = None
        #: Its letters by round: the last one counted, and the one after it.
        self._letters: dict[int, list[np.ndarray]] = {}

    @property
    def finished(self) -> bool:
        """Whether the coordinator said that the run is over."""
        return self.final is not None

    @property
    def round(self) -> int:
        """The last round that it answered in."""
        return self._answered[0]

    @property
    def said(self) -> When:
        """The last question that it answered."""
        return self._answered

    @in_double_precision
    def model(self) -> np.ndarray:
        """Its own model."""
        return np.asarray(self._seat.algorithm.model(self.state))

    @in_double_precision
    def shared(self) -> np.ndarray:
        """The shared model, once the run is over."""
        return np.asarray(self._server.algorithm.shared(self.final))

    @in_double_precision
    def known(self) -> tuple[int, np.ndarray] | None:
        """The shared model as it was told last."""
        if self.finished:
            return self._terms.rounds, self.shared()
        if self._told is None:
            return None
        number, told = self._told
        return number, np.asarray(self._server.algorithm.shared(told))

    @in_double_precision
    def start(self, now: float) -> None:
        """Begin, or go on from the checkpoint; then tell the coordinator."""
        saved = self._recall()
        if saved is None:
            self.state, letter = self._seat.begin(self._server.start)
            self._letters = {0: to_list(letter)}
        else:
            self._restore(*saved)
        self._began = self.said
        if self.finished:  # killed before the result was kept, or its receipt came
            self._send("done", self._coordinator, self._answered)
        self._ask(self._coordinator, now)
        self.patience.wait(self._next, now)

    def _ask(self, peer: str, now: float) -> None:
        """Tell what was answered last; the coordinator knows what is next."""
        if not self.finished:
            self._send("ask", peer, self._answered)

    @in_double_precision
    def _take(self, letter: Letter, now: float) -> None:
        one = letter.identity
        when = (one.round, one.phase)
        if one.kind not in ("question", "end", "ask", "ready", "fetch"):
            raise LetterRefused(f"an agent gets no letter of kind {one.kind!r}")
        if self.finished:
            self._send("done", self._coordinator, self._answered)
        elif when < self._answered or when == (0, 0):
            raise Repeated("a question that was answered long ago")
        elif when == self._answered:
            self._answered_already(one.kind, now)
        elif one.kind in ("question", "end"):
            self._take_news(letter, now)
        elif one.kind != "fetch":
            # The order of letters is kept: what was not read by now was lost.
            self._fetch(self._coordinator, when, now)

    def _answered_already(self, kind: str, now: float) -> None:
        if kind in ("question", "ask"):
            self._send("ready", self._coordinator, self._answered)
        elif kind == "fetch" and self._may_fetch(self._coordinator, now):
            self._tell()

    def _take_news(self, letter: Letter, now: float) -> None:
        if letter.identity.kind == "end":
            self._finish(letter)
        else:
            self._reply((letter.identity.round, letter.identity.phase), letter.arrays)
        self._arrived(self._coordinator, now)
        self.patience.came(self._next, now)
        self.patience.wait(self._next, now)

    def _reply(self, when: tuple[int, int], arrays: tuple[np.ndarray, ...]) -> None:
        number, phase = when
        rounds = self._terms.rounds
        if not 1 <= number <= rounds:
            raise LetterRefused(f"{rounds} rounds were agreed on, not {number}")
        if phase >= self._server.phases or not arrays:
            raise LetterRefused(f"there is no exchange {phase}")
        told = self._server.exchanges[phase].told.for_compiled(arrays[:-1])
        require_bounded(arrays, largest=largest_entry(self._seat.algorithm, number))
        if arrays[-1].shape != () or arrays[-1].dtype != np.int64:
            raise LetterRefused("the question does not name the letter last counted")
        counted = int(arrays[-1])
        if counted not in self._letters:
            raise LetterRefused("the question builds on a letter that is not known")
        history = next_history(self._history, when, arrays[:-1])
        if self._stays_silent(number):
            self._passed, self._answer = True, []
        else:
            key = self._keys.noise(number, phase, history)
            self._compute(when, key, told, counted)
        self._answered, self._history = when, history
        if phase == 0:
            self._told = number - 1, told
        if phase == self._server.phases - 1:
            self.desk.ended(number, [] if self._passed else [self.name])
        self._save()
        self._note_news(self._coordinator)
        letter = self._server.exchanges[phase].letter
        if self._server.n_agents * letter.bytes > WINDOW:
            # Too much for all to send at once: the coordinator fetches one by one.
            self._send("ready", self._coordinator, when)
        else:
            self._tell()

    def _stays_silent(self, number: int) -> bool:
        if not self._terms.own_draws:
            return False  # the coordinator has drawn
        drawn = jax.random.uniform(self._keys.draw(number))
        return not bool(drawn < self._chance)

    def _compute(self, when: When, key: Array, told: Any, counted: int) -> None:
        number, phase = when
        state, letter = answer(phase, number, self._seat, key, self.state, told)
        arrays = to_list(letter)
        if arrays:
            # Ledger first: a crash may waste budget, never under-count it.
            to = self._identity("answer", self._coordinator, when)
            self.desk.charge(to, bytes_of(arrays))
        require_own(arrays)  # a letter that does not leave tells of itself too
        self.state, self._passed = state, False
        if self._server.keeps(phase):
            base = self._letters[counted]
            self._letters = {counted: base, number: arrays}
            arrays = [new - old for new, old in zip(arrays, base, strict=True)]
        self._answer = arrays

    def _tell(self) -> None:
        kind = "pass" if self._passed else "answer"
        self._send(kind, self._coordinator, self._answered, self._answer)

    def _finish(self, letter: Letter) -> None:
        if letter.identity.round <= self._terms.rounds:
            raise LetterRefused("the run is said to be over before its last round")
        require_bounded(letter.arrays)
        self.final = self._server.last_told.to_tree(letter.arrays)
        # Whoever says "done" is not told again: first it has to be on the disk.
        self._save()
        self._send("done", self._coordinator, self._answered)

    def _save(self) -> None:
        words = {"answered": self._answered, "passed": self._passed}
        words |= {"letters": list(self._letters), "history": self._history}
        words["over"] = self.finished
        more, own = self._own_parts()
        letters = [array for letter in self._letters.values() for array in letter]
        self._keep(
            words | more,
            state=to_list(self.state),
            answer=self._answer,
            letters=letters,
            final=to_list(self.final),
            own=own,
        )

    def _own_parts(self) -> tuple[dict[str, Any], list[np.ndarray]]:
        """Words and arrays that a special kind of agent keeps besides."""
        return {}, []

    def _restore(self, words: dict[str, Any], groups: dict[str, Any]) -> None:
        form, _ = jax.eval_shape(self._seat.begin, self._server.start)
        self.state = Form(form).to_tree(groups["state"])
        self._answer, self._passed = groups["answer"], words["passed"]
        self._answered = tuple(words["answered"])
        self._history = words["history"]
        if words["over"]:
            self.final = self._server.last_told.to_tree(groups["final"])
        self._letters = by_round(words["letters"], groups["letters"])
