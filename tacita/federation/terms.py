"""How a run goes: rounds, deadlines, late letters, limits."""

from __future__ import annotations

from dataclasses import MISSING
from typing import TYPE_CHECKING

import numpy as np

from tacita import check
from tacita.participation import Schedule
from tacita.trees import checked, count, flag, number, one_of, ruled

if TYPE_CHECKING:
    from tacita.federation.draws import Draws


@checked
class Terms:
    """How a run goes.

    Attributes:
        rounds: Number of rounds.
        schedule: Whom the coordinator asks in a round.
        own_draws: Ask everybody; agents draw themselves whether they answer.
        deadline: Seconds after which a round goes on without those who are late; None
            waits for everybody.
        least_letters: Letters without which no round ends.
        late: "drop" a late letter, or "keep" it for the round in which it comes.
        asynchronous: Wait for nobody: everybody is asked, a round ends with the first
            letters that come, as many as take part in it, and the others stay at work
            on the question that they have.
        most_staleness: Of an asynchronous run: whose letter would answer a question
            that is more rounds old is asked anew. None for no bound.
        keep_letters: Whether the coordinator keeps the letters of the last round by
            agent, to compare them: a graph is learnt from them.
        most_norm: Largest Euclidean norm of an accepted letter; None for any.
        linger: Seconds to stay for those who have not confirmed the end, or on a graph
            are behind.
    """

    rounds: int = ruled(MISSING, check.count, words="a whole number >= 1")
    schedule: Schedule = Schedule()
    own_draws: bool = flag(False)
    deadline: float | None = number(check.positive)
    least_letters: int = count(1)
    late: str = one_of("drop", "keep")
    asynchronous: bool = flag(False)
    most_staleness: int | None = count(None, at_least=0)
    keep_letters: bool = flag(False)
    most_norm: float | None = number(check.positive)
    linger: float = number(check.not_negative, 30.0)

    def __post_init__(self) -> None:
        if self.most_staleness is not None and not self.asynchronous:
            check.refuse("most_staleness goes with asynchronous = true; add it")
        if self.own_draws and self.schedule.kind == "cohort":
            check.refuse(
                "with own_draws = true nobody counts who answers; use a probability, "
                f"not participation = {self.schedule.size} agents, or leave own_draws "
                "out"
            )
        if not self.asynchronous:
            return
        if self.schedule.kind == "bernoulli":
            check.refuse(
                "a round of an asynchronous run takes the first K letters that come; "
                "use participation = K, a whole number of agents"
            )
        unusual = {
            "own_draws": self.own_draws,
            "deadline": self.deadline is not None,
            "least_letters": self.least_letters != 1,
            "late": self.late != "drop",
            "keep_letters": self.keep_letters,
        }
        for name, given in unusual.items():
            if given:
                check.refuse(
                    f"{name} does not go with asynchronous = true, which waits for "
                    f"nobody and takes letters whenever they come; leave {name} out"
                )

    def letters(self, agents: int) -> int:
        """With how many letters a round of an asynchronous run ends."""
        return self.schedule.size if self.schedule.kind == "cohort" else agents

    def oldest(self, number: int) -> int:
        """The oldest question that a letter of an asynchronous round may answer."""
        return 0 if self.most_staleness is None else number - self.most_staleness

    def members(self, number: int, agents: int, draws: Draws) -> list[int]:
        """Whom the coordinator asks in round `number`, out of so many agents."""
        if number > self.rounds:
            return []
        if self.schedule.kind == "all" or self.own_draws or self.asynchronous:
            return list(range(agents))
        key = draws.schedule(number)
        if self.schedule.kind == "cohort":
            return np.asarray(self.schedule.cohort(key, agents)).tolist()
        return np.flatnonzero(np.asarray(self.schedule.mask(key, agents))).tolist()
