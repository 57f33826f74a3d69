"""How far GTVMin's models move when labels, features or edges do, exactly.

A. Jung, "Federated Learning: From Theory to Practice", 8.2, for linear models: Q w = b
with Q = blockdiag(Q_i) + alpha L kron I, Q_i = X_i^T X_i / m_i + l2/2, b_i =
X_i^T y_i / m_i; (162). The book bounds the effect of labels (Prop. 8.1); here it is
computed, by one factorisation of Q.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh, splu

from tacita import check
from tacita.problem.gtv import solution
from tacita.problem.problem import Problem
from tacita.theory import gtv

#: Up to this many unknowns a spectral norm is taken of the matrix itself.
_DENSE = 400


@dataclasses.dataclass(frozen=True, eq=False)
class Sensitivity:
    """How the solution of GTVMin with linear models depends on its data.

    Args:
        problem: Of linear models on a graph.
        alpha: Strength of the coupling.

    >>> import tacita
    >>> ring = tacita.problem.graph.ring(6)
    >>> nodes = tacita.problem.synthetic.linear(6, features=2, samples=9, graph=ring)
    >>> found = Sensitivity(nodes, alpha=0.5)
    >>> found.label_gain <= found.mended_bound <= found.printed_bound
    True
    """

    problem: Problem
    alpha: float

    def __post_init__(self) -> None:
        check.not_negative(alpha=check.given(alpha=self.alpha))
        solution.hessian(self.problem, self.alpha)  # refuses other models than linear

    @functools.cached_property
    def models(self) -> np.ndarray:
        """The solution, (N, d)."""
        return gtv.linear_optimum(self.problem, self.alpha)

    @property
    def label_gain(self) -> float:
        """The largest sum_i ||change of w_i||^2 per sum_i ||change of y_i||^2."""
        # The map's square is Q^-1 blockdiag(rho_i Q_i / m_i) Q^-1.
        return self._largest(self._label_roots)

    @property
    def feature_gain(self) -> float:
        """As `label_gain`, per squared change of features; of small changes."""
        return self._largest(self._feature_roots)

    @property
    def printed_bound(self) -> float:
        """Prop. 8.1 as it is printed: at least `label_gain`."""
        return gtv.sensitivity_bound(self.problem, self.alpha, [1.0])

    @property
    def mended_bound(self) -> float:
        """Prop. 8.1 as its proof has it, each node's change over its m_i."""
        rows = self.problem.counts
        return self.printed_bound / float(rows[rows > 0].min())

    def label_influences(self) -> np.ndarray:
        """(N, N): how far labels of node j move the model of node i, at most.

        Squared length per squared length.
        """
        return self._influences(self._label_roots)

    def feature_influences(self) -> np.ndarray:
        """(N, N): as `label_influences`, of small changes of features."""
        return self._influences(self._feature_roots)

    def edge_influences(self) -> np.ndarray:
        """How far all models move together when an edge is lost, one edge each.

        In the order of `problem.graph.pairs()`. Exact: without the edge (i, j) Q loses
        alpha A_ij B B^T with B = (e_i - e_j) kron I, so that w moves by Q^-1 B
        (I/(alpha A_ij) - B^T Q^-1 B)^-1 B^T w. Infinite where nothing else holds a
        node.
        """
        first, second, weights = gtv.network_of(self.problem).pairs()
        d, found = self.problem.dim, []
        identity = np.eye(d)
        for i, j, weight in zip(first, second, weights, strict=True):
            pull = self.alpha * float(weight)
            if pull == 0:
                found.append(0.0)
                continue
            columns = np.zeros((self.problem.n_agents, d, d))
            columns[i], columns[j] = identity, -identity
            moved = self._solve(columns.reshape(-1, d))
            blocks = moved.reshape(-1, d, d)
            inner = identity / pull - (blocks[i] - blocks[j])
            if np.linalg.eigvalsh(inner)[0] <= 1e-12 / pull:
                found.append(np.inf)
                continue
            apart = self.models[i] - self.models[j]
            change = moved @ np.linalg.solve(inner, apart)
            found.append(float(np.linalg.norm(change)))
        return np.array(found)

    def _solve(self, right: np.ndarray) -> np.ndarray:
        """Q^-1 times columns."""
        return self._factor.solve(right)

    @functools.cached_property
    def _factor(self) -> Any:
        assert self.models.size  # refused where rows do not determine them
        return splu((solution.hessian(self.problem, self.alpha) / 2).tocsc())

    @functools.cached_property
    def _grams(self) -> np.ndarray:
        """rho_i^2 X_i^T X_i / m_i^2, (N, d, d)."""
        x = self.problem.stacked()[0].astype(np.float64)
        return self._shares[:, None, None] ** 2 * (x.mT @ x)

    @property
    def _shares(self) -> np.ndarray:
        """rho_i / m_i, what a row of every node weighs."""
        return self.problem.weights / np.maximum(self.problem.counts, 1)

    @functools.cached_property
    def _label_roots(self) -> np.ndarray:
        """Square roots of what a unit of labels does to every b_i."""
        return _roots(self._grams)

    @functools.cached_property
    def _feature_roots(self) -> np.ndarray:
        """Likewise of features.

        A change dx_k of row k moves b_i - Q_i w by rho_i (r_k I - x_k w^T) dx_k / m_i
        to first order, with the residual r_k = y_k - x_k^T w.
        """
        x, y, counts = self.problem.stacked()
        x, w = x.astype(np.float64), self.models
        real = np.arange(y.shape[1]) < counts[:, None]
        residual = np.where(real, y - np.einsum("nmd,nd->nm", x, w), 0.0)
        squares = self._shares[:, None, None] ** 2
        pull = squares * np.einsum("nmd,nm,ne->nde", x, residual, w)
        total = (residual**2).sum(axis=1)[:, None, None]
        straight = squares * total * np.eye(w.shape[1])
        lengths = np.sum(w**2, axis=1)[:, None, None]
        return _roots(straight - pull - pull.mT + lengths * self._grams)

    def _largest(self, roots: np.ndarray) -> float:
        """The squared spectral norm of Q^-1 blockdiag(roots), a few Lanczos steps."""
        n, d = self.models.shape

        def product(v: np.ndarray) -> np.ndarray:
            spread = np.einsum("nde,ne->nd", roots, v.reshape(n, d))
            back = self._solve(self._solve(spread.ravel())).reshape(n, d)
            return np.einsum("nde,nd->ne", roots, back).ravel()

        if n * d <= _DENSE:
            matrix = np.stack([product(one) for one in np.eye(n * d)])
            return float(np.linalg.eigvalsh((matrix + matrix.T) / 2)[-1])
        operator = LinearOperator((n * d, n * d), matvec=product, dtype=float)  # pyright: ignore
        start = np.random.default_rng(0).normal(size=n * d)
        found = eigsh(operator, k=1, v0=start, return_eigenvectors=False)
        return float(found[0])

    def _influences(self, roots: np.ndarray) -> np.ndarray:
        """Squared spectral norms of the blocks of Q^-1 blockdiag(roots)."""
        n, d = self.models.shape
        found = np.empty((n, n))
        for node in range(n):
            columns = np.zeros((n, d, d))
            columns[node] = roots[node]
            blocks = self._solve(columns.reshape(n * d, d)).reshape(n, d, d)
            found[:, node] = np.linalg.norm(blocks, ord=2, axis=(1, 2)) ** 2
        return found


