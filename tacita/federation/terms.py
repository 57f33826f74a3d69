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
    keep_letters: bool = flag(False)
    most_norm: float | None = number(check.positive)
    linger: float = number(check.not_negative, 30.0)

    def members(self, number: int, agents: int, draws: Draws) -> list[int]:
        """Whom the coordinator asks in round `number`, out of so many agents."""
        if number > self.rounds:
            return []
        if self.schedule.kind == "all" or self.own_draws:
            return list(range(agents))
        key = draws.schedule(number)
        if self.schedule.kind == "cohort":
            return np.asarray(self.schedule.cohort(key, agents)).tolist()
        return np.flatnonzero(np.asarray(self.schedule.mask(key, agents))).tolist()
