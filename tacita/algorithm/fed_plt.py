"""Fed-PLT: Peaceman-Rachford splitting with local training instead of exact answers.

N. Bastianello, C. Liu, K. H. Johansson, "Enhancing Privacy in Federated Learning
through Local Training", Algorithm 1. Solves min_w sum_i f_i(w) + h(w); agents may stay
silent, and train from their own last model (the warm start makes the answer exact).

    coordinator   y = prox_{(rho/N) h}( (1/N) sum_i z_i )
    agent i       x_i ~ argmin_w f_i(w) + ||w - (2y - z_i)||^2 / (2 rho),  from x_i
                  z_i <- z_i + 2 (x_i - y)

At the fixed point y = x_i = x* and, without h, z_i = x* - rho grad f_i(x*).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from jax import Array

from tacita import check
from tacita.algorithm.base import (
    Averages,
    Gradients,
    Number,
    Round,
    ServerAlgorithm,
)
from tacita.algorithm.defaults import splitting_rho
from tacita.algorithm.joining import NOISE_WEARS_OFF, Around, Joining, Rules
from tacita.algorithm.solvers import GradientDescent
from tacita.problem.oracles import AgentOracle, Full, Oracle
from tacita.theory import fed_plt as theory
from tacita.trees import frozen, number, replace

if TYPE_CHECKING:
    from tacita.problem.problem import Problem

#: Cost of an exchange in local gradients, for the plan; the paper's middle setting.
_EXCHANGE_COST = 10


class State(NamedTuple):
    """One agent's memory."""

    x: Array  # x_i, its model
    z: Array  # z_i, what it last sent


@frozen
class FedPLT(ServerAlgorithm):
    """Federated private local training.

    Attributes:
        rho: Penalty of the proximal term, common to all agents. None lets theory
            choose: together with the local steps when `solver` is left out too, else
            1/sqrt(mu L), the best one for exact local answers, or 1/L where mu is
            not positive.
        solver: How agents train locally, from `tacita.algorithm.solvers`; gradient
            descent by default.
        oracle: How agents compute gradients.
    """

    rho: Number = number(check.positive, theory=splitting_rho, common=True)
    solver: Any = None
    oracle: Oracle = Full()

    averages: ClassVar[Averages] = Averages.ALL
    joining: ClassVar[Joining] = Joining(Around.BROADCAST, Rules.ANY, NOISE_WEARS_OFF)
    composite: ClassVar[bool] = True
    purpose: ClassVar[str] = "the exact optimum, few letters, silent agents, h"
    source: ClassVar[str] = (
        "N. Bastianello et al., Enhancing Privacy in Federated Learning through Local "
        "Training, Algorithm 1"
    )

    def resolve(self, problem: Problem) -> Self:
        """Set rho, local steps and step sizes by theory where they were left out."""
        return super(FedPLT, self._planned(problem)).resolve(problem)

    def proximal(self, problem: Problem) -> tuple[Any, ...]:
        """With its own rho."""
        return (self.rho,)

    def _planned(self, problem: Problem) -> Self:
        """With a solver; its local steps go with rho where theory chooses both."""
        if self.solver is not None:
            return self
        low, high = problem.moduli.smallest, problem.moduli.largest
        if self.rho is not None or low <= 0:
            return replace(self, solver=GradientDescent())
        best = theory.plan(low, high, t_grad=1, t_comm=_EXCHANGE_COST)
        solver = GradientDescent(local_steps=best.local_steps)
        return replace(self, rho=best.rho, solver=solver)

    def gradients(self) -> Gradients:
        """The solver's."""
        return (self.solver or GradientDescent()).gradients()

    def init(self, w: Array) -> tuple[State, Array]:
        """x_i = z_i = w."""
        return State(w, w), w

    def combine(
        self, key: Array, kept: Any, mean: Array, now: Round
    ) -> tuple[Any, Array]:
        """Lemma 6: y = prox_{(rho/N) h}( (1/N) sum_i z_i ), sparse where h is."""
        return kept, now.prox(mean, self.rho / now.n_agents)

    def local(
        self, key: Array, oracle: AgentOracle, state: State, inbox: Array
    ) -> tuple[State, Array]:
        """Local training around the reflected point, then the update of z_i."""
        y = inbox
        # x_i ~ prox_{rho f_i}(2y - z_i), from x_i
        x = self.solver.solve(key, oracle, state.x, 2 * y - state.z, self.rho)
        # z_i <- z_i + 2 (x_i - y)
        z = state.z + 2 * (x - y)
        return State(x, z), z
