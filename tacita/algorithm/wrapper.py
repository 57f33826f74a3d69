"""An algorithm around another one: what both kinds of wrapper say of the inner one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from tacita import check
from tacita.algorithm.base import Averages, ServerAlgorithm
from tacita.trees import replace

if TYPE_CHECKING:
    from tacita.problem.oracles import Oracle
    from tacita.problem.problem import Problem


class Wrapper(ServerAlgorithm):
    """Asks the inner algorithm for whatever it does not change itself."""

    algorithm: Any

    @property
    def oracle(self) -> Oracle:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The inner algorithm's."""
        return self.algorithm.oracle

    @property
    def weights(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The inner algorithm's."""
        return self.algorithm.weights

    @property
    def averages(self) -> Averages:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The inner algorithm's."""
        return self.algorithm.averages

    @property
    def noise_kind(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The inner algorithm's."""
        return self.algorithm.noise_kind

    def require_one_exchange(self, what: str) -> None:
        """Refuse an inner algorithm without a coordinator, or with several letters."""
        inner = self.algorithm
        if not isinstance(inner, ServerAlgorithm) or len(inner.phases) > 1:
            check.refuse(
                f"{what} needs an algorithm with a coordinator and one exchange a "
                f"round, got {type(inner).__name__}"
            )
        if inner.aggregation is not None:
            check.refuse(
                f"{what} needs single letters, and those of {type(inner).__name__} are "
                f"joined by {type(inner.aggregation).__name__}; leave one of them out"
            )

    def resolve(self, problem: Problem) -> Self:
        """Let theory set the inner algorithm's numbers."""
        return replace(self, algorithm=self.algorithm.resolve(problem))
