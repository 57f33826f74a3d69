"""Numbers that theory sets for several algorithms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacita.theory import fed_plt

if TYPE_CHECKING:
    from tacita.problem.problem import Problem


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
    """1/sqrt(mu L), the best penalty of a splitting method with exact answers.

    Without strong convexity 1/L, which makes the local problems convex.
    """
    low, high = problem.moduli.smallest, problem.moduli.largest
    return float(fed_plt.best_rho(low, high)) if low > 0 else 1 / high


def inverse_splitting_rho(problem: Problem) -> float:
    """sqrt(mu L), or L: for methods whose penalty is the inverse of that."""
    return 1 / splitting_rho(problem)
