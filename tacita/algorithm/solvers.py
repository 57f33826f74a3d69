"""Local solvers: how an agent brings down f_i(w) + ||w - v||^2 / (2 rho) from w.

A solver is a record of its own, a field of the algorithms that leave the choice open.
Its numbers may differ between agents (arrays with one entry per agent), and with
`Mixed` so may the methods themselves: Remark 1 of the Fed-PLT paper. Stochastic
gradients are `GradientDescent` with a `Minibatch` oracle, private ones with `Noisy`;
`SVRG` and `SAGA` take their variance away.

    solve(key, oracle, w, v, rho) -> w      one agent's local training in a round
    resolve(problem, rho, shift) -> solver  numbers left out are set by theory
    check(problem, oracle)                  refuse what the solver cannot work with
    gradients()                             how often it asks the oracle in a round

`shift` is for algorithms that train on f_i(w) - (shift/2) ||w||^2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.algorithm.base import Gradients, Number, require_solver
from tacita.algorithm.defaults import curvature_bounds, proximal_step_size
from tacita.algorithm.gradient_steps import check_own_steps, descend
from tacita.algorithm.second_order import (
    ExactProx,
    LocalSolver,
    Newton,
    QuasiNewton,
)
from tacita.algorithm.variance_reduced import SAGA, SVRG
from tacita.problem.oracles import AgentOracle, Oracle
from tacita.schedule import rate
from tacita.trees import count, frozen, number, replace

if TYPE_CHECKING:
    from tacita.problem.problem import Problem

__all__ = [
    "SAGA",
    "SVRG",
    "Accelerated",
    "ExactProx",
    "GradientDescent",
    "Mixed",
    "Newton",
    "QuasiNewton",
    "Solver",
]


class Solver(Protocol):
    """What an algorithm asks of a local solver."""

    def check(self, problem: Problem, oracle: Oracle) -> None:
        """Refuse a problem or an oracle that the solver cannot work with."""
        ...

    def gradients(self) -> Gradients:
        """How often it asks the oracle, or in words how else it looks at rows."""
        ...

    def resolve(self, problem: Problem, rho: Any, shift: float = 0.0) -> Any:
        """The same solver with every number that was left out set by theory."""
        ...

    def solve(
        self, key: Array, oracle: AgentOracle, w: Array, v: Array, rho: Any
    ) -> Array:
        """Local training from w on f_i(w) + ||w - v||^2 / (2 rho)."""
        ...


@frozen
class GradientDescent(LocalSolver):
    """Gradient steps; stochastic ones with a `Minibatch` oracle.

    Attributes:
        step_size: gamma, one number or one per agent; None lets theory choose, for
            every agent, 2 / (L_i + mu_i + 2/rho).
        local_steps: Ne, gradient steps in a round.
        own_steps: Steps of each agent where they differ, of these `local_steps`.
    """

    step_size: Number = rate(theory=proximal_step_size)
    local_steps: int = count(5)
    own_steps: Number = number(check.whole)

    def check(self, problem: Problem, oracle: Oracle) -> None:
        """Refuse agents with more steps of their own than there are in a round."""
        check_own_steps(self.own_steps, self.local_steps)

    def solve(
        self, key: Array, oracle: AgentOracle, w: Array, v: Array, rho: Any
    ) -> Array:
        """(10): Ne times w <- w - gamma (g_i(w) + (w - v)/rho)."""

        def update(x: Array, g: Array) -> Array:
            return x - self.step_size * (g + (x - v) / rho)

        return descend(key, oracle, w, self.local_steps, update, self.own_steps)


def steady(solver: Any, problem: Problem, rho: Any, shift: float = 0.0) -> Any:
    """The solver with gradient steps that do not swing, where they were left out.

    The best steps, 2 / (L_i + mu_i + 2/rho), leap over the solution and back. After a
    few of them an answer may lie on the far side: algorithms that go on from it by a
    reflection or a gradient, without a warm start, would leap farther in each round.
    """
    if isinstance(solver, Mixed):
        each = (steady(one, problem, rho, shift) for one in solver.solvers)
        return replace(solver, solvers=tuple(each))
    if not isinstance(solver, GradientDescent) or solver.step_size is not None:
        return solver
    most = curvature_bounds(problem, shift)[1]
    return replace(solver, step_size=1 / (most + 1 / rho))


def _least_curvature(problem: Problem, rho: Any, shift: float) -> Any:
    """mu_i of every agent's f_i."""
    return curvature_bounds(problem, shift)[0]


