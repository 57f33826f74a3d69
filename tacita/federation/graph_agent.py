"""An agent of a graph algorithm: it writes to its neighbours, and nobody coordinates.

Who is active in which round follows from the run description, which everybody has. So
an agent knows which letter of each neighbour it needs next (the last one before its own
next active round), asks for it if it does not come, and knows which of its own letters
somebody may still ask for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tacita.federation.agent_keys import AgentKeys, next_history
from tacita.federation.calendar import Calendar
from tacita.federation.desk import Desk
from tacita.federation.party import Party, bytes_of, require_own
from tacita.federation.receipts import When
from tacita.federation.shapes import to_list
from tacita.federation.terms import Terms
from tacita.federation.wire import Letter, LetterRefused, Repeated, require_bounded
from tacita.federation.work import GraphWork
from tacita.trees import in_double_precision

#: Letters of one neighbour kept before they are needed.
_EARLY = 4


class GraphAgent(Party):
    """One agent on a graph.

    Args:
        desk: Its name, keys, folder and ledger.
        work: What it computes.
        names: All agents, in the order of the graph's nodes.
        calendar: Who is active when.
        own_keys: What it draws with.
        terms: How the run goes. After its deadline a round goes on with the last
            letter of a neighbour that is late; the run then depends on the clock: it
            is not a simulation's any more.
    """

    def __init__(
        self,
        desk: Desk,
        work: GraphWork,
        names: Sequence[str],
        calendar: Calendar,
        own_keys: AgentKeys,
        terms: Terms,
    ) -> None:
        self._neighbours = {names[j]: j for j in work.neighbours}
        super().__init__(desk, work.letter.bytes, self._neighbours)
        self._work, self._names, self._calendar = work, names, calendar
        self._keys, self._terms, self._deadline = own_keys, terms, terms.deadline
        self._rounds = terms.rounds
        self._me = list(names).index(desk.name)
        self.state: Any = None
        self._round = 0
        self._history = ""
        self._letters: dict[int, np.ndarray] = {}
        self._inbox: dict[tuple[int, int], np.ndarray] = {}
        self._heard = {j: -1 for j in work.neighbours}
        #: With a deadline, the newest letter of every neighbour.
        self._newest: dict[int, np.ndarray] = {}
        #: When its last round ended.
        self._since = 0.0
        self._lingered = False

    @property
    def round(self) -> int:
        """The last round that it was active in."""
        return self._round

    @property
    def said(self) -> When:
        """The last round whose letter it wrote."""
        return self._round, 0

    @property
    def over(self) -> bool:
        """Whether all its own rounds are done."""
        return self._calendar.next(self._me, self._round) is None

    @property
    def finished(self) -> bool:
        """Whether its neighbours are done too, or were given the time."""
        final = self._calendar.rounds
        needless = all(
            heard >= self._calendar.last(j, final) for j, heard in self._heard.items()
        )
        return self.over and (needless or self._lingered)

    @in_double_precision
    def model(self) -> np.ndarray:
        """Its own model."""
        return self._work.model(self.state)

    def known(self) -> tuple[int, np.ndarray]:
        """Its own model, which it learns for itself."""
        return self._round, self.model()

    @in_double_precision
    def start(self, now: float) -> None:
        """Begin, or go on from the checkpoint; then tell the neighbours."""
        saved = self._recall()
        if saved is None:
            self.state, letters = self._work.init()
            (self._letters[0],) = to_list(letters)
            self._save()
        else:
            self._restore(*saved)
        self._began, self._since = self.said, now
        self._tell(self._round)
        self._advance(now)
        self._wait(now)
        if saved is not None:  # what was read before is gone
            for name in self._neighbours:
                self._ask(name, now)

    @in_double_precision
    def tick(self, now: float) -> None:
        """Also goes on without those who are later than the deadline."""
        super().tick(now)
        self._lingered = self.over and now - self._since >= self._terms.linger
        if self._deadline is not None and now - self._since >= self._deadline:
            self._advance(now)

    def _needed(self, neighbour: int) -> int | None:
        """The round of the neighbour's letter that my next round is made from."""
        number = self._calendar.next(self._me, self._round)
        return None if number is None else self._calendar.last(neighbour, number - 1)

    @in_double_precision
    def _take(self, letter: Letter, now: float) -> None:
        one = letter.identity
        j = self._neighbours[one.sender]
        if one.kind == "ask":
            if one.round in self._letters:
                self._send("ready", one.sender, (one.round, 0))
            elif self._deadline is not None:
                self._send("ready", one.sender, (self._round, 0))
            elif one.round < min(self._letters):
                # It was heard beyond that round: the receipt tells it so.
                self._send("ask", one.sender, (max(self._heard[j], 0), 0))
        elif one.kind == "ready":
            if self._lacks(j, one.round):
                self._fetch(one.sender, (one.round, 0), now)
        elif one.kind == "fetch":
            if one.round in self._letters and self._may_fetch(one.sender, now):
                self._tell_one(one.round, j)
        elif one.kind == "answer" and one.phase == 0:
            self._read(j, letter, now)
        else:
            raise LetterRefused(f"neighbours send no letter of kind {one.kind!r}")

    def _lacks(self, j: int, number: int) -> bool:
        """Whether a neighbour's letter of this round is waited for and not here."""
        needed = self._wanted(j)
        newer = self._deadline is not None and number > needed
        return self._missing(j) and (number == needed or newer)

    def _wanted(self, j: int) -> int:
        """The round of the neighbour's letter that is waited for, needed or last."""
        needed = self._needed(j)
        return (
            self._calendar.last(j, self._calendar.rounds) if needed is None else needed
        )

    def _missing(self, j: int) -> bool:
        if self.over:
            return self._heard[j] < self._wanted(j)
        return (j, self._wanted(j)) not in self._inbox

    def _read(self, j: int, letter: Letter, now: float) -> None:
        one = letter.identity
        self._arrived(one.sender, now)
        if one.round != self._calendar.last(j, min(one.round, self._calendar.rounds)):
            raise LetterRefused("a letter of a round in which its sender is silent")
        self._work.letter.check(letter.arrays)
        require_bounded(letter.arrays, self._terms.most_norm, self._work.largest)
        if self._deadline is not None and one.round >= self._heard[j]:
            self._newest[j] = letter.arrays[0]
        self._heard[j] = max(self._heard[j], one.round)
        needed = self._needed(j)
        if needed is None:
            self._wait(now)
            return
        if one.round < needed or (j, one.round) in self._inbox:
            raise Repeated("a letter that was read already")
        early = sum(who == j for who, _ in self._inbox)
        if early < _EARLY or one.round == needed:
            self._inbox[j, one.round] = letter.arrays[0]
        self._wait(now)
        self._advance(now)
        self._wait(now)

    def _wait(self, now: float) -> None:
        """Note whose letters are missing; they are asked for after a while."""
        for name, j in self._neighbours.items():
            note = self.patience.wait if self._missing(j) else self.patience.came
            note((name, "answer"), now)

    def _advance(self, now: float) -> None:
        """As many rounds as the letters at hand allow."""
        while (number := self._calendar.next(self._me, self._round)) is not None:
            received = [self._letter_of(j, now) for j in self._work.neighbours]
            if any(letter is None for letter in received):
                return
            self._step(number, [letter for letter in received if letter is not None])
            self._since = now

    def _letter_of(self, j: int, now: float) -> np.ndarray | None:
        """The neighbour's letter for my next round, or None to wait for it."""
        exact = self._inbox.get((j, self._needed(j) or 0))
        if exact is not None or self._deadline is None:
            return exact
        # Whoever went on without me is ahead: its older letters are of no use.
        ahead = self._heard[j] > (self._needed(j) or 0)
        patient = now - self._since < self._deadline
        return None if patient and not ahead else self._newest.get(j)

    def _step(self, number: int, received: list[np.ndarray]) -> None:
        history = next_history(self._history, (number, 0), received)
        key = self._keys.noise(number, 0, history)
        own, rule = self._letters[self._round], self._keys.rule(number)
        state, letters = self._work.step(number, key, self.state, received, own, rule)
        (array,) = to_list(letters)
        # Ledger first: a crash may waste budget, never under-count it.
        self.desk.charge(self._identity("answer", "", (number, 0)), bytes_of([array]))
        require_own([array])  # a letter that does not leave tells of itself too
        self.state, self._round, self._history = state, number, history
        self._letters[number] = array
        self._forget()
        self.desk.ended(number, [self.name])
        self._save()
        self._tell(number)

    def _forget(self) -> None:
        """Drop letters that no neighbour can ask for, and those read already."""
        oldest = self._round
        for j, heard in self._heard.items():
            number = self._calendar.next(j, max(heard, 0))
            if number is not None:
                oldest = min(oldest, self._calendar.last(self._me, number - 1))
        if self._deadline is not None:  # nobody waits for letters that are that old
            oldest = max(oldest, self._round - _EARLY)
        self._letters = {r: v for r, v in self._letters.items() if r >= oldest}
        self._inbox = {
            (j, r): v
            for (j, r), v in self._inbox.items()
            if r >= (self._needed(j) or 0)
        }

    def _tell(self, number: int) -> None:
        for j in self._work.neighbours:
            self._note_news(self._names[j])
            self._tell_one(number, j)

    def _tell_one(self, number: int, j: int) -> None:
        place = self._work.neighbours.index(j)
        letter = self._work.to_neighbour(self._letters[number], place)
        self._send("answer", self._names[j], (number, 0), [letter])

    def _ask(self, peer: str, now: float) -> None:
        j = self._neighbours[peer]
        if self._missing(j):
            self._send("ask", peer, (self._wanted(j), 0))
        else:
            self.patience.forget((peer, "answer"))

    def _save(self) -> None:
        words: dict[str, Any] = {"round": self._round, "history": self._history}
        words["letters"] = list(self._letters)
        words["heard"] = [self._heard[j] for j in self._work.neighbours]
        letters = list(self._letters.values())
        self._keep(words, state=to_list(self.state), letters=letters)

    def _restore(self, words: dict[str, Any], groups: dict[str, Any]) -> None:
        self.state = self._work.state.to_tree(groups["state"])
        self._letters = dict(zip(words["letters"], groups["letters"], strict=True))
        self._round, self._history = words["round"], words["history"]
        self._heard = dict(zip(self._work.neighbours, words["heard"], strict=True))
