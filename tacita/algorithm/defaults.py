"""Numbers that theory sets, and numbers that must be the same for all agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacita import check
from tacita.problem.model.linear import Linear, Logistic, Softmax
from tacita.problem.oracles import Full
from tacita.theory import fed_plt

if TYPE_CHECKING:
    from tacita.problem.problem import Problem


def require_common(algorithm: Any, *names: str) -> None:
    """Refuse a number per agent where the method is exact with a common one only."""
    for name in names:
        if np.ndim(getattr(algorithm, name)) > 0:
            check.refuse(
                f"expected {name} one number, common to all agents, got an array"
            )


def require_local_answers(algorithm: Any, problem: Problem, held: Any) -> None:
    """Refuse what neither the algorithm's solver nor the exact step on a graph solves.

    The exact step needs known curvature, all rows, and a unique answer at every node:
    where its neighbours do not hold all coordinates (`held`, for every node), its own
    rows must determine them.
    """
    if algorithm.solver is not None:
        algorithm.solver.check(problem, algorithm.oracle)
        return
    name = type(algorithm).__name__
    if not isinstance(problem.model, Linear | Logistic | Softmax):
        check.refuse(
            f"{name} solves its local problems exactly for linear models only; "
            "give solver=tacita.solvers.GradientDescent(step_size=..., ...)"
        )
    if not isinstance(algorithm.oracle, Full):
        check.refuse(f"{name} without a solver needs exact gradients, oracle=Full")
    free = np.flatnonzero(~np.broadcast_to(held, problem.n_agents))
    if not len(free) or problem.population.regulariser.curvature_bounds[0] > 0:
        return
    open_nodes = free[problem.moduli.strong_convexity[free] <= 0]
    if len(open_nodes):
        check.refuse(
            "coordinates that are not coupled are not determined by the rows of node "
            f"{problem.ids[open_nodes[0]]!r}; add l2 > 0, rows or edges, or couple them"
        )


def curvature_bounds(problem: Problem, shift: float = 0.0) -> tuple[Any, Any]:
    """Every agent's curvature bounds, less `shift`; 0 for what may curve down."""
    moduli = problem.moduli
    low = (moduli.strong_convexity - shift).clip(min=0.0)
    high = (moduli.smoothness - shift).clip(min=0.0)
    return low, high


def proximal_step_size(problem: Problem, rho: Any, shift: float = 0.0) -> Any:
    """2 / (L_i + mu_i + 2/rho) of every agent: the best step for its own problem.

    An agent whose problem is flat in some direction, for want of rows and of anybody
    who holds it, takes half of that, with which steps do not swing for ever.
    """
    low, high = curvature_bounds(problem, shift)
    flat = low + 1 / rho <= 1e-9 * high
    return np.where(flat, 1.0, 2.0) / (low + high + 2 / rho)


def splitting_rho(problem: Problem) -> float:
    """The best penalty of a splitting method with exact answers, 1/sqrt(mu L).

    Without strong convexity 1/L, which makes the local problems convex.
    """
    low, high = problem.moduli.smallest, problem.moduli.largest
    return float(fed_plt.best_rho(low, high)) if low > 0 else 1 / high
