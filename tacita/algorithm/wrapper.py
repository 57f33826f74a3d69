"""An algorithm around another one: what both kinds of wrapper say of the inner one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from tacita.algorithm.base import ServerAlgorithm
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
    def averages(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The inner algorithm's."""
        return self.algorithm.averages

    def resolve(self, problem: Problem) -> Self:
        """Let theory set the inner algorithm's numbers."""
        return replace(self, algorithm=self.algorithm.resolve(problem))
