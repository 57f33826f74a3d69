"""What a private run has spent so far, for those who watch it while it goes on."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from tacita.aggregation import Aggregation
from tacita.aggregation.secure.summed import summed
from tacita.privacy.spend import largest
from tacita.privacy.statement import counted_turns, delta_of, nearest_scope, row_of
from tacita.problem.problem import Problem

#: Accounting may take this share of a run's time: loss distributions take long.
_SHARE = 0.05
#: What is kept of the last row, beside the curve.
_TERMS = ("observer", "unit", "relation", "delta", "theorem", "assumptions")


class Meter:
    """Reads how much the agent that took part most has spent, now and then.

    Args:
        problem: What is solved.
        algorithm: How.
        told: What the run says of itself: participation, delays, liars.
        aggregation: Its rule.
        looked: Whether numbers that the algorithm has were set from the rows before.
        seeded: Whether its noise comes from a seed that somebody asked for.
    """

    def __init__(
        self,
        problem: Problem,
        algorithm: Any,
        told: Mapping[str, Any],
        aggregation: Aggregation,
        looked: bool,
        seeded: bool,
    ) -> None:
        self._ready = summed(algorithm, aggregation).resolve(problem)
        self._problem, self._told = problem, told
        known = {"aggregation": aggregation, "looked": looked, "seeded": seeded}
        self._known, self._took = known, 0.0
        #: What a page shows: what the last epsilon is about, and all by round.
        self.reading: dict[str, Any] = {"rounds": [], "epsilon": []}

    def read(
        self, rounds: int, turns: np.ndarray, seconds: float, over: bool = False
    ) -> dict[str, Any]:
        """What was spent; of an earlier round where reading would slow the run down.

        Args:
            rounds: Done so far.
            turns: In how many of them every agent was active.
            seconds: What they took.
            over: Whether no round is left: then it is read, whatever it takes.
        """
        seen = self.reading["rounds"]
        late = self._took > _SHARE * seconds and not over
        if seen and (late or rounds <= seen[-1]):
            return self.reading
        begun = time.perf_counter()
        counted = counted_turns(
            self._ready, self._problem, rounds, self._told, turns, **self._known
        )
        scope, delta = nearest_scope(self._ready), delta_of(self._ready, None)
        row = asdict(row_of(largest, self._ready, self._problem, counted, scope, delta))
        self.reading = {
            **{name: row[name] for name in _TERMS},
            "rounds": [*seen, rounds],
            "epsilon": [*self.reading["epsilon"], row["epsilon"]],
        }
        self._took += time.perf_counter() - begun
        return self.reading
