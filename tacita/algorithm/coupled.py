"""What algorithms share in which nodes keep models of their own: they solve GTVMin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from jax import Array

from tacita import check
from tacita.algorithm.base import Gradients, GraphAlgorithm
from tacita.problem import moduli, proximal
from tacita.problem.gtv import nodes
from tacita.problem.gtv import penalty as penalties
from tacita.problem.gtv.gtvmin import GTVMin
from tacita.problem.oracles import AgentOracle
from tacita.trees import replace, ruled

if TYPE_CHECKING:
    from tacita.problem.problem import Problem


def _function(**given: Any) -> Any:
    (h,) = given.values()
    if isinstance(h, str | int | float | list | tuple | dict):
        check.refuse(
            f"expected h such as tacita.problem.prox.L1(0.1), or None, got h={h!r}"
        )
    return h


def own_function() -> Any:
    """A field for a function h of every node's own model; none by default."""
    return ruled(None, _function, words="L1, Box, L2Ball, ...")


class Coupled(GraphAlgorithm):
    """Neighbours' models are held together by a penalty, with strength alpha."""

    alpha: float
    penalty: Any
    h: Any
    need_connected: bool

    with_parts: ClassVar[str] = ", or take need_connected=False"

    def needs_connection(self) -> bool:
        """As the user chose."""
        return self.need_connected

    def refuse_problem(self, problem: Problem) -> None:
        """Also a penalty on other coordinates than the model has, or such an h."""
        if problem.h is not None:
            name = type(self).__name__
            check.refuse(
                f"{name} handles smooth problems only: a problem's h is added once, "
                "for one model, and nodes have their own; use a problem with h=None, "
                f"and {name}(..., h=...)"
            )
        super().refuse_problem(problem)
        if not hasattr(self.penalty, "check"):
            check.refuse(
                "expected penalty a word such as 'squared', or Penalty(kind=...), got "
                f"penalty={self.penalty!r}"
            )
        self.penalty.check(problem.dim)
        nodes.required(self.h, problem.dim, problem.n_agents)

    def goal(self, problem: Problem) -> np.ndarray:
        """Every node's model in the solution of GTVMin, (N, d)."""
        return GTVMin(problem, self.alpha, self.penalty, self.h).solve()

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
        self,
        key: Array,
        oracle: AgentOracle,
        w: Array,
        centre: Array,
        pull: Array,
        h: Any = None,
    ) -> Array:
        """argmin_v f_i(v) + h(v) + (pull/2) ||v - centre||^2; pull may be (d,)."""
        if self.solver is not None:
            return self.solver.solve(key, oracle, w, centre, 1 / pull)
        return proximal.toward(oracle.local, w, centre, pull, h)

    def refuse_problem(self, problem: Problem) -> None:
        """Also refuses what neither the solver nor the exact step solves.

        The exact step needs known curvature, all rows, and a unique answer at every
        node: where its neighbours do not hold all coordinates, its own rows must
        determine them.
        """
        super().refuse_problem(problem)
        if self.solver is not None:
            return
        who = f"{type(self).__name__} without a solver"
        remedy = "give solver=tacita.solvers.GradientDescent(step_size=..., ...)"
        proximal.require_exact(problem, self.oracle, who, remedy)
        free = np.flatnonzero(~self.held(problem))
        if not len(free) or problem.population.regulariser.curvature_bounds[0] > 0:
            return
        # Of a public bound nothing follows: it holds for rows of zeros, too.
        known = problem.bound is None
        low = moduli.lowest_curvature(problem.population)[free] if known else 0.0 * free
        if np.any(low <= 0):
            name = problem.ids[free[np.argmin(low)]]
            check.refuse(
                "coordinates that are not coupled may be left open by the rows of node "
                f"{name!r}, whose loss is not strongly convex; add l2 > 0, rows or "
                "edges, or couple them"
            )
