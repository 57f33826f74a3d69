"""LED: local exact diffusion, here with a coordinator as the network.

S. Alghunaim, "Local Exact-Diffusion for Decentralized Optimization and Learning", IEEE
Transactions on Automatic Control 2024, for the complete network W = (1/N) 1 1^T.

    agent i       f = x, then Ne times  f <- f - alpha g_i(f) - beta y_i
    coordinator   x = (1/N) sum_i f_i
    agent i       y_i <- y_i + f_i - x,  on receiving x, at the start of its next round
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import jax.numpy as jnp
from jax import Array

from tacita import check
from tacita.algorithm.base import Gradients, Number, ServerAlgorithm, descend
from tacita.problem.oracles import AgentOracle, Full, Oracle
from tacita.theory import descent
from tacita.trees import count, frozen, number

if TYPE_CHECKING:
    from tacita.problem.problem import Problem


class State(NamedTuple):
    """One agent's memory."""

    f: Array  # f_i, the model after its last local steps
    y: Array  # y_i, its correction
    trained: Array  # 1 once f_i was sent, 0 before the first round


def _beta(problem: Problem, algorithm: Any) -> float:
    """1/Ne."""
    return 1 / algorithm.local_steps


@frozen
class LED(ServerAlgorithm):
    """Local gradient steps, corrected by how far the agent ended from the mean.

    Attributes:
        step_size: alpha, one number for all; None lets theory choose 1/L.
        beta: Weight of the correction in each step; None chooses 1/Ne.
        local_steps: Ne, gradient steps in a round.
        oracle: How agents compute gradients.
    """

    # One agent's own step would weigh it more in the optimum.
    step_size: Number = number(
        check.positive, theory=descent.safe_step_size, common=True
    )
    beta: Number = number(check.positive, theory=_beta, common=True)
    local_steps: int = count(5)
    oracle: Oracle = Full()

    partial: ClassVar[bool] = False
    purpose: ClassVar[str] = "the exact optimum by corrected local steps"
    source: ClassVar[str] = "S. Alghunaim, Local Exact-Diffusion, IEEE TAC 2024"

    def gradients(self) -> Gradients:
        """One a local step."""
        return (self.local_steps,)

    def init(self, w: Array) -> tuple[State, Array]:
        """Start from w without a correction."""
        return State(w, jnp.zeros_like(w), jnp.zeros((), w.dtype)), w

    def local(
        self, key: Array, oracle: AgentOracle, state: State, inbox: Array
    ) -> tuple[State, Array]:
        """The correction of the last round, then local steps from x."""
        # y_i <- y_i + f_i - x
        y = state.y + state.trained * (state.f - inbox)

        def update(f: Array, g: Array) -> Array:
            # f <- f - alpha g_i(f) - beta y_i
            return f - self.step_size * g - self.beta * y

        f = descend(key, oracle, inbox, self.local_steps, update)
        return State(f, y, jnp.ones_like(state.trained)), f
