"""FedPD: a primal-dual method, every agent with a multiplier of its own.

X. Zhang, M. Hong, S. Dhople, W. Yin, Y. Liu, "FedPD: A Federated Learning Framework
with Adaptivity to Non-IID Data", IEEE Transactions on Signal Processing 2021,
Algorithm 1 with (stochastic) gradient steps as its oracle.

    agent i       Ne times  x_i <- x_i - gamma (g_i(x_i) + lambda_i + (x_i - c)/eta)
                  lambda_i <- lambda_i + (x_i - c)/eta
    coordinator   c = (1/N) sum_i (x_i + eta lambda_i)

Exchanges may be skipped: with probability p an agent goes on from its own c, which is
x_i + eta lambda_i. A round here is what lies between two exchanges; the coordinator
draws how long that is. It saves letters where agents are alike. Where they are not, the
optimum is no fixed point of a skipped exchange, for lambda_i = -grad f_i(x*) stays in
c, and it ends as far off as agents differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from tacita import check
from tacita.algorithm import random_steps
from tacita.algorithm.base import Gradients, Number, Round, ServerAlgorithm
from tacita.algorithm.defaults import proximal_step_size, splitting_rho
from tacita.algorithm.gradient_steps import descend
from tacita.problem.oracles import AgentOracle, Full, Oracle
from tacita.schedule import rate
from tacita.theory import descent
from tacita.trees import count, frozen, number

if TYPE_CHECKING:
    from tacita.problem.problem import Problem


class State(NamedTuple):
    """One agent's memory."""

    x: Array  # x_i, its model
    lam: Array  # lambda_i, its multiplier


class Told(NamedTuple):
    """What the coordinator tells all agents where exchanges are skipped."""

    c: Array  # the shared model
    turns: Array  # how often agents train until the next exchange


def _step_size(problem: Problem, algorithm: Any) -> Any:
    """2 / (L_i + mu_i + 2/eta) of every agent."""
    seen = descent.as_drawn(problem, algorithm.oracle)
    return proximal_step_size(seen, algorithm.eta)


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
        skip: p, the probability that an exchange is skipped; None skips none.
        oracle: How agents compute gradients.
    """

    # The mean of x_i + eta lambda_i needs one eta.
    eta: Number = number(check.positive, theory=splitting_rho, common=True)
    step_size: Number = rate(theory=_step_size)
    local_steps: int = count(5)
    skip: Number = number(check.below_one, common=True)
    oracle: Oracle = Full()

    partial: ClassVar[bool] = False
    purpose: ClassVar[str] = "the exact optimum by local steps, everybody active"
    source: ClassVar[str] = "X. Zhang et al., FedPD, IEEE TSP 2021, Algorithm 1"

    def gradients(self) -> Gradients:
        """One a local step, if no exchange is skipped."""
        return random_steps.UNBOUNDED if self.skip is not None else (self.local_steps,)

    def drawn_steps(self) -> float | None:
        """Ne / (1 - p), if exchanges are skipped."""
        if self.skip is None:
            return None
        return self.local_steps / (1 - float(self.skip))

    def init(self, w: Array) -> tuple[State, Array]:
        """x_i = w, lambda_i = 0."""
        return State(w, jnp.zeros_like(w)), w

    def combine(
        self, key: Array, kept: Any, mean: Array, now: Round
    ) -> tuple[Any, Array | Told]:
        """The mean, and how long to train until the next exchange."""
        if self.skip is None:
            return kept, mean
        return kept, Told(mean, random_steps.geometric(key, 1 - self.skip))

    def local(
        self, key: Array, oracle: AgentOracle, state: State, inbox: Array | Told
    ) -> tuple[State, Array]:
        """Training from x_i and the multiplier, once or until the next exchange."""
        if not isinstance(inbox, Told):
            return self._train(key, oracle, state, inbox)

        def turn(number: Array, now: tuple[State, Array]) -> tuple[State, Array]:
            # A skipped exchange: the agent's own x_i + eta lambda_i stands for c.
            return self._train(jax.random.fold_in(key, number), oracle, *now)

        turns = random_steps.as_drawn(inbox.turns, 1 - self.skip)
        return jax.lax.fori_loop(0, turns, turn, (state, inbox.c))

    def _train(
        self, key: Array, oracle: AgentOracle, state: State, c: Array
    ) -> tuple[State, Array]:
        lam = state.lam

        def update(x: Array, g: Array) -> Array:
            # x_i <- x_i - gamma (g_i(x_i) + lambda_i + (x_i - c)/eta)
            return x - self.step_size * (g + lam + (x - c) / self.eta)

        x = descend(key, oracle, state.x, self.local_steps, update)
        # lambda_i <- lambda_i + (x_i - c)/eta
        lam = lam + (x - c) / self.eta
        return State(x, lam), x + self.eta * lam

    def shared(self, broadcast: Array | Told) -> Array:
        """c, the shared model."""
        return broadcast.c if isinstance(broadcast, Told) else broadcast
