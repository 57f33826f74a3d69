"""What algorithms share in which nodes keep models of their own: they solve GTVMin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from jax import Array

from tacita import check
from tacita.algorithm.base import Gradients, GraphAlgorithm
from tacita.algorithm.solvers import exact_prox
from tacita.problem import least_absolute
from tacita.problem.gtv import penalty as penalties
from tacita.problem.gtv.gtvmin import GTVMin
from tacita.problem.model import ridge
from tacita.problem.model.linear import Kinked, Linear, Logistic, Softmax
from tacita.problem.oracles import AgentOracle, Full
from tacita.trees import replace

if TYPE_CHECKING:
    from tacita.problem.problem import Problem


class Coupled(GraphAlgorithm):
    """Neighbours' models are held together by a penalty, with strength alpha."""

    alpha: float
    penalty: Any
    need_connected: bool

    def needs_connection(self) -> bool:
        """As the user chose."""
        return self.need_connected

    def refuse_problem(self, problem: Problem) -> None:
        """Also a penalty on other coordinates than the model has."""
        super().refuse_problem(problem)
        self.penalty.check(problem.dim)

    def goal(self, problem: Problem) -> np.ndarray:
        """Every node's model in the solution of GTVMin, (N, d)."""
        return GTVMin(problem, self.alpha, self.penalty).solve()

    def resolve(self, problem: Problem) -> Self:
        """Also brings the penalty to the precision of the models."""
        ready = super().resolve(problem)
        return replace(ready, penalty=penalties.in_dtype(self.penalty, problem.dtype))


class SolvedByNodes(Coupled):
    """Every node solves a problem of its own in a round: exactly, or by a solver."""

    def pulls(self, problem: Problem) -> np.ndarray:
        """How strongly every node is pulled at its centre, (N,), positive."""
        raise NotImplementedError

    def held(self, problem: Problem) -> np.ndarray:
        """Whether a node's neighbours hold all its coordinates, (N,)."""
        raise NotImplementedError

    def proximal(self, problem: Problem) -> tuple[Any, ...]:
        """One over every node's pull."""
        return (1 / self.pulls(problem),)

    def gradients(self) -> Gradients:
        """The solver's; the exact answer takes curvature."""
        if self.solver is None:
            return "without a solver it solves its problems by their curvature"
        return self.solver.gradients()

    def answer(
        self, key: Array, oracle: AgentOracle, w: Array, centre: Array, pull: Array
    ) -> Array:
        """argmin_v f_i(v) + (pull/2) ||v - centre||^2; pull may be (d,)."""
        if self.solver is not None:
            return self.solver.solve(key, oracle, w, centre, 1 / pull)
        if ridge.has_closed_form(oracle.local):
            return ridge.toward(oracle.local, centre, pull)
        if isinstance(oracle.local.model, Kinked):
            return least_absolute.toward(oracle.local, centre, pull)
        return exact_prox(oracle.local, w, centre, 1 / pull)

    def refuse_problem(self, problem: Problem) -> None:
        """Also refuses what neither the solver nor the exact step solves.

        The exact step needs known curvature, all rows, and a unique answer at every
        node: where its neighbours do not hold all coordinates, its own rows must
        determine them.
        """
        super().refuse_problem(problem)
        if self.solver is not None:
            return
        name = type(self).__name__
        if not isinstance(problem.model, Linear | Kinked | Logistic | Softmax):
            check.refuse(
                f"{name} solves its local problems exactly for linear models only; "
                "give solver=tacita.solvers.GradientDescent(step_size=..., ...)"
            )
        if not isinstance(self.oracle, Full):
            check.refuse(f"{name} without a solver needs exact gradients, oracle=Full")
        free = np.flatnonzero(~self.held(problem))
        if not len(free) or problem.population.regulariser.curvature_bounds[0] > 0:
            return
        open_nodes = free[problem.moduli.strong_convexity[free] <= 0]
        if len(open_nodes):
            check.refuse(
                "coordinates that are not coupled are not determined by the rows of "
                f"node {problem.ids[open_nodes[0]]!r}; add l2 > 0, rows or edges, or "
                "couple them"
            )
