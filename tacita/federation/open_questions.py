"""What a coordinator has asked and not heard yet: a few numbers per agent.

An agent may be at work on an old question, or gone, for any number of rounds, and may
have to be told it again. So broadcasts of earlier rounds lie on the disk, one file for
each that somebody has yet to answer: memory and checkpoints do not grow with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tacita.federation.receipts import When
from tacita.federation.shapes import by_round
from tacita.federation.state_file import StateFile

#: No question, or no answer yet.
NOTHING = (0, 0)
#: Earlier rounds whose late answers are still waited for, where rounds end in time.
_MOST_OLD = 8


class OpenQuestions:
    """The question that every agent has not answered yet, and what it was told.

    Args:
        agents: How many there are.
        shelf: Where broadcasts of earlier rounds are put aside.
    """

    def __init__(self, agents: int, shelf: StateFile) -> None:
        self._asked, self._shelf = np.zeros((agents, 2), np.int64), shelf
        #: Rounds whose broadcasts are on the shelf.
        self._aside: set[int] = set()

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
        return self._shelf.aside(number)

    def keep_open(
        self, number: int, told: list[np.ndarray], oldest: int | None = None
    ) -> None:
        """The round goes on; its open questions keep their broadcast.

        All since round `oldest`; by default those of the last few rounds that have any.
        """
        open_rounds = self._rounds()
        if oldest is None:
            open_rounds = open_rounds[-_MOST_OLD:]
        else:
            open_rounds = [r for r in open_rounds if r >= oldest]
        self._asked[~np.isin(self._asked[:, 0], open_rounds)] = 0
        if number in open_rounds:
            self._put_aside(number, told)

    def tidy(self) -> None:
        """Drop broadcasts that nobody has to answer.

        Called once a checkpoint that does not need them is on the disk.
        """
        for number in self._aside - {*self._rounds()}:
            self._shelf.drop_aside(number)
            self._aside.discard(number)

    def _put_aside(self, number: int, told: list[np.ndarray]) -> None:
        self._shelf.put_aside(number, told)
        self._aside.add(number)

    def _rounds(self) -> list[int]:
        """Rounds whose questions somebody has yet to answer."""
        return sorted({*self._asked[:, 0].tolist()} - {0})

    @property
    def asked(self) -> np.ndarray:
        """Round and phase by agent, for a checkpoint."""
        return self._asked

    def restore(self, asked: np.ndarray, rounds: Sequence[int], old: Any) -> None:
        """As it was when the checkpoint was written.

        Args:
            asked: Round and phase by agent.
            rounds: Of broadcasts in the checkpoint itself, as there once were.
            old: These.
        """
        self._asked, self._aside = asked.copy(), self._shelf.all_aside()
        for number, told in by_round(rounds, old).items():
            self._put_aside(number, told)
