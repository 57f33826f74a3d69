"""GTVMin, sum_i f_i(w_i) + alpha sum_edges A_ij ||w_i - w_j||^2: theorems, step sizes.

Its Hessian is blockdiag(H_i) + 2 alpha (L kron I) with the graph's Laplacian L. For
linear models H_i = 2 Q_i, so that the Hessian is 2 Q with the book's Q of (57).
Equation numbers are those of A. Jung, "Federated Learning: From Theory to Practice".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tacita import check
from tacita.problem.graph import Graph
from tacita.problem.gtv import penalty as penalties
from tacita.problem.gtv import solution
from tacita.problem.gtv.gtvmin import GTVMin
from tacita.problem.model import ridge
from tacita.theory.descent import best_step_size, smoothness_of_batches

if TYPE_CHECKING:
    from tacita.problem.problem import Problem

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
    return problem.moduli.largest + _pull(problem, alpha)


def _pull(problem: Problem, alpha: float) -> float:
    """4 alpha d_max, no less than 2 alpha lambda_n."""
    return 4 * alpha * float(np.max(network_of(problem).degrees))


def smallest_curvature(problem: Problem, alpha: float) -> float:
    """A lower bound: the agents' own strong convexity, or (107) if that is better.

    Prop. 5.2, in terms of the Hessian's halves Q_i = H_i / 2:
    l_min(Q) >= min(lambda_2 alpha r^2, m/2) / (1 + r^2), with m the smallest
    eigenvalue of the mean of the Q_i and r = m / (4 max_i l_max(Q_i)).
    """
    own = max(problem.moduli.smallest, 0.0)
    # With a public bound on rows, nothing is read off the rows themselves.
    if problem.bound is not None or not ridge.has_closed_form(problem.population):
        return own
    _, m, r = _extremes(problem)
    lambda_2 = network_of(problem).spectrum().lambda_2
    return max(own, 2 * min(lambda_2 * alpha * r**2, m / 2) / (1 + r**2))


def _mean_curvature(problem: Problem) -> float:
    """Smallest eigenvalue of the mean over agents of the Hessians of a linear model."""
    x = problem.stacked()[0].astype(np.float64)
    counts = np.maximum(problem.counts, 1)
    per_row = problem.weights[:, None] / (counts[:, None] * len(counts))
    scaled = (x * np.sqrt(per_row)[..., None]).reshape(-1, x.shape[-1])
    weight = float(problem.population.regulariser.weight)
    return 2 * float(np.linalg.eigvalsh(scaled.T @ scaled)[0]) + weight


def hessian(problem: Problem, alpha: float, penalty: Any = "squared") -> Any:
    """The exact Hessian of a linear model's GTVMin, sparse, of side N d."""
    network_of(problem)
    return solution.hessian(problem, alpha, penalties.of(penalty).curvature)


def linear_optimum(problem: Problem, alpha: float) -> np.ndarray:
    """The closed-form solution of a linear model's GTVMin, shape (N, d); (58)."""
    return GTVMin(problem, alpha).solve(method="factor")


def step_size(problem: Problem, alpha: float, penalty: Any = "squared") -> float:
    """2 / (smallest + largest curvature), (83): exact when small, by bounds else.

    Without strong convexity, and on large networks, where lambda_2 of (107) is dear,
    1 / (the largest curvature, or its bound (106)).
    """
    phi = penalties.of(penalty)
    linear = ridge.has_closed_form(problem.population) and problem.bound is None
    if linear and problem.n_agents * problem.dim <= _EXACT:
        matrix = solution.hessian(problem, alpha, phi.curvature).toarray()
        eigenvalues = np.linalg.eigvalsh(matrix)
        return best_step_size(float(eigenvalues[0]), float(eigenvalues[-1]))
    strongest = float(np.max(phi.curvature))
    high = largest_curvature(problem, alpha * strongest)
    low = max(problem.moduli.smallest, 0.0)
    if problem.n_agents <= _MANY and not np.any(phi.mask(problem.dim) == 0):
        low = smallest_curvature(problem, alpha * float(np.min(phi.curvature)))
    return best_step_size(low, high)


def batch_step_size(
    problem: Problem, alpha: float, oracle: Any, penalty: Any = "squared"
) -> float:
    """1 / (the smoothness of an oracle's batches + 4 alpha d_max).

    A step of (83), for the mean over all rows, overshoots on few, and models run away.
    """
    strongest = float(np.max(penalties.of(penalty).curvature))
    smoothness = float(smoothness_of_batches(problem, oracle).max())
    return 1 / (smoothness + _pull(problem, alpha * strongest))


