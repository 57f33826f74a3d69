"""GTVMin: curvature of  sum_i f_i(w_i) + alpha sum_edges A_ij ||w_i - w_j||^2.

Its Hessian is blockdiag(H_i) + 2 alpha (L kron I) with the graph's Laplacian L. For
linear models H_i = 2 Q_i, so that the Hessian is 2 Q with the book's Q of (57).
Equation numbers are those of A. Jung, "Federated Learning: From Theory to Practice".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import spsolve

from tacit import check
from tacit.problem.graph import Graph
from tacit.problem.models import Linear
from tacit.theory.descent import best_step_size

if TYPE_CHECKING:
    from tacit.problem.problem import Problem

#: Up to this many unknowns the curvature is computed exactly, by eigenvalues.
_EXACT = 1000


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
    per_row = 1 / (problem.counts[:, None] * len(problem.counts))
    scaled = (x * np.sqrt(per_row)[..., None]).reshape(-1, x.shape[-1])
    weight = float(problem.population.regulariser.weight)
    return 2 * float(np.linalg.eigvalsh(scaled.T @ scaled)[0]) + weight


def hessian(problem: Problem, alpha: float) -> Any:
    """The exact Hessian of a linear model's GTVMin, sparse, of side N d."""
    if not isinstance(problem.model, Linear):
        check.refuse("the Hessian of GTVMin is constant for linear models only")
    x = problem.stacked()[0].astype(np.float64)
    blocks = 2 * (x.mT @ x) / problem.counts[:, None, None]
    weight = float(problem.population.regulariser.weight)
    blocks = blocks + weight * np.eye(problem.dim)
    coupling = sp.kron(network_of(problem).laplacian(), sp.identity(problem.dim))
    return (sp.block_diag(list(blocks)) + 2 * alpha * coupling).tocsr()


def linear_optimum(problem: Problem, alpha: float) -> np.ndarray:
    """The closed-form solution of a linear model's GTVMin, shape (N, d); (58)."""
    x, y, _ = problem.stacked()
    x, y = x.astype(np.float64), y.astype(np.float64)
    # grad at zero: -2 X_i^T y_i / m_i; padding rows are zero in both.
    right = 2 * np.einsum("nmd,nm->nd", x, y) / problem.counts[:, None]
    solution = spsolve(hessian(problem, alpha).tocsc(), right.ravel())
    return np.asarray(solution).reshape(problem.n_agents, problem.dim)


def step_size(problem: Problem, alpha: float) -> float:
    """2 / (smallest + largest curvature): exact when small, from the bounds else."""
    if isinstance(problem.model, Linear) and problem.n_agents * problem.dim <= _EXACT:
        eigenvalues = np.linalg.eigvalsh(hessian(problem, alpha).toarray())
        return best_step_size(float(eigenvalues[0]), float(eigenvalues[-1]))
    return best_step_size(
        smallest_curvature(problem, alpha), largest_curvature(problem, alpha)
    )
