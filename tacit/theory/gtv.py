"""GTVMin: curvature of  sum_i f_i(w_i) + alpha sum_edges A_ij ||w_i - w_j||^2.

Its Hessian is blockdiag(H_i) + 2 alpha (L kron I) with the graph's Laplacian L. For
linear models H_i = 2 Q_i, so that the Hessian is 2 Q with the book's Q of (57).
Equation numbers are those of A. Jung, "Federated Learning: From Theory to Practice".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacit import check
from tacit.problem import gtv_solve, ridge
from tacit.problem import penalty as penalties
from tacit.problem.graph import Graph
from tacit.problem.gtv import GTVMin
from tacit.problem.models import Linear
from tacit.theory.descent import best_step_size

if TYPE_CHECKING:
    from tacit.problem.problem import Problem

#: Up to this many unknowns the curvature is computed exactly, by eigenvalues.
_EXACT = 1000
#: Beyond this many nodes lambda_2 of the graph takes longer than it saves.
_MANY = 5000


def network_of(problem: Problem) -> Graph:
    """The problem's graph; GTVMin is not defined without one."""
    if problem.graph is None:
        check.refuse("GTVMin needs a graph; pass graph= to the problem")
    return problem.graph


def largest_curvature(problem: Problem, alpha: float) -> float:
    """Upper bound (106): max_i L_i + 2 alpha lambda_n, with lambda_n <= 2 d_max."""
    degree = float(np.max(network_of(problem).degrees))
    return problem.moduli.largest + 4 * alpha * degree


def smallest_curvature(problem: Problem, alpha: float) -> float:
    """A lower bound: the agents' own strong convexity, or (107) if that is better.

    Prop. 5.2, in terms of the Hessian's halves Q_i = H_i / 2:
    l_min(Q) >= min(lambda_2 alpha r^2, m/2) / (1 + r^2), with m the smallest
    eigenvalue of the mean of the Q_i and r = m / (4 max_i l_max(Q_i)).
    """
    own = max(problem.moduli.smallest, 0.0)
    if not isinstance(problem.model, Linear):
        return own
    m = _mean_curvature(problem) / 2
    r = m / (4 * problem.moduli.largest / 2)
    lambda_2 = network_of(problem).spectrum().lambda_2
    return max(own, 2 * min(lambda_2 * alpha * r**2, m / 2) / (1 + r**2))


def _mean_curvature(problem: Problem) -> float:
    """Smallest eigenvalue of the mean over agents of the Hessians of a linear model."""
    x = problem.stacked()[0].astype(np.float64)
    counts = np.maximum(problem.counts, 1)
    per_row = 1 / (counts[:, None] * len(counts))
    scaled = (x * np.sqrt(per_row)[..., None]).reshape(-1, x.shape[-1])
    weight = float(problem.population.regulariser.weight)
    return 2 * float(np.linalg.eigvalsh(scaled.T @ scaled)[0]) + weight


def hessian(problem: Problem, alpha: float, penalty: Any = "squared") -> Any:
    """The exact Hessian of a linear model's GTVMin, sparse, of side N d."""
    network_of(problem)
    return gtv_solve.hessian(problem, alpha, penalties.of(penalty).curvature)


def linear_optimum(problem: Problem, alpha: float) -> np.ndarray:
    """The closed-form solution of a linear model's GTVMin, shape (N, d); (58)."""
    return GTVMin(problem, alpha).solve(method="factor")


def step_size(problem: Problem, alpha: float, penalty: Any = "squared") -> float:
    """2 / (smallest + largest curvature), (83): exact when small, by bounds else.

    Without a lower bound, and on large networks, where lambda_2 of (107) is dear,
    1 / (the upper bound (106)).
    """
    phi = penalties.of(penalty)
    linear = ridge.has_closed_form(problem.population)
    if linear and problem.n_agents * problem.dim <= _EXACT:
        matrix = gtv_solve.hessian(problem, alpha, phi.curvature).toarray()
        eigenvalues = np.linalg.eigvalsh(matrix)
        return best_step_size(float(eigenvalues[0]), float(eigenvalues[-1]))
    strongest = float(np.max(phi.curvature))
    high = largest_curvature(problem, alpha * strongest)
    low = max(problem.moduli.smallest, 0.0)
    if problem.n_agents <= _MANY and not np.any(phi.mask(problem.dim) == 0):
        low = smallest_curvature(problem, alpha * float(np.min(phi.curvature)))
    return best_step_size(low, high) if low > 0 else 1 / high


def node_step_sizes(problem: Problem, alpha: float) -> np.ndarray:
    """1 / (L_i + 4 alpha d_i) of every node: safe, and large where (106) allows it.

    2 alpha (L kron I) is at most 4 alpha times the diagonal matrix of degrees, so that
    these steps, each node with its own, never overshoot.
    """
    degrees = np.asarray(network_of(problem).degrees, float)
    return 1 / (problem.moduli.smoothness + 4 * alpha * degrees)