def node_step_sizes(problem: Problem, alpha: float) -> np.ndarray:
    """1 / (L_i + 4 alpha d_i) of every node: safe, and large where (106) allows it.

    2 alpha (L kron I) is at most 4 alpha times the diagonal matrix of degrees, so that
    these steps, each node with its own, never overshoot.
    """
    degrees = np.asarray(network_of(problem).degrees, float)
    curvature = problem.moduli.smoothness + 4 * alpha * degrees
    return 1 / np.where(curvature > 0, curvature, 1.0)  # where all is flat any will do


def deviation_bound(lambda_2: float, alpha: float, noise: Any, counts: Any) -> float:
    """Prop. 3.1, (63) and (165): how far the solution's models lie from their mean.

    If y_i = X_i w + noise_i with one w at all nodes of a connected graph, then
    sum_i ||w_i - mean||^2 <= (1 / (lambda_2 alpha)) sum_i ||noise_i||^2 / m_i.

    Args:
        lambda_2: Of the graph's Laplacian, `graph.spectrum().lambda_2`.
        alpha: Strength of the coupling.
        noise: ||noise_i||^2 of every node.
        counts: m_i, rows of every node.

    >>> deviation_bound(lambda_2=2.0, alpha=0.5, noise=[1.0, 4.0], counts=[1, 2])
    3.0
    """
    check.positive(lambda_2=lambda_2)
    check.positive(alpha=alpha)
    return _noise_level(noise, counts) / (lambda_2 * alpha)


def _noise_level(noise: Any, counts: Any) -> float:
    # A node without rows has no noise.
    return float(np.sum(np.asarray(noise, float) / np.maximum(counts, 1)))


def cluster_bound(
    graph: Graph,
    cluster: Any,
    alpha: float,
    noise: Any,
    counts: Any,
    centre: Any,
    others: float,
) -> float:
    """Prop. 6.1, (148): how far the models of a cluster lie from their own mean.

    Args:
        graph: The whole network.
        cluster: Numbers of the cluster's nodes; they must hang together.
        alpha: Strength of the coupling.
        noise: ||noise_i||^2 of the cluster's nodes, where y_i = X_i centre + noise_i.
        counts: m_i of the cluster's nodes.
        centre: The cluster's true model.
        others: R, the largest length of a model outside the cluster.
    """
    inside = np.zeros(graph.n_nodes, bool)
    inside[np.asarray(cluster)] = True
    adjacency = graph.adjacency()
    own = adjacency[inside][:, inside]
    laplacian = np.diag(np.asarray(own.sum(axis=1)).ravel()) - own.toarray()
    lambda_2 = float(np.linalg.eigvalsh(laplacian)[1])
    check.positive(lambda_2_of_the_cluster=lambda_2)
    boundary = float(adjacency[inside][:, ~inside].sum())
    leak = alpha * boundary * 2 * (float(np.sum(np.square(centre))) + others**2)
    return (_noise_level(noise, counts) + leak) / (alpha * lambda_2)


def connectivity_bound(graph: Graph) -> float:
    """Prop. 7.1, (156): lambda_2 <= n / (n - 1) times the smallest degree."""
    n = graph.n_nodes
    check.count(2, nodes=n)
    return n / (n - 1) * float(np.min(graph.degrees))


def sensitivity_bound(problem: Problem, alpha: float, change: Any) -> float:
    """Prop. 8.1: how far the solution moves when labels do, as a sum of squares.

    sum_i ||w_i - w_i'||^2 <= l_max (1 + r^2)^2 / min(lambda_2 alpha r^2, m/2)^2
    times sum_i ||change_i||^2. Dividing each ||change_i||^2 by m_i is valid too, and
    sharper; the book states it without. Labels of agents with weights count rho_i
    times, of which Q_i has but one root: the largest rho_i is a factor.

    Args:
        problem: Of linear models on a connected graph.
        alpha: Strength of the coupling.
        change: ||y_i - y_i'||^2 of every node.
    """
    l_max, m, r = _extremes(problem)
    lambda_2 = network_of(problem).spectrum().lambda_2
    least = min(lambda_2 * alpha * r**2, m / 2)
    check.positive(smallest_eigenvalue=least)
    moved = float(problem.weights.max()) * float(np.sum(change))
    return l_max * (1 + r**2) ** 2 / least**2 * moved


