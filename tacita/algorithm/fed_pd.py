"""FedPD: a primal-dual method, every agent with a multiplier of its own.

X. Zhang, M. Hong, S. Dhople, W. Yin, Y. Liu, "FedPD: A Federated Learning Framework
with Adaptivity to Non-IID Data", IEEE Transactions on Signal Processing 2021,
Algorithm 1 with (stochastic) gradient steps as its oracle.

    agent i       Ne times  x_i <- x_i - gamma (g_i(x_i) + lambda_i + (x_i - c)/eta)
                  lambda_i <- lambda_i + (x_i - c)/eta
    coordinator   c = (1/N) sum_i (x_i + eta lambda_i)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import jax.numpy as jnp
from jax import Array

from tacita import check
from tacita.algorithm.base import Gradients, Number, ServerAlgorithm, descend
from tacita.algorithm.defaults import proximal_step_size, splitting_rho
from tacita.problem.oracles import AgentOracle, Full, Oracle
from tacita.trees import count, frozen, number

if TYPE_CHECKING:
    from tacita.problem.problem import Problem


class State(NamedTuple):
    """One agent's memory."""

    x: Array  # x_i, its model
    lam: Array  # lambda_i, its multiplier


def _step_size(problem: Problem, algorithm: Any) -> Any:
    """2 / (L_i + mu_i + 2/eta) of every agent."""
    return proximal_step_size(problem, algorithm.eta)


@frozen
class FedPD(ServerAlgorithm):
    """Local gradient steps on the augmented Lagrangian.

    Attributes:
        eta: The pull to the shared model is 1/eta. None lets theory choose
            1/sqrt(mu L), or 1/L where mu is not positive: with exact local answers
            FedPD is Douglas-Rachford splitting, of which that is the best step.
        step_size: gamma, one number or one per agent; None lets theory choose, for
            every agent, 2 / (L_i + mu_i + 2/eta).
        local_steps: Ne, gradient steps in a round; the proof needs enough of them.
        oracle: How agents compute gradients.
    """

    # The mean of x_i + eta lambda_i needs one eta.
    eta: Number = number(check.positive, theory=splitting_rho, common=True)
    step_size: Number = number(check.positive, theory=_step_size)
    local_steps: int = count(5)
    oracle: Oracle = Full()

    partial: ClassVar[bool] = False
    purpose: ClassVar[str] = "the exact optimum by local steps, everybody active"
    source: ClassVar[str] = "X. Zhang et al., FedPD, IEEE TSP 2021, Algorithm 1"

    def gradients(self) -> Gradients:
        """One a local step."""
        return (self.local_steps,)

    def init(self, w: Array) -> tuple[State, Array]:
        """x_i = w, lambda_i = 0."""
        return State(w, jnp.zeros_like(w)), w

    def local(
        self, key: Array, oracle: AgentOracle, state: State, inbox: Array
    ) -> tuple[State, Array]:
        """Training from x_i, then the multiplier."""
        c, lam = inbox, state.lam

        def update(x: Array, g: Array) -> Array:
            # x_i <- x_i - gamma (g_i(x_i) + lambda_i + (x_i - c)/eta)
            return x - self.step_size * (g + lam + (x - c) / self.eta)

        x = descend(key, oracle, state.x, self.local_steps, update)
        # lambda_i <- lambda_i + (x_i - c)/eta
        lam = lam + (x - c) / self.eta
        return State(x, lam), x + self.eta * lam
