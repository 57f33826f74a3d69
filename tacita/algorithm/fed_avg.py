"""FedAvg: local gradient steps from the shared model, then the mean over the active.

A. Jung, "Federated Learning: From Theory to Practice", Algorithm 9; B. McMahan et al.,
AISTATS 2017. With unequal agents and several local steps its fixed point is not the
optimum: see docs/explanation-algorithms.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

from jax import Array

from tacita import check
from tacita.algorithm.base import Gradients, Number, ServerAlgorithm, gradient_steps
from tacita.problem.oracles import AgentOracle, Full, Oracle
from tacita.theory import descent
from tacita.trees import frozen, replace, static

if TYPE_CHECKING:
    from tacita.problem.problem import Problem


class State(NamedTuple):
    """One agent's memory."""

    w: Array  # w_i, the model after its last local steps


@frozen
class FedAvg(ServerAlgorithm):
    """Local gradient steps, averaged over the active agents.

    Attributes:
        step_size: Of the local steps; None lets theory choose 1 / smoothness.
        local_steps: R, the number of local steps in a round.
        oracle: How agents compute gradients.
        weights: "uniform" mean, or weighted by the agents' number of "samples".
    """

    step_size: Number = None
    local_steps: int = static(default=1)
    oracle: Oracle = Full()
    weights: str = static(default="uniform")

    source: ClassVar[str] = "A. Jung, Federated Learning, Algorithm 9"

    def __post_init__(self) -> None:
        check.positive(step_size=self.step_size)
        check.count(local_steps=self.local_steps)
        check.one_of(("uniform", "samples"), weights=self.weights)

    def resolve(self, problem: Problem) -> Self:
        """Set the step size by theory where the user gave none."""
        if self.step_size is not None:
            return self
        return replace(self, step_size=descent.safe_step_size(problem))

    def gradients(self) -> Gradients:
        """One a local step."""
        return (self.local_steps,)

    def init(self, w: Array) -> tuple[State, Array]:
        """Start from w; the first broadcast is the mean of the starts."""
        return State(w), w

    def local(
        self, key: Array, oracle: AgentOracle, state: State, inbox: Array
    ) -> tuple[State, Array]:
        """w_i <- w, then R times w_i <- w_i - eta g_i(w_i)."""
        w = gradient_steps(key, oracle, inbox, self.step_size, self.local_steps)
        return State(w), w

    def model(self, state: State) -> Array:
        """The model after its last local steps."""
        return state.w
