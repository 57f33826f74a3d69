"""FedRelax: every node solves its own problem, pulled to its neighbours' models.

A. Jung, "Federated Learning: From Theory to Practice", Algorithm 11. It minimises

    sum_i f_i(w_i) + alpha sum_{edges} A_ij ||w_i - w_j||^2

by w_i <- argmin_v f_i(v) + alpha sum_j A_ij ||v - w_j||^2, all nodes at once: a
non-linear Jacobi method. The step is the proximal operator of f_i at the weighted mean
of the neighbours' models, with rho = 2 alpha d_i (172).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.algorithm.base import Edges, Gradients, GraphAlgorithm
from tacita.algorithm.defaults import require_local_answers
from tacita.algorithm.solvers import Solver, exact_prox
from tacita.problem.gtv import penalty as penalties
from tacita.problem.gtv.gtvmin import GTVMin
from tacita.problem.model import ridge
from tacita.problem.oracles import AgentOracle, Full, Oracle
from tacita.trees import frozen, replace, static

if TYPE_CHECKING:
    from tacita.problem.problem import Problem


class State(NamedTuple):
    """One node's memory."""

    w: Array  # w_i, its own model


@frozen
class FedRelax(GraphAlgorithm):
    """Proximal steps at the neighbours' mean.

    Attributes:
        alpha: Strength of the coupling along edges; 0 trains every node alone.
        damping: Share of the old model that a node keeps, in [0, 1). Jacobi steps
            converge for convex losses with data; damping steadies what does not.
        solver: How a node solves its own problem: None exactly (linear models by one
            linear system, logistic and softmax by Newton's method), or a local solver
            such as `tacita.solvers.GradientDescent(local_steps=5)`.
        oracle: How nodes compute gradients, for solvers that use them.
        penalty: "squared", or squared `Penalty` objects that couple some coordinates.
        need_connected: Refuse a graph that falls into several parts.
    """

    alpha: float
    damping: float = 0.0
    solver: Solver | None = None
    oracle: Oracle = Full()
    penalty: Any = "squared"
    need_connected: bool = static(default=True)

    source: ClassVar[str] = "A. Jung, Federated Learning, Algorithm 11"

    def __post_init__(self) -> None:
        check.not_negative(alpha=self.alpha)
        check.in_range(0, 1, damping=self.damping)
        if check.is_number(self.damping) and np.any(np.asarray(self.damping) == 1):
            check.refuse("expected damping < 1, got damping=1.0: nothing would move")
        object.__setattr__(self, "penalty", penalties.of(self.penalty))
        penalties.require_squared(self.penalty, "FedRelax")

    def needs_connection(self) -> bool:
        """As the user chose."""
        return self.need_connected

    def refuse_problem(self, problem: Problem) -> None:
        """The exact step needs curvature, and a unique answer at every node."""
        super().refuse_problem(problem)
        self.penalty.check(problem.dim)
        assert problem.graph is not None
        pull = self.alpha * np.asarray(problem.graph.degrees)
        require_local_answers(self, problem, pull * np.min(self.penalty.curvature) > 0)

    def goal(self, problem: Problem) -> np.ndarray:
        """Every node's model in the solution of GTVMin, (N, d)."""
        return GTVMin(problem, self.alpha, self.penalty).solve()

    def resolve(self, problem: Problem) -> Self:
        """Let theory set what the solver left out."""
        ready = replace(self, penalty=penalties.in_dtype(self.penalty, problem.dtype))
        if self.solver is None or problem.graph is None:
            return ready
        strength = float(np.max(self.penalty.curvature))
        degree = np.asarray(problem.graph.degrees, float)
        rho = 1 / np.maximum(2 * np.asarray(self.alpha) * strength * degree, 1e-12)
        return replace(ready, solver=self.solver.resolve(problem, rho))

    def gradients(self) -> Gradients:
        """The solver's; the exact answer takes curvature."""
        if self.solver is None:
            return "without a solver it solves its problems by their curvature"
        return self.solver.gradients()

    def init(self, w: Array, edges: Edges) -> tuple[State, Array]:
        """Start from w and tell the neighbours."""
        return State(w), w

    def local(
        self, key: Array, oracle: AgentOracle, edges: Edges, state: State, inbox: Array
    ) -> tuple[State, Array]:
        """(123): argmin_v f_i(v) + alpha sum_j A_ij ||v - w_j||^2, then damping."""
        # (171): the inbox is sum_j A_ij w_j, and d_i the sum of the A_ij.
        mean = inbox / jnp.where(edges.degree > 0, edges.degree, 1)
        # (172): rho = 2 alpha d_i; one per coordinate where some are not coupled.
        pull = 2 * self.alpha * edges.degree * self.penalty.curvature
        pull = jnp.asarray(pull, inbox.dtype)
        if self.solver is not None:
            found = self.solver.solve(key, oracle, state.w, mean, 1 / pull)
        elif ridge.has_closed_form(oracle.local):
            found = ridge.toward(oracle.local, mean, pull)
        else:
            found = exact_prox(oracle.local, state.w, mean, 1 / pull)
        w = jnp.asarray(
            self.damping * state.w + (1 - self.damping) * found, inbox.dtype
        )
        return State(w), w

    def model(self, state: State) -> Array:
        """Its own model."""
        return state.w
