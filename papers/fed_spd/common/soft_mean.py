"""An l1 weight for methods that know none: the coordinator shrinks the mean letter."""

from __future__ import annotations

from typing import Any

import jax

from tacita import check
from tacita.aggregation import Heard, Mean
from tacita.problem.prox import L1
from tacita.trees import frozen, needed


@frozen
class SoftMean:
    """prox_{threshold ||.||_1} of the mean letter, for letters that are models.

    A proximal step a round, after Q gradient steps: threshold = step Q weight. What the
    coordinator does to letters that it has seen costs no privacy.
    """

    threshold: float = needed(check.not_negative)

    @property
    def additive(self) -> bool:
        """No: it is not linear."""
        return False

    @property
    def least(self) -> int:
        """One letter is a mean."""
        return 1

    @property
    def bound(self) -> float | None:
        """As of the mean."""
        return Mean().bound

    def bears(self, agents: int) -> int:
        """None, as the mean."""
        return 0

    def kappa(self, agents: int, liars: int) -> float:
        """As of the mean."""
        return Mean().kappa(agents, liars)

    def check(self, agents: int) -> None:
        """Serves any number."""

    def __call__(self, heard: Heard) -> Any:
        """The mean, every coordinate nearer to zero by the threshold."""
        shrink = L1(1.0).prox
        return jax.tree.map(lambda v: shrink(v, self.threshold), Mean()(heard))