def _extremes(problem: Problem) -> tuple[float, float, float]:
    """max_i l_max(Q_i), l_min of the mean of the Q_i, and their r of (107)."""
    l_max, m = problem.moduli.largest / 2, _mean_curvature(problem) / 2
    return l_max, m, m / (4 * l_max)


def _require_no_l2(problem: Problem) -> None:
    """A regulariser draws the mean model away from the truth, whatever the noise."""
    weight = float(problem.population.regulariser.weight)
    if weight > 0:
        check.refuse(
            f"the distance from the truth is bounded for l2=0, got l2={weight}"
        )
    if problem.weighted:
        check.refuse(
            "the distance from the truth is bounded for agents without weights"
        )


def centre_error(problem: Problem, models: Any, noise: Any) -> float:
    """(167): ||mean of the models - true model||^2 is at most this.

    The gradients of all nodes add up to zero, the coupling cancelling out, so that
    (sum_i Q_i)(mean - true) = sum_i X_i^T (noise_i - X_i (w_i - mean)) / m_i. The book
    prints a plus in place of this minus, with which the bound does not hold.

    Args:
        problem: Of linear models.
        models: The solution of GTVMin, (N, d).
        noise: y_i - X_i times the true model, (N, rows).
    """
    _require_no_l2(problem)
    x, _, counts = problem.stacked()
    models = np.asarray(models)
    apart = models - models.mean(axis=0)
    left = np.asarray(noise) - np.einsum("nmd,nd->nm", x, apart)
    total = np.einsum("nmd,nm->d", x, left / np.maximum(counts, 1)[:, None])
    m = _mean_curvature(problem) / 2
    return float(np.sum(total**2)) / (problem.n_agents * m) ** 2


def centre_error_bound(problem: Problem, alpha: float, noise: Any) -> float:
    """(169): bounds ||mean of the models - true model||^2 before solving.

    Args:
        problem: Of linear models on a connected graph.
        alpha: Strength of the coupling.
        noise: ||noise_i||^2 of every node, where y_i = X_i w + noise_i.
    """
    _require_no_l2(problem)
    check.positive(alpha=alpha)
    l_max, m, _ = _extremes(problem)
    lambda_2 = network_of(problem).spectrum().lambda_2
    check.positive(lambda_2=lambda_2)
    level = _noise_level(noise, problem.counts)
    factor = 2 * (l_max + l_max**2 / (lambda_2 * alpha))
    return factor * level / (problem.n_agents * m**2)


def relax_robustness(strong_convexity: Any, alpha: float, degree: Any) -> Any:
    """(174): by how much a node's FedRelax step can enlarge a change of its input.

    1 / (1 + sigma / (2 alpha d)); 0 for a node that nothing holds to its neighbours.

    >>> float(relax_robustness(strong_convexity=2.0, alpha=0.5, degree=2.0))
    0.5
    """
    pull = 2 * alpha * np.asarray(degree, float)
    return pull / np.where(pull > 0, pull + strong_convexity, 1.0)


def relax_contraction(problem: Problem, alpha: float, damping: float = 0.0) -> float:
    """(133): the factor of one FedRelax step in the largest length over nodes.

    The largest over nodes of 1 / (1 + sigma_i / (2 alpha d_i)); a step with damping
    keeps that share of the error.
    """
    degrees = np.asarray(network_of(problem).degrees, float)
    sigma = np.maximum(problem.moduli.strong_convexity, 0.0)
    each = relax_robustness(sigma, alpha, degrees)
    return damping + (1 - damping) * float(np.max(each))


def asynchronous_bound(contraction: float, event: Any, most_delay: int) -> Any:
    """(134): the largest error over nodes after so many events, per initial error.

    kappa^(t / (2B + 1)) with delays and pauses of at most B events. It holds as printed
    if everybody is active at the first event, as in `tacita.Asynchronous`: a node that
    has not computed yet still has its first error. Otherwise count t from the event at
    which the last node has computed for the first time.

    >>> round(float(asynchronous_bound(0.5, event=42, most_delay=10)), 12)
    0.25
    """
    check.between(0, 1)(contraction=contraction)
    return contraction ** (np.asarray(event) / (2 * most_delay + 1))
