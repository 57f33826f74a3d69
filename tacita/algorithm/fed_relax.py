"""FedRelax: every node solves its own problem, pulled to its neighbours' models.

A. Jung, "Federated Learning: From Theory to Practice", Algorithm 11. It minimises

    sum_i f_i(w_i) + alpha sum_{edges} A_ij ||w_i - w_j||^2

by w_i <- argmin_v f_i(v) + alpha sum_j A_ij ||v - w_j||^2, all nodes at once: a
non-linear Jacobi method. The step is the proximal operator of f_i at the weighted mean
of the neighbours' models, with rho = 2 alpha d_i (172). A function h(w_i) of every
node's model, such as a constraint, is minimised with f_i.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.algorithm.base import Edges, ModelState
from tacita.algorithm.coupled import SolvedByNodes, own_function
from tacita.algorithm.joining import NO_COORDINATOR, Around, Joining, Rules
from tacita.algorithm.solvers import Solver
from tacita.problem.gtv import penalty as penalties
from tacita.problem.model.linear import Kinked
from tacita.problem.model.per_agent import kinds_of
from tacita.problem.oracles import AgentOracle, Full, Oracle
from tacita.trees import flag, frozen, needed, number

if TYPE_CHECKING:
    from tacita.problem.problem import Problem


@frozen
class FedRelax(SolvedByNodes):
    """Proximal steps at the neighbours' mean.

    Attributes:
        alpha: Strength of the coupling along edges; 0 trains every node alone.
        damping: Share of the old model that a node keeps, in [0, 1). Jacobi steps
            converge for convex losses with data; damping steadies what does not.
        solver: How a node solves its own problem: None exactly (linear models by one
            linear system, others by Newton's method), or a local solver
            such as `tacita.solvers.GradientDescent(local_steps=5)`.
        oracle: How nodes compute gradients, for solvers that use them.
        penalty: "squared", or squared `Penalty` objects that couple some coordinates.
        h: A function of every node's own model, such as `tacita.problem.prox.L1(0.1)`
            or a `Box`, with common numbers or one per node; None for none.
        need_connected: Refuse a graph that falls into several parts.
    """

    alpha: float = needed(check.not_negative, common=True)
    damping: float = number(check.below_one, 0.0)
    solver: Solver | None = None
    oracle: Oracle = Full()
    penalty: Any = penalties.coupling("squared")
    h: Any = own_function()
    need_connected: bool = flag(True)

    joining: ClassVar[Joining] = Joining(Around.OWN, Rules.ANY, NO_COORDINATOR)
    purpose: ClassVar[str] = "a model for every node, each solving exactly"
    source: ClassVar[str] = "A. Jung, Federated Learning, Algorithm 11"

    def pulls(self, problem: Problem) -> np.ndarray:
        """(172): 2 alpha d_i, in the coordinates that are coupled most."""
        assert problem.graph is not None
        strength = 2 * np.asarray(self.alpha) * float(np.max(self.penalty.curvature))
        # Of a node that nothing pulls: smaller than any pull, and one over it is finite
        # in single precision too.
        least = np.finfo(np.float32).tiny
        return np.maximum(strength * np.asarray(problem.graph.degrees, float), least)

    def held(self, problem: Problem) -> np.ndarray:
        """Where the pull is positive in every coordinate."""
        assert problem.graph is not None
        weakest = self.alpha * np.min(self.penalty.curvature)
        return weakest * np.asarray(problem.graph.degrees) > 0

    def refuse_problem(self, problem: Problem) -> None:
        """Also an h that a node would not minimise exactly."""
        super().refuse_problem(problem)
        if self.h is None:
            return
        if self.solver is not None:
            check.refuse("FedRelax with h solves exactly; leave solver= out, or h=")
        if any(isinstance(model, Kinked) for model in kinds_of(problem.model)):
            check.refuse(
                "FedRelax with h takes losses without kinks; use tacita.PrimalDual"
            )

    def init(self, w: Array, edges: Edges) -> tuple[ModelState, Array]:
        """Start from w and tell the neighbours."""
        return ModelState(w), w

    def local(
        self,
        key: Array,
        oracle: AgentOracle,
        edges: Edges,
        state: ModelState,
        inbox: Array,
    ) -> tuple[ModelState, Array]:
        """(123): argmin_v f_i(v) + alpha sum_j A_ij ||v - w_j||^2, then damping."""
        # (171): the inbox is sum_j A_ij w_j, and d_i the sum of the A_ij.
        mean = inbox / jnp.where(edges.degree > 0, edges.degree, 1)
        # (172): rho = 2 alpha d_i; one per coordinate where some are not coupled.
        pull = 2 * self.alpha * edges.degree * self.penalty.curvature
        pull = jnp.asarray(pull, inbox.dtype)
        found = self.answer(key, oracle, state.w, mean, pull, self.h)
        w = jnp.asarray(
            self.damping * state.w + (1 - self.damping) * found, inbox.dtype
        )
        return ModelState(w), w
