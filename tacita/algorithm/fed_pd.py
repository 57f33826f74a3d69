"""FedPD: a primal-dual method, every agent with a multiplier of its own.

X. Zhang, M. Hong, S. Dhople, W. Yin, Y. Liu, "FedPD: A Federated Learning Framework
with Adaptivity to Non-IID Data", IEEE Transactions on Signal Processing 2021,
Algorithm 1 with (stochastic) gradient steps as its oracle.

    agent i       Ne times  x_i <- x_i - gamma (g_i(x_i) + lambda_i + (x_i - c)/eta)
                  lambda_i <- lambda_i + (x_i - c)/eta
    coordinator   c = (1/N) sum_i (x_i + eta lambda_i)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

import jax.numpy as jnp
from jax import Array

from tacita import check
from tacita.algorithm.base import Gradients, Number, ServerAlgorithm, descend
from tacita.algorithm.defaults import proximal_step_size, require_common, splitting_rho
from tacita.problem.oracles import AgentOracle, Full, Oracle
from tacita.trees import frozen, replace, static

if TYPE_CHECKING:
    from tacita.problem.problem import Problem


class State(NamedTuple):
    """One agent's memory."""

    x: Array  # x_i, its model
    lam: Array  # lambda_i, its multiplier


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

    eta: Number = None
    step_size: Number = None
    local_steps: int = static(default=5)
    oracle: Oracle = Full()

    partial: ClassVar[bool] = False
    source: ClassVar[str] = "X. Zhang et al., FedPD, IEEE TSP 2021, Algorithm 1"

    def __post_init__(self) -> None:
        check.positive(eta=self.eta)
        check.positive(step_size=self.step_size)
        check.count(local_steps=self.local_steps)

    def refuse_problem(self, problem: Problem) -> None:
        """The mean of x_i + eta lambda_i needs one eta."""
        super().refuse_problem(problem)
        require_common(self, "eta")

    def resolve(self, problem: Problem) -> Self:
        """Set eta and the step size by theory where they were left out."""
        eta, step_size = self.eta, self.step_size
        if eta is None:
            eta = splitting_rho(problem)
        if step_size is None:
            step_size = proximal_step_size(problem, eta)
        ready = replace(self, eta=eta, step_size=step_size)
        return ready

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

    def model(self, state: State) -> Array:
        """x_i, its model after local training."""
        return state.x
