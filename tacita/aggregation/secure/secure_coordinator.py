"""The coordinator of a secure sum: from a roster to sums, and back after a failure.

    begin -> keys -> roster -> ready, then for every exchange
    ask -> answers -> (agreed) -> opening -> a sum, or void

The caller says when time is up; the machine says what follows. The set of an exchange
and the sum of its answers are written down before anybody hears of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tacita.aggregation.secure import letters
from tacita.aggregation.secure.letters import Agreed, Keys, Lacking, Opening, Ready
from tacita.aggregation.secure.masks import context_of
from tacita.aggregation.secure.steps import Answer, Machine, Memory, Step, Void
from tacita.aggregation.secure.summation import Summation
from tacita.aggregation.secure.terms import Terms
from tacita.aggregation.secure.window_roster import Roster
from tacita.aggregation.secure.window_setup import WindowSetup
from tacita.check import refuse


class SecureCoordinator(Machine):
    """The coordinator's machine; see `steps` for how it is driven.

    Args:
        terms: Of the run.
        kept: Its files of this run.
    """

    def __init__(self, terms: Terms, kept: Mapping[str, bytes] | None = None) -> None:
        self.terms = terms
        super().__init__(Memory((), kept))
        self._setup = WindowSetup(terms, self._memory)
        self._sum: Summation | None = None

    def _refresh(self) -> None:
        self._setup.refresh()
        if self._sum is not None:
            self._sum.refresh()

    @property
    def written(self) -> tuple[dict[str, bytes]]:
        """Its files, for a caller that keeps them together."""
        return (self._memory.kept,)

    @property
    def roster(self) -> Roster | None:
        """The roster of the present attempt, if it is put together."""
        return self._setup.roster

    @property
    def liars(self) -> tuple[str, ...]:
        """Agents that dealt false shares; they are not invited any more."""
        return self._setup.attempt.liars if self._setup.attempt else ()

    @property
    def stage(self) -> str:
        """What it waits for.

        "begin" or "ask" (the caller), "keys", "ready", "answers", "agreed", "opening".
        """
        if self._sum is not None:
            return self._sum.stage
        if self._setup.attempt is None:
            return "begin"
        if self._setup.is_ready:
            return "ask"
        return "keys" if self.roster is None else "ready"

    @property
    def awaited(self) -> tuple[str, ...]:
        """Agents that have not sent what it waits for."""
        return self._sum.awaited if self._sum else self._setup.awaited

    def serves(self, exchange: int) -> bool:
        """Whether the present roster is ready and serves an exchange."""
        if self.roster is None or not self._setup.is_ready:
            return False
        return exchange in self.roster.exchanges

    def begin(self, start: int, invited: Iterable[str] | None = None) -> Step:
        """Begin a new attempt at a roster.

        Args:
            start: The next exchange; later than all that were asked.
            invited: The agents to begin with; all by default. Liars stay out.
        """
        self._sum = None
        return self._issue(self._setup.begin(start, invited))

    def ask(self, exchange: int, question: bytes) -> Step:
        """Begin an exchange, or go on with it after a crash.

        If the stage is "answers" then, the caller sends the question to all `awaited`.

        Args:
            exchange: Of the run.
            question: SHA-256 of all that is asked, the same of everybody.
        """
        roster = self.roster
        if roster is None or not self.serves(exchange):
            refuse(f"no roster is ready for exchange {exchange}; begin a new attempt")
        place = self.terms.round_and_phase(exchange)
        context = context_of(self.terms.run, roster.digest, *place, question)
        under_way = self._sum
        if under_way is None or under_way.exchange != exchange:
            under_way = Summation(roster, exchange, context, self._memory)
        if under_way.context != context:
            refuse(f"exchange {exchange} is under way with another question")
        self._sum = under_way
        return under_way.again()

    def answer(self, sender: str, exchange: int, answer: Answer) -> Step:
        """Take in an answer."""
        if self._sum is None or self._sum.exchange != exchange:
            refuse(f"{sender!r} answers in exchange {exchange}, which is not under way")
        return self._issue(self._ended(self._sum.answer(sender, answer)))

    def heard(self, sender: str, kind: str, content: bytes) -> Step:
        """What to do about a letter of the protocol; refused if it breaks the rules."""
        return self._issue(self._act(sender, kind, content))

    def _act(self, sender: str, kind: str, content: bytes) -> Step:
        letter = letters.decode(kind, content, self.terms)
        if sender not in self.terms.signing:
            refuse(f"{sender!r} is no agent of this run")
        if isinstance(letter, Keys):
            return self._setup.keys(sender, letter)
        if isinstance(letter, Ready):
            return self._setup.ready(sender, letter)
        if isinstance(letter, Lacking):
            return self._setup.lacking(sender, letter)
        if not isinstance(letter, Agreed | Opening):
            refuse(f"{sender!r} may not send a {kind} letter to the coordinator")
        if self._sum is None:
            return Step()  # it comes after the end, as some always do
        if isinstance(letter, Agreed):
            return self._sum.agreed(sender, letter)
        return self._ended(self._sum.opening(sender, letter))

    def time_up(self) -> Step:
        """Go on without those who are awaited, where enough are left."""
        if self._sum is None:
            return self._issue(self._setup.time_up())
        return self._issue(self._ended(self._sum.time_up()))

    def again(self) -> Step:
        """Ask once more for what is awaited; questions are the caller's to repeat."""
        return self._issue(self._sum.again() if self._sum else self._setup.again())

    def give_up(self) -> Step:
        """Leave the exchange without a sum; what agents spent on it is spent."""
        if self._sum is None:
            return Step()
        missing = ", ".join(self._sum.awaited)
        reason = f"no {self._sum.stage} letter came from {missing}"
        return self._issue(self._ended(Step(outcome=Void(self._sum.exchange, reason))))

    def _ended(self, step: Step) -> Step:
        """An exchange that has an outcome is over; liars are written down."""
        if step.outcome is None:
            return step
        self._sum = None
        if not isinstance(step.outcome, Void):
            return step
        return replace(step, writes=self._setup.without(step.outcome.liars))
