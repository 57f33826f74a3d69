"""FedSplit: Peaceman-Rachford splitting, local problems solved afresh in each round.

R. Pathak, M. Wainwright, "FedSplit: An algorithmic framework for fast federated
optimization", NeurIPS 2020, Procedure 2.

    coordinator   y = (1/N) sum_i z_i
    agent i       x_i ~ argmin_w f_i(w) + ||w - (2y - z_i)||^2 / (2 rho),  from 2y - z_i
                  z_i <- z_i + 2 (x_i - y)

It differs from Fed-PLT in where local training starts. With exact local answers both
are the same; with inexact ones FedSplit stops at a distance from the optimum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from jax import Array

from tacita import check
from tacita.algorithm.base import (
    Averages,
    Gradients,
    Number,
    ServerAlgorithm,
)
from tacita.algorithm.defaults import splitting_rho
from tacita.algorithm.joining import NOISE_WEARS_OFF, Around, Joining, Rules
from tacita.algorithm.solvers import GradientDescent, steady
from tacita.problem.oracles import AgentOracle, Full, Oracle
from tacita.trees import frozen, number

if TYPE_CHECKING:
    from tacita.problem.problem import Problem


class State(NamedTuple):
    """One agent's memory."""

    x: Array  # x_i, its model
    z: Array  # z_i, what it last sent


@frozen
class FedSplit(ServerAlgorithm):
    """Approximate proximal steps without a warm start.

    Attributes:
        rho: Penalty of the proximal term, common to all agents; None lets theory
            choose 1/sqrt(mu L), or 1/L where mu is not positive.
        solver: How agents solve their problem, from `tacita.algorithm.solvers`;
            gradient descent by default, with steps of 1/(L_i + 1/rho) where they are
            left out: longer ones swing, and z_i with them. `ExactProx()` converges to
            the optimum.
        oracle: How agents compute gradients.
    """

    rho: Number = number(check.positive, theory=splitting_rho, common=True)
    solver: Any = GradientDescent()
    oracle: Oracle = Full()

    partial: ClassVar[bool] = False
    averages: ClassVar[Averages] = Averages.ALL
    joining: ClassVar[Joining] = Joining(Around.BROADCAST, Rules.ANY, NOISE_WEARS_OFF)
    purpose: ClassVar[str] = "the exact optimum, if local problems are solved so"
    source: ClassVar[str] = "R. Pathak and M. Wainwright, FedSplit, NeurIPS 2020"

    def proximal(self, problem: Problem) -> tuple[Any, ...]:
        """With its own rho."""
        return (self.rho,)

    def solver_at(self, problem: Problem, rho: Any, shift: float = 0.0) -> Any:
        """With gradient steps that do not swing."""
        return steady(self.solver, problem, rho, shift)

    def gradients(self) -> Gradients:
        """The solver's."""
        return self.solver.gradients()

    def init(self, w: Array) -> tuple[State, Array]:
        """x_i = z_i = w."""
        return State(w, w), w

    def local(
        self, key: Array, oracle: AgentOracle, state: State, inbox: Array
    ) -> tuple[State, Array]:
        """A proximal step that starts from its own centre."""
        v = 2 * inbox - state.z
        x = self.solver.solve(key, oracle, v, v, self.rho)
        # z_i <- z_i + 2 (x_i - y)
        z = state.z + 2 * (x - inbox)
        return State(x, z), z