def _roots(squares: np.ndarray) -> np.ndarray:
    """Symmetric square roots of a stack of positive semidefinite matrices."""
    values, vectors = np.linalg.eigh(squares)
    scaled = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    return scaled @ vectors.mT


@dataclasses.dataclass(frozen=True)
class Moved:
    """How far the solution moved, and how far it could have.

    Attributes:
        distance: ||w' - w|| over all nodes.
        bound: ||(b' - b) - (Q' - Q) w|| / lambda_1(Q'), at least the distance.
    """

    distance: float
    bound: float


def moved(problem: Problem, changed: Problem, alpha: float) -> Moved:
    """What a change of labels, features or edges did (footnote 25, exercise 8.1).

    Args:
        problem: Of linear models on a graph.
        changed: The same nodes with other rows, other edges, or both.
        alpha: Strength of the coupling.
    """
    if (problem.n_agents, problem.dim) != (changed.n_agents, changed.dim):
        check.refuse("expected the same nodes and features in both problems")
    before, after = (gtv.linear_optimum(one, alpha) for one in (problem, changed))
    # Both halved: the book's Q and b.
    matrix = solution.hessian(changed, alpha).toarray() / 2
    right = solution.right_hand_side(changed).ravel() / 2
    lambda_1 = float(np.linalg.eigvalsh(matrix)[0])
    left = np.linalg.norm(right - matrix @ before.ravel())
    return Moved(float(np.linalg.norm(after - before)), float(left) / lambda_1)


def two_notions(problem: Problem, alphas: Any) -> dict[str, np.ndarray]:
    """What coupling does to robustness, by two notions that pull apart.

    Stronger coupling holds models together, so that noise in labels moves them less
    (165), and listens more to neighbours, so that a neighbour's lie moves a node more
    (174). Neither alone says how robust a network is.

    Returns:
        By alpha: `deviation`, (165) per unit of noise; `label_gain`, exact; and
        `neighbour_gain`, (174) of the node that listens most.
    """
    network = gtv.network_of(problem)
    lambda_2 = network.spectrum().lambda_2
    sigma = np.maximum(problem.moduli.strong_convexity, 0.0)
    degrees = np.asarray(network.degrees, float)
    values = np.asarray(check.positive(alphas=np.asarray(alphas, float)))
    return {
        "alpha": values,
        "deviation": 1 / (lambda_2 * values),
        "label_gain": np.array([Sensitivity(problem, a).label_gain for a in values]),
        "neighbour_gain": np.array(
            [np.max(gtv.relax_robustness(sigma, a, degrees)) for a in values]
        ),
    }
