"""The coordinator of a server algorithm: it asks, adds letters up, and combines.

It keeps what the algorithm's `combine` needs, one running mean at most (all letters
for another rule than the mean: `tally.py`), and a few numbers per agent. Nothing is
written down within an exchange: after a crash it is asked for again, and agents answer
from their checkpoints.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tacita.aggregation import Aggregation, Mean
from tacita.federation.desk import Desk
from tacita.federation.draws import Draws
from tacita.federation.kept_letters import KeepingTally
from tacita.federation.open_questions import NOTHING, OpenQuestions
from tacita.federation.party import WINDOW, Party, require_size
from tacita.federation.receipts import When
from tacita.federation.shapes import Form, to_list
from tacita.federation.tally import tally_for
from tacita.federation.terms import Terms
from tacita.federation.wire import Letter, LetterRefused, Repeated, require_bounded
from tacita.federation.work import ServerWork
from tacita.trees import in_double_precision


class ServerCoordinator(Party):
    """The coordinator.

    Args:
        desk: Its name, keys and folder.
        work: What it computes.
        agents: Names of the agents; agent i of the algorithm is `agents[i]`.
        draws: Its randomness, and that of whom it asks.
        terms: How the run goes.
        weights: Weight of every agent's letter.
        aggregation: How letters are joined; default their mean.
    """

    _remedy = "put the newest folder back, or propose the run under another name"

    def __init__(
        self,
        desk: Desk,
        work: ServerWork,
        agents: Sequence[str],
        draws: Draws,
        terms: Terms,
        weights: Sequence[float] | None = None,
        aggregation: Aggregation | None = None,
    ) -> None:
        require_size(work.most_bytes)
        self._number = {name: i for i, name in enumerate(agents)}
        most = max(exchange.letter.bytes for exchange in work.exchanges)
        super().__init__(desk, most, self._number)
        self._work, self.agents, self._draws, self.terms = work, agents, draws, terms
        n = len(agents)
        each = np.ones(n) if weights is None else np.asarray(weights, float)
        tally = tally_for(aggregation or Mean(), each)
        self._tally = KeepingTally(tally, n) if terms.keep_letters else tally
        self.state: Any = None
        self.broadcast: Any = None
        self._when = (1, 0)
        #: Agents of the current exchange; whom of them it waits for.
        self._members: list[int] = []
        self._waiting: set[int] = set()
        self._counted: set[int] = set()
        self._heard = 0
        self._open = OpenQuestions(n, desk.state_file)
        #: The round of every agent's last letter that was counted.
        self._credited = np.zeros(n, np.int64)
        #: Agents whose answer is written and waits to be fetched, first come first.
        self._written: dict[int, None] = {}
        self._confirmed: set[int] = set()
        self._since = 0.0
        self._lingered = False

    @property
    def round(self) -> int:
        """The round that it is in."""
        return self._when[0]

    @property
    def said(self) -> When:
        """The exchange that it is in."""
        return self._when

    @property
    def over(self) -> bool:
        """Whether all rounds are done."""
        return self._when[0] > self.terms.rounds

    @property
    def finished(self) -> bool:
        """Whether all agents know that the run is over, or were given the time."""
        everybody = len(self._confirmed) == len(self.agents)
        return self.over and (everybody or self._lingered)

    @property
    def seen(self) -> dict[str, dict[str, float]]:
        """How agents' letters lay; nothing under a mean, which keeps no letter."""
        seen = self._tally.seen
        return {} if seen is None else seen.told(self.agents)

    @in_double_precision
    def model(self) -> np.ndarray:
        """The shared model."""
        return np.asarray(self._work.algorithm.shared(self.broadcast))

    def models(self) -> dict[str, np.ndarray]:
        """The shared model and, where they are kept, the letters of the last round."""
        told = {"shared": self.model()}
        if self.terms.keep_letters:
            (told["letters"],) = self._tally.kept
        return told

    @in_double_precision
    def start(self, now: float) -> None:
        """Begin with round 1, or go on from the checkpoint."""
        saved = self._recall()
        if saved is None:
            self._first()
        else:
            self._restore(*saved)
        self._began = self.said
        self._begin(now)

    def _first(self) -> None:
        """Everybody's first letter depends on no data: nobody needs to send it."""
        work, n = self._work, len(self.agents)
        form, last = Form(work.first_letters(0)), work.phases - 1
        self._tally.open(form, work.first_letters(0))
        for agent in range(n):
            self._tally.add(agent, to_list(work.first_letters(agent)))
        keeps, rule = work.keeps(last), self._draws.rule(0, 0)
        joint = self._tally.close(keeps, rule, watch=False)  # nobody wrote these
        key, letter = self._draws.noise(0, 0, joint), form.in_types(joint)
        state = work.algorithm.init_coordinator(work.start)
        self.state, self.broadcast = work.combine(last, key, state, letter, 0, n)
        self._members = self.terms.members(1, len(self.agents), self._draws)
        self._save()

    def _begin(self, now: float) -> None:
        """Ask everybody of the current exchange; go on where there is nobody to ask."""
        while not self.over:
            self._since, self._counted, self._heard = now, set(), 0
            # Who waits to be fetched keeps its place, if its question is still open.
            waits = [i for i in self._written if self._open.of(i) != NOTHING]
            self._written = dict.fromkeys(waits)
            phase = self._when[1]
            centre = self._work.algorithm.joining.centre(self.broadcast)
            self._tally.open(self._work.exchanges[phase].letter, centre)
            free = (NOTHING, self._when)
            late = {i for i in self._members if self._open.of(i) not in free}
            self._waiting = set(self._members) - late
            for agent in sorted(self._waiting):
                self._open.put(agent, self._when)
                self._say(agent, now)
            if self._waiting or late:
                return
            self._close(now)
        self._since = now
        self._open.close_all()
        self._open.tidy()
        for agent in range(len(self.agents)):
            self._say(agent, now)

    def _say(self, agent: int, now: float) -> None:
        """What an agent has to know next: whole, unless it has not read the last."""
        name = self.agents[agent]
        self._note_news(name)
        self.patience.forget((name, "answer"))
        self.patience.wait((name, "answer"), now)
        if name in self._owing:
            self._send("ready", name, self._next(agent))
        else:
            self._send_whole(agent)

    def _next(self, agent: int) -> tuple[int, int]:
        """The question, or the end of the run, that an agent is to read next."""
        return self._when if self.over else self._open.of(agent)

    def _send_whole(self, agent: int) -> None:
        if self.over:
            told = to_list(self.broadcast)
            self._send("end", self.agents[agent], self._when, told)
        else:
            self._question(agent)

    def _question(self, agent: int) -> None:
        when = self._open.of(agent)
        now = when == self._when
        told = to_list(self.broadcast) if now else self._open.told(when[0])
        last = np.asarray(self._credited[agent])
        self._send("question", self.agents[agent], when, [*told, last])

    @in_double_precision
    def _take(self, letter: Letter, now: float) -> None:
        one = letter.identity
        agent, when = self._number[one.sender], (one.round, one.phase)
        if one.kind == "ask":
            self._asked_by(agent, when, now)
        elif one.kind == "ready":
            self._is_written(agent, when, now)
        elif one.kind == "fetch":
            # Who has no question may ask for none: nothing is kept of a round 0.
            waits = when == self._next(agent) != NOTHING
            if waits and self._may_fetch(one.sender, now):
                self._send_whole(agent)
        elif one.kind == "done":
            self._confirmed |= {agent} if self.over else set()
            self.patience.came((one.sender, "answer"), now)
        elif one.kind in ("answer", "pass"):
            self._answer(agent, letter, now)
            self.patience.came((one.sender, "answer"), now)
            self._arrived(one.sender, now)
            self._fetch_some(now)
            self._go_on(now)
        else:
            raise LetterRefused(f"the coordinator gets no letter of kind {one.kind!r}")

    def _asked_by(self, agent: int, answered: tuple[int, int], now: float) -> None:
        """An agent says what it answered last, and asks what is next."""
        asked = self._next(agent)
        if asked == answered != NOTHING:
            self._is_written(agent, answered, now)
        elif asked != NOTHING:
            self._send("ready", self.agents[agent], asked)

    def _is_written(self, agent: int, when: tuple[int, int], now: float) -> None:
        """An answer is ready and not here: fetch it, now or when there is room."""
        waited_for = when == self._open.of(agent) != NOTHING
        if waited_for and self.agents[agent] not in self._fetching:
            self._written[agent] = None
            self._fetch_some(now)

    def _fetch_some(self, now: float) -> None:
        """Fetch answers, no more at a time than the window holds."""
        if self.over:
            return
        size = max(self._work.exchanges[self._when[1]].letter.bytes, 1)
        while self._written and len(self._fetching) < max(1, WINDOW // size):
            agent = next(iter(self._written))
            del self._written[agent]
            self._fetch(self.agents[agent], self._open.of(agent), now)

    def _require_awaited(self, agent: int, letter: Letter) -> tuple[int, int]:
        """The exchange that a letter answers; refused if it is not waited for."""
        when = letter.identity.round, letter.identity.phase
        if when != self._open.of(agent) or when == NOTHING:
            kind = Repeated if when <= self._when else LetterRefused
            raise kind("an answer that is not waited for")
        return when

    def _answer(self, agent: int, letter: Letter, now: float) -> None:
        when = self._require_awaited(agent, letter)
        phase = when[1]
        if letter.identity.kind == "pass":
            if not self.terms.own_draws:
                raise LetterRefused("agents do not choose their rounds in this run")
        else:
            self._work.exchanges[phase].letter.check(letter.arrays)
            require_bounded(letter.arrays, self.terms.most_norm)
            self._tally.add(agent, letter.arrays, self._freshness(when[0]))
            self._counted.add(agent)
            if self._work.keeps(phase):
                self._credited[agent] = when[0]
        self._count_in(agent)

    def _freshness(self, asked: int) -> float:
        """What a letter counts for that answers the question of this round."""
        return 1.0

    def _count_in(self, agent: int) -> None:
        """Nothing is waited for from this agent any more."""
        self._heard += 1
        self._open.close(agent)
        self._waiting.discard(agent)
        self._written.pop(agent, None)

    def _go_on(self, now: float) -> None:
        if self.over or self._heard < min(self.terms.least_letters, len(self._members)):
            return
        limit = self.terms.deadline
        if self._enough() or (limit is not None and now - self._since >= limit):
            self._close(now)
            self._begin(now)

    def _enough(self) -> bool:
        """Whether the exchange may end before its deadline."""
        return not self._waiting

    def _close(self, now: float) -> None:
        """Join what came, and move to the next exchange."""
        self._keep_or_drop_late()
        few = len(self._counted) < self._work.algorithm.joining.least(self._tally)
        silent = few and self._work.algorithm.averages == "active"
        keeps, rule = self._work.keeps(self._when[1]), self._draws.rule(*self._when)
        self._move_on(None if silent else self._tally.close(keeps, rule))

    def _move_on(self, joint: list[np.ndarray] | None) -> None:
        """Combine, move to the next exchange, and write that down.

        Without a joint letter the round ends and changes nothing.
        """
        number, phase = self._when
        work, silent = self._work, joint is None
        if joint is not None:
            key = self._draws.noise(number, phase, joint)
            letter = work.exchanges[phase].letter.in_types(joint)
            self.state, self.broadcast = work.combine(
                phase,
                key,
                self.state,
                letter,
                number,
                len(self._counted),
                self._tally.fresh,
            )
        if silent or phase == work.phases - 1:
            who = [] if silent else sorted(self._counted)
            self.desk.ended(number, [self.agents[i] for i in who])
            self._when = (number + 1, 0)
            about = number + 1, len(self.agents), self._draws
            self._members = self.terms.members(*about)
        else:
            self._when = (number, phase + 1)
            self._members = sorted(self._counted)
        self._save()

    def _keep_or_drop_late(self) -> None:
        """Questions that stay open keep their broadcast, to be put again."""
        if self.terms.late == "drop" or self._work.phases > 1:
            self._open.close_all()
        else:
            self._open.keep_open(self._when[0], to_list(self.broadcast))

    def _ask(self, peer: str, now: float) -> None:
        agent = self._number[peer]
        if self.over:
            self._send("ready", peer, self._when)
        elif self._open.of(agent) == NOTHING:
            self.patience.forget((peer, "answer"))  # its round went on without it
        elif agent not in self._written and peer not in self._fetching:
            self._send("ask", peer, self._open.of(agent))
        self._fetch_some(now)  # others need not wait for who does not send

    @in_double_precision
    def tick(self, now: float) -> None:
        """Also ends a round whose deadline has passed."""
        super().tick(now)
        if self.over:
            self._lingered = now - self._since >= self.terms.linger
        self._go_on(now)

    def _save(self) -> None:
        members = np.asarray(self._members, np.int64)
        more, own = self._own_parts()
        self._keep(
            {"when": self._when} | more,
            agents=[self._open.asked, self._credited, members],
            state=to_list(self.state),
            told=to_list(self.broadcast),
            kept=self._tally.kept,
            own=own,
        )
        self._open.tidy()

    def _own_parts(self) -> tuple[dict[str, Any], list[np.ndarray]]:
        """Words and arrays that a special kind of coordinator keeps besides."""
        return {}, []

    def _restore(self, words: dict[str, Any], groups: dict[str, Any]) -> None:
        asked, credited, members = groups["agents"]
        self._open.restore(asked, words.get("old", ()), groups.get("old", ()))
        self._credited = credited.copy()
        self._members, self._when = members.tolist(), tuple(words["when"])
        work, phase = self._work, self._when[1]
        self.state = work.state.to_tree(groups["state"])
        form = work.last_told if self.over else work.exchanges[phase].told
        self.broadcast = form.to_tree(groups["told"])
        self._tally.kept = groups["kept"]
