"""How a run with a coordinator goes: rounds, deadlines, late letters, limits."""

from __future__ import annotations

from dataclasses import dataclass

from tacita import check
from tacita.participation import Schedule


@dataclass(frozen=True)
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
        most_norm: Largest Euclidean norm of an accepted letter; None for any.
        linger: Seconds to stay for agents who have not confirmed the end.
    """

    rounds: int
    schedule: Schedule = Schedule()
    own_draws: bool = False
    deadline: float | None = None
    least_letters: int = 1
    late: str = "drop"
    most_norm: float | None = None
    linger: float = 30.0

    def __post_init__(self) -> None:
        check.count(rounds=self.rounds)
        check.count(least_letters=self.least_letters)
        check.one_of(("drop", "keep"), late=self.late)
        if self.deadline is not None:
            check.positive(deadline=self.deadline)
        if self.most_norm is not None:
            check.positive(most_norm=self.most_norm)