def _most_curvature(problem: Problem, rho: Any, shift: float) -> Any:
    """L_i of every agent's f_i."""
    return curvature_bounds(problem, shift)[1]


@frozen
class Accelerated(LocalSolver):
    """Nesterov's gradient steps with constant momentum, (12) of the revised paper.

    Attributes:
        local_steps: Ne, gradient steps in a round.
        strong_convexity: mu, one number or one per agent; None takes the problem's.
        smoothness: L, one number or one per agent; None takes the problem's.
    """

    local_steps: int = count(5)
    strong_convexity: Number = number(check.not_negative, theory=_least_curvature)
    smoothness: Number = number(check.positive, theory=_most_curvature)

    def solve(
        self, key: Array, oracle: AgentOracle, w: Array, v: Array, rho: Any
    ) -> Array:
        """(12): u+ = w - r(w)/L', then w = u+ + beta (u+ - u), from u = w."""
        # L' = L + 1/rho and mu' = mu + 1/rho are those of the proximal problem.
        high = self.smoothness + 1 / rho
        low = self.strong_convexity + 1 / rho
        # beta = (sqrt L' - sqrt mu') / (sqrt L' + sqrt mu')
        root = jnp.sqrt(low / high)
        beta = (1 - root) / (1 + root)

        def body(carry: tuple, draw: Any) -> tuple[tuple, None]:
            x, before = carry
            after = x - (oracle(draw, x) + (x - v) / rho) / high
            return (after + beta * (after - before), after), None

        draws = oracle.draws(key, self.local_steps)
        return jax.lax.scan(body, (w, w), draws, length=self.local_steps)[0][0]


@frozen
class Mixed:
    """Agents with different solvers (Remark 1).

    When agents are computed together, every agent computes all the solvers and keeps
    the answer of its own; `mapping="one_by_one"` computes only that one.

    Attributes:
        solvers: The solvers in use.
        group: For every agent, which of them it uses, counted from 0.

    >>> two = Mixed(solvers=(GradientDescent(), Newton()), group=[0, 0, 1])
    """

    solvers: tuple[Any, ...]
    group: Any

    def __post_init__(self) -> None:
        if check.is_number(self.group):
            group = np.asarray(self.group)
            known = (group == np.rint(group)) & (group >= 0)
            known &= group < len(self.solvers)
            if not np.all(known):
                check.refuse(
                    f"expected group whole numbers below {len(self.solvers)}, the "
                    f"number of solvers, got group={group[~known].ravel()[0]}"
                )

    def check(self, problem: Problem, oracle: Oracle) -> None:
        """Refuse what one of the solvers refuses."""
        if not check.is_number(self.group):
            check.refuse(
                f"expected group a list of whole numbers, got group={self.group!r}"
            )
        check.shape((problem.n_agents,), group=self.group)
        for solver in self.solvers:
            require_solver(solvers=solver)
            solver.check(problem, oracle)

    def gradients(self) -> Gradients:
        """Those of the solver that asks most, if all can say."""
        asked = [solver.gradients() for solver in self.solvers]
        words = [one for one in asked if isinstance(one, str)]
        return words[0] if words else max(asked, key=sum)

    def resolve(self, problem: Problem, rho: Any, shift: float = 0.0) -> Self:
        """Set by theory what the solvers left out."""
        solvers = tuple(s.resolve(problem, rho, shift) for s in self.solvers)
        return replace(self, solvers=solvers)

    def solve(
        self, key: Array, oracle: AgentOracle, w: Array, v: Array, rho: Any
    ) -> Array:
        """The agent's own solver."""
        branches = [
            lambda s=solver: s.solve(key, oracle, w, v, rho) for solver in self.solvers
        ]
        return jax.lax.switch(jnp.asarray(self.group, jnp.int32), branches)
