"""What a coordinator has asked and not heard yet: a few numbers per agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tacita.federation.receipts import When
from tacita.federation.shapes import by_round

#: No question, or no answer yet.
NOTHING = (0, 0)
#: Earlier rounds whose late answers are still waited for; memory stays O(d).
_MOST_OLD = 8


class OpenQuestions:
    """The question that every agent has not answered yet, and what it was told.

    Args:
        agents: How many there are.
    """

    def __init__(self, agents: int) -> None:
        self._asked = np.zeros((agents, 2), np.int64)
        #: Broadcasts of earlier rounds that some agent has yet to answer.
        self._old: dict[int, list[np.ndarray]] = {}

    def of(self, agent: int) -> When:
        """The question that an agent has not answered yet, or `NOTHING`."""
        number, phase = self._asked[agent].tolist()
        return number, phase

    def put(self, agent: int, when: When) -> None:
        """An agent is asked this."""
        self._asked[agent] = when

    def close(self, agent: int) -> None:
        """Nothing is waited for from this agent any more."""
        self._asked[agent] = NOTHING

    def close_all(self) -> None:
        """Whatever comes now is in no sum any more."""
        self._asked[:] = 0

    def told(self, number: int) -> list[np.ndarray]:
        """What was told in an earlier round whose question is open."""
        return self._old[number]

    def keep_open(
        self, number: int, told: list[np.ndarray], oldest: int | None = None
    ) -> None:
        """The round goes on; its open questions keep their broadcast.

        All since round `oldest`; by default those of the last few rounds that have any.
        """
        self._old[number] = told
        open_rounds = sorted({*self._asked[:, 0].tolist()} - {0})
        if oldest is None:
            open_rounds = open_rounds[-_MOST_OLD:]
        else:
            open_rounds = [r for r in open_rounds if r >= oldest]
        self._old = {r: v for r, v in self._old.items() if r in open_rounds}
        self._asked[~np.isin(self._asked[:, 0], open_rounds)] = 0

    @property
    def asked(self) -> np.ndarray:
        """Round and phase by agent, for a checkpoint."""
        return self._asked

    @property
    def old(self) -> tuple[list[int], list[np.ndarray]]:
        """Rounds and broadcasts that are kept, for a checkpoint."""
        arrays = [array for told in self._old.values() for array in told]
        return list(self._old), arrays

    def restore(self, asked: np.ndarray, rounds: Sequence[int], old: Any) -> None:
        """As it was when the checkpoint was written."""
        self._asked, self._old = asked.copy(), by_round(rounds, old)
