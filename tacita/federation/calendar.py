"""Who is active in which round of a run on a graph: everybody draws the same."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import keys
from tacita.check import refuse
from tacita.participation import Schedule

#: Rounds times agents of which a calendar is drawn: a byte each, for a moment.
_MOST_TURNS = 10**8


class Calendar:
    """Who is active when, for everybody to know.

    Args:
        schedule: Participation.
        base: Roots of the schedule's randomness, out of the run description.
        n: Number of agents.
        rounds: Number of rounds.
    """

    def __init__(
        self, schedule: Schedule, base: keys.Keys, n: int, rounds: int
    ) -> None:
        self.rounds = rounds
        #: By agent; None where everybody is active in every round.
        self._turns: list[np.ndarray] | None = None
        if schedule.kind != "all":
            if rounds * n > _MOST_TURNS:
                refuse(
                    f"{rounds} rounds of {n} agents are too many to draw who is active "
                    f"in each; choose fewer, at most {_MOST_TURNS} together"
                )
            active = _draw(schedule, base, n, rounds)
            self._turns = [np.flatnonzero(active[:, i]) + 1 for i in range(n)]

    def last(self, agent: int, number: int) -> int:
        """The agent's last active round up to this one; 0 before the first.

        Round 0 counts as active: everybody has a first letter.
        """
        if self._turns is None:
            return number
        place = int(np.searchsorted(self._turns[agent], number, side="right"))
        return int(self._turns[agent][place - 1]) if place else 0

    def next(self, agent: int, number: int) -> int | None:
        """The agent's first active round after this one."""
        if self._turns is None:
            return number + 1 if number < self.rounds else None
        turns = self._turns[agent]
        place = int(np.searchsorted(turns, number, side="right"))
        return int(turns[place]) if place < len(turns) else None


def _draw(schedule: Schedule, base: keys.Keys, n: int, rounds: int) -> np.ndarray:
    def one(number: Array) -> Array:
        key = keys.schedule_key(base, number)
        if schedule.kind == "cohort":
            return jnp.zeros(n, bool).at[schedule.cohort(key, n)].set(True)
        return schedule.mask(key, n)

    return np.asarray(jax.lax.map(one, jnp.arange(1, rounds + 1)))
