"""The coordinator of an asynchronous run: it waits for nobody.

Everybody has one question at a time. A round ends with the first letters that come,
whichever question they answer; who was heard is asked anew. Who was heard when is all
that the run's numbers depend on besides the rows; it is noted by round, and
`tacita.Arrivals` plays it again in a simulation.
"""

from __future__ import annotations

import numpy as np

from tacita.federation.server_coordinator import ServerCoordinator
from tacita.federation.shapes import to_list


class LateCoordinator(ServerCoordinator):
    """As `ServerCoordinator`, whose arguments it takes; letters may be late."""

    def _enough(self) -> bool:
        """So many letters end a round, whoever wrote them."""
        return len(self._counted) >= self.terms.letters(len(self.agents))

    def _freshness(self, asked: int) -> float:
        """As the algorithm counts letters that are so many rounds late."""
        late = np.asarray(self.round - asked, np.int32)
        return float(self._work.algorithm.freshness(late))

    def _keep_or_drop_late(self) -> None:
        """Questions stay open, with their broadcasts, as long as the bound allows."""
        oldest = self.terms.oldest(self.round + 1)
        self._open.keep_open(self.round, to_list(self.broadcast), oldest)
