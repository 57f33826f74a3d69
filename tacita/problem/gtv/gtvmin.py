"""GTVMin: a model for every node of a graph, neighbours held together by a penalty.

    minimise  sum_i f_i(w_i) + alpha sum_{edges} A_ij phi(w_i - w_j)            (48)

and, if wanted, a function h(w_i) of every node's model, such as a constraint.

A. Jung, "Federated Learning: From Theory to Practice", chapter 3; equation numbers are
the book's. `GTVMin` is the problem itself: its objective, its gradient and its exact
solution. `FedGD`, `FedRelax` and `PrimalDual` are algorithms that nodes can run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from tacita import check
from tacita.problem.arrays import from_arrays
from tacita.problem.graph import Graph
from tacita.problem.gtv import dual, nodes, solution
from tacita.problem.gtv import penalty as penalties
from tacita.problem.problem import Problem
from tacita.trees import in_double_precision, replace


class GTVMin:
    """GTVMin on a problem with a graph.

    Args:
        problem: The nodes' losses f_i and their graph.
        alpha: Strength of the coupling; 0 trains every node alone, a large one makes
            all models one.
        penalty: phi: "squared" (49), "l2" (the network lasso), "l1", "linf", "l3"
            or another p-norm, a `Penalty` that couples some coordinates only, several
            of these on disjoint ones (149), or a symmetric function of your own: with a
            `prox`, as those of `tacita.problem.prox`, or smooth and convex.
        h: A function of every node's own model, of `tacita.problem.prox`: `L1(0.1)`, a
            `Box`, an `L2Ball`. Its numbers are common, or one per node.

    Example:
        >>> import tacita
        >>> ring = tacita.problem.graph.ring(6)
        >>> linear = tacita.problem.synthetic.linear
        >>> nodes = linear(6, features=2, samples=9, graph=ring)
        >>> gtv = GTVMin(nodes, alpha=0.5)
        >>> models = gtv.solve()
        >>> models.shape, bool(np.abs(gtv.gradient(models)).max() < 1e-9)
        ((6, 2), True)
    """

    def __init__(
        self, problem: Problem, alpha: float, penalty: Any = "squared", h: Any = None
    ):
        if problem.graph is None:
            check.refuse("GTVMin needs a graph; pass graph= to the problem")
        if problem.h is not None:
            check.refuse(
                "a problem's h is added once, for one model, and nodes have their own; "
                "use a problem with h=None, and GTVMin(..., h=...) for every node's"
            )
        self.problem = problem
        self.graph: Graph = problem.graph
        check.not_negative(alpha=check.common(alpha=check.given(alpha=alpha)))
        self.alpha = float(alpha)
        self.penalty = penalties.of(penalty)
        known = penalties.Penalty | penalties.Combined | penalties.OwnPenalty
        if not isinstance(self.penalty, known):
            check.refuse(f"expected penalty one of {penalties.KINDS} or a Penalty")
        self.penalty.check(problem.dim)
        self.h = nodes.required(h, problem.dim, problem.n_agents)

    def __repr__(self) -> str:
        own = "" if self.h is None else f", h={type(self.h).__name__}"
        told = f"alpha={self.alpha:g}, {self.penalty}{own}"
        return f"GTVMin({self.problem.name}, {told})"

    @in_double_precision
    def variation(self, w: Any) -> float:
        """The total variation sum_{edges} A_ij phi(w_i - w_j)."""
        _, _, weights, differences = self._edges(self._point(w))
        values = penalties.on_edges(self.penalty, "__call__", differences)
        return float(jnp.sum(weights * values))

    def objective(self, w: Any) -> float:
        """sum_i f_i(w_i) + h(w_i) + alpha sum_{edges} A_ij phi(w_i - w_j).

        Of models w, (N, d); infinite outside a constraint of the nodes.
        """
        w = self._point(w)
        return self.problem.loss(w) + self.alpha * self.variation(w) + self._own(w)

    @in_double_precision
    def _own(self, w: np.ndarray) -> float:
        return 0.0 if self.h is None else float(nodes.total(self.h, jnp.asarray(w)))

    def gradient(self, w: Any) -> np.ndarray:
        """The gradient, (N, d), without h; of a norm's kinks the shortest one."""
        w = self._point(w)
        return self.problem.grad(w) + self.alpha * self._variation_gradient(w)

    @in_double_precision
    def _variation_gradient(self, w: np.ndarray) -> np.ndarray:
        if self.penalty.smooth:
            # grad of sum A_ij ||w_i - w_j||^2 is 2 L w, coordinate by coordinate.
            return 2 * self.penalty.curvature * (self.graph.laplacian() @ w)
        i, j, weights, differences = self._edges(w)
        slopes = penalties.on_edges(self.penalty, "grad", differences)
        flows = np.asarray(weights)[:, None] * np.asarray(slopes)
        ends = np.concatenate([np.ones(len(i)), -np.ones(len(j))])
        numbers = np.tile(np.arange(len(i)), 2)
        places = (np.concatenate([i, j]), numbers)
        return sp.csr_array((ends, places), shape=(len(w), len(i))) @ flows

    def solve(self, tolerance: float | None = None, method: str = "auto") -> np.ndarray:
        """The minimiser, (N, d), in float64.

        Linear models with a squared penalty are solved by a sparse factorisation when
        small and by preconditioned conjugate gradients when large; other smooth models
        by Newton's method; norms, and an h at nodes, by the primal-dual method.

        Args:
            tolerance: Relative residual at which to stop; None takes 1e-10 for
                conjugate gradients, 1e-12 for Newton's method and 1e-11 for norms. A
                factorisation is exact to rounding.
            method: "auto", or for linear models with a squared penalty "factor" or
                "conjugate_gradients".
        """
        return solution.solve(self, tolerance, method)

    def dual(self, flows: Any) -> float:
        """The dual objective (68) at flows along `graph.pairs()`, (edges, d)."""
        return dual.value(self, flows)

    def certificate(self, tolerance: float | None = None) -> dual.Certificate:
        """The minimiser with flows that prove it: primal and dual value, and the gap.

        Args:
            tolerance: Where the solver stops, as in `solve`.

        >>> import tacita
        >>> ring = tacita.problem.graph.ring(4)
        >>> nodes = tacita.problem.synthetic.linear(4, features=2, graph=ring)
        >>> bool(abs(GTVMin(nodes, 0.3, "l2").certificate().gap) < 1e-8)
        True
        """
        check.positive(tolerance=tolerance)
        return dual.certificate(self, *solution.with_flows(self, tolerance))

    def gap(self) -> Callable[[Any, Any], Any]:
        """A metric of runs: how far nodes are above the smallest objective, at most.

        It is their objective less the dual value of the certificate, which no models
        are below: a rule to stop by, and a curve of the report.

        >>> import tacita
        >>> ring = tacita.problem.graph.ring(4)
        >>> nodes = tacita.problem.synthetic.linear(4, features=2, graph=ring)
        >>> near = dict(record=[GTVMin(nodes, 0.3).gap()], stop={"gap": 1e-8})
        >>> run = tacita.simulate(nodes, tacita.FedRelax(alpha=0.3), 500, **near)
        >>> bool(run.metrics["gap"][-1] <= 1e-8 < run.metrics["gap"][-2])
        True
        """
        return dual.metric(self)

    def clusters(self, w: Any, tolerance: float | None = None) -> np.ndarray:
        """Which nodes were given the same model: a number for every node.

        Nodes are in one cluster if a path of edges joins them along which models
        differ by at most `tolerance` (in the coupled coordinates); None takes a
        millionth of the longest model.
        """
        w = self._point(w)
        i, j, _, differences = self._edges(w)
        mask = np.asarray(self.penalty.mask(self.problem.dim))
        check.not_negative(tolerance=tolerance)
        if tolerance is None:
            tolerance = 1e-6 * float(np.linalg.norm(w * mask, axis=1).max())
        same = np.linalg.norm(differences * mask, axis=1) <= tolerance
        n = len(w)
        kept = sp.csr_array((np.ones(same.sum()), (i[same], j[same])), shape=(n, n))
        return csgraph.connected_components(kept, directed=False)[1]

    def _point(self, w: Any) -> np.ndarray:
        array = np.asarray(w, dtype=np.float64)
        expected = (self.problem.n_agents, self.problem.dim)
        return np.asarray(check.shape(expected, w=array))

    def _edges(self, w: np.ndarray) -> tuple[Any, Any, Any, Any]:
        """Both ends of every edge, its weight and the models' difference along it."""
        i, j, weights = self.graph.pairs()
        return i, j, weights, w[i] - w[j]


def convex_clustering(points: Any, graph: Any, name: str = "convex clustering") -> Any:
    """The problem with f_i(w) = ||w - a_i||^2, a_i the i-th point, (67).

    `GTVMin(convex_clustering(points, graph), alpha, "l2")` is convex clustering: the
    larger alpha, the fewer different models are left; `GTVMin.clusters` finds them.

    Args:
        points: a_i, shape (nodes, d).
        graph: Which points are held together.
        name: Shown in reports.
    """
    a = np.asarray(check.finite(points=points), dtype=np.float64)
    check.shape((None, None), points=a)
    n, d = a.shape
    # d rows sqrt(d) e_k with label sqrt(d) a_k: their mean squared error is the loss.
    x = np.tile(np.sqrt(d) * np.eye(d), (n, 1))
    y = (np.sqrt(d) * a).ravel()
    owner = np.repeat(np.arange(n), d)
    made = from_arrays(x, y, owner, model="linear", name=name)
    network = graph if isinstance(graph, Graph) else Graph.from_networkx(graph)
    if len(network.nodes) != n:
        check.refuse(f"expected a graph with {n} nodes, one per point, got {network}")
    return replace(made, ids=network.nodes, graph=network)
