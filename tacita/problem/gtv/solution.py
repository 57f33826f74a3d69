"""The exact solution of GTVMin, in float64: what algorithms are tested against.

Linear models with a squared penalty: the linear system Q w = -q/2 of (57)-(58), by a
sparse factorisation when small, by conjugate gradients with the nodes' own blocks as a
preconditioner when large. Other smooth models: Newton's method, its steps found by
conjugate gradients. Norms, losses with kinks beside others, and an h at the nodes: the
primal-dual method on the edges, in `gtv.edges`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jax import Array
from jax.scipy.sparse.linalg import cg
from scipy.sparse.linalg import splu

from tacita import check
from tacita.problem import newton, units
from tacita.problem.graph import Graph, neighbour_sum
from tacita.problem.gtv import absolute, edges
from tacita.problem.model import ridge
from tacita.problem.model.linear import Huber, Kinked, Linear, Logistic, Softmax
from tacita.problem.model.per_agent import kinds_of
from tacita.problem.population import Population
from tacita.problem.solve import falls_for_ever, in_float64
from tacita.trees import double_precision

if TYPE_CHECKING:
    from tacita.problem.gtv.gtvmin import GTVMin
    from tacita.problem.problem import Problem

METHODS = ("auto", "factor", "conjugate_gradients")
#: Up to this many unknowns the system is factorised: random graphs fill in quickly.
_FACTOR = 4000
#: Pivots smaller than this share of the largest are rounding errors.
_SINGULAR = 1e-14
_MOST_STEPS = 20_000


class System(NamedTuple):
    """The Hessian of GTVMin with a squared penalty, as products with vectors."""

    population: Population
    graph: Graph
    coupling: Any  # 2 alpha c_k for every coordinate k, or one number
    degrees: Array

    def product(self, w: Array, v: Array) -> Array:
        """The Hessian at w times v, both (N, d)."""
        curvature = jax.jvp(self.population.grad, (w,), (v,))[1]
        return curvature + self.pulled(v)

    def pulled(self, v: Array) -> Array:
        """2 alpha L v, coordinate by coordinate."""
        spread = self.degrees[:, None] * v - neighbour_sum(self.graph, v)
        return self.coupling * spread

    def gradient(self, w: Array) -> Array:
        """The gradient of the objective."""
        return self.population.grad(w) + self.pulled(w)

    def objective(self, w: Array) -> Array:
        """sum_i f_i(w_i) + alpha sum_edges A_ij phi(w_i - w_j)."""
        gaps = w[self.graph.receivers] - w[self.graph.senders]
        # Every edge is there twice, and the coupling has a factor 2 as well.
        spread = jnp.sum(self.coupling * self.graph.weights[:, None] * gaps**2) / 4
        return self.population.smooth_loss(w) + spread


def solve(gtv: GTVMin, tolerance: float | None, method: str) -> np.ndarray:
    """The minimiser of GTVMin, shape (N, d)."""
    check.positive(tolerance=tolerance)
    check.one_of(METHODS, method=method)
    problem = gtv.problem
    kinked = isinstance(problem.model, Kinked) and gtv.h is None
    if kinked and absolute.takes(gtv):
        return absolute.solve(gtv)
    quadratic = ridge.has_closed_form(problem.population)
    if not _is_smooth(gtv):
        return with_flows(gtv, tolerance)[0]
    _require_known(gtv, Linear | Huber | Logistic | Softmax)
    if quadratic:
        small = problem.n_agents * problem.dim <= _FACTOR
        if method == "factor" or (method == "auto" and small):
            return _factor(gtv)
    with double_precision():
        system = system_of(gtv)
        if quadratic:
            return _linear(system, tolerance or 1e-10)
        return _newton(system, problem, tolerance or 1e-12)


def with_flows(gtv: GTVMin, tolerance: float | None) -> tuple[np.ndarray, np.ndarray]:
    """The minimiser, and the flows along the edges that prove it to be one."""
    if _is_smooth(gtv):
        w = solve(gtv, tolerance, "auto")
        i, j, weights = gtv.graph.pairs()
        # The flow of a smooth penalty is its slope.
        slopes = 2 * gtv.penalty.curvature * (w[i] - w[j])
        return w, gtv.alpha * weights[:, None] * slopes
    _require_known(gtv, Linear | Huber | Kinked | Logistic | Softmax)
    return edges.solve(gtv, tolerance or 1e-11)


def _is_smooth(gtv: GTVMin) -> bool:
    """Whether neither losses nor penalties have kinks, nor nodes constraints."""
    kinked = any(isinstance(model, Kinked) for model in kinds_of(gtv.problem.model))
    return gtv.penalty.smooth and gtv.h is None and not kinked


def _require_known(gtv: GTVMin, known: Any) -> None:
    if not all(isinstance(model, known) for model in kinds_of(gtv.problem.model)):
        check.refuse(
            "solve() needs linear, huber, logistic or softmax models; run "
            f"{'tacita.FedGD' if gtv.penalty.smooth else 'tacita.PrimalDual'}"
        )


def hessian(problem: Problem, alpha: float, curvature: Any = 1.0) -> Any:
    """The Hessian 2 Q of a linear model's GTVMin, sparse, of side N d; (57)."""
    if not ridge.has_closed_form(problem.population) or problem.graph is None:
        check.refuse("the Hessian of GTVMin is constant for linear models only")
    x = problem.stacked()[0].astype(np.float64)
    share = problem.weights / np.maximum(problem.counts, 1)
    blocks = 2 * (x.mT @ x) * share[:, None, None]
    weight = float(problem.population.regulariser.weight)
    blocks = blocks + weight * np.eye(problem.dim)
    each = sp.diags_array(np.broadcast_to(np.asarray(curvature, float), problem.dim))
    coupling = sp.kron(problem.graph.laplacian(), each)
    return (sp.block_diag(list(blocks)) + 2 * alpha * coupling).tocsr()


def right_hand_side(problem: Problem) -> np.ndarray:
    """2 rho_i X_i^T y_i / m_i of every node, (N, d): minus the gradient at zero."""
    x, y, _ = problem.stacked()
    sums = np.einsum("nmd,nm->nd", x, y, dtype=np.float64, casting="same_kind")
    return 2 * sums * (problem.weights / np.maximum(problem.counts, 1))[:, None]


def _factor(gtv: GTVMin) -> np.ndarray:
    problem = gtv.problem
    matrix = hessian(problem, gtv.alpha, gtv.penalty.curvature).tocsc()
    right = right_hand_side(problem)
    try:
        factors = splu(matrix)
    except RuntimeError:
        _refuse_singular()
    pivots = np.abs(factors.U.diagonal())
    if pivots.min() <= _SINGULAR * pivots.max():
        _refuse_singular()
    return factors.solve(right.ravel()).reshape(right.shape)


def _refuse_singular() -> NoReturn:
    check.refuse(
        "GTVMin has no unique solution: in some part of the graph the nodes' rows "
        "together do not determine a model; add l2 > 0, rows or edges"
    )


def system_of(gtv: GTVMin) -> System:
    """What the compiled solvers are given; call with float64 switched on."""
    curvature = np.asarray(gtv.penalty.curvature, np.float64)
    return System(
        in_float64(gtv.problem.population),
        jax.device_put(gtv.graph),
        jnp.asarray(2 * gtv.alpha * curvature),
        jnp.asarray(gtv.graph.degrees, jnp.float64),
    )


def _linear(system: System, tolerance: float) -> np.ndarray:
    """Conjugate gradients on the linear system."""
    w, left = _solve_linear(system, tolerance)
    if not float(left) <= 10 * tolerance:
        check.refuse(
            f"conjugate gradients stopped at a relative residual of {float(left):.1e}; "
            "GTVMin may have no unique solution, add l2 > 0, rows or edges"
        )
    return np.asarray(w)


@jax.jit
def _solve_linear(system: System, tolerance: Any) -> tuple[Array, Array]:
    zero = jnp.zeros((system.population.n_agents, system.population.model.dim))
    right = -system.population.grad(zero)
    inverse = _block_inverses(system)

    def precondition(r: Array) -> Array:
        return jnp.einsum("nde,ne->nd", inverse, r)

    def product(v: Array) -> Array:
        return system.product(zero, v)

    return conjugate_gradients(product, precondition, right, tolerance, _MOST_STEPS)


def _block_inverses(system: System) -> Array:
    """(2 Q_i + l2 + 2 alpha d_i)^-1 of every node, (N, d, d): block Jacobi."""
    population = system.population
    eye = jnp.eye(population.model.dim)

    def one(rows: Any, degree: Array) -> Array:
        local = population.local(rows)
        # A little more than nothing where a node stands alone with too few rows.
        pull = jnp.maximum(system.coupling * degree, 1e-9 * newton.steepest(local))
        return jax.vmap(lambda e: ridge.solve(local, e, pull))(eye)

    return jax.vmap(one)(population.rows, system.degrees)


def conjugate_gradients(
    product: Callable[[Array], Array],
    precondition: Callable[[Array], Array],
    right: Array,
    tolerance: Any,
    most_steps: int,
) -> tuple[Array, Array]:
    """Solve product(x) = right; also returns the relative residual that is left."""
    x, _ = cg(product, right, tol=tolerance, maxiter=most_steps, M=precondition)
    # The recurrence drifts from the truth by rounding: report the truth.
    left = jnp.linalg.norm(right - product(x))
    return x, left / jnp.maximum(jnp.linalg.norm(right), 1e-300)


def _newton(system: System, problem: Problem, tolerance: float) -> np.ndarray:
    """Newton's method with steps by conjugate gradients and a line search."""
    w = jnp.broadcast_to(
        jnp.asarray(problem.start, jnp.float64), (problem.n_agents, problem.dim)
    )
    smoothness = jnp.asarray(problem.moduli.smoothness)[:, None]
    pull = smoothness + system.coupling * system.degrees[:, None]
    # (106): no curvature is larger than the largest at a node and twice the degrees.
    strongest = jnp.max(system.coupling) * jnp.max(system.degrees, initial=0.0)
    safe = 1 / (jnp.max(smoothness) + 2 * strongest)
    best = float(jnp.linalg.norm(system.gradient(w)))
    # All nodes' together are longer than the root of the sum of their squares.
    scale = units.of_slope(problem.population) + best
    for _ in range(400):
        g = system.gradient(w)
        best = float(jnp.linalg.norm(g))
        if best <= tolerance * scale:
            break
        accuracy = min(1e-2, best / scale)
        w, better = _newton_step(system, w, g, 1 / pull, accuracy, safe)
        if not better:
            break
    found = np.asarray(w)
    if best <= 1e-9 * scale and not falls_for_ever(system.objective, found):
        return found
    check.refuse(
        f"no minimiser of GTVMin found (gradient norm {best:.1e}): the losses may have "
        "none, as separable data without l2; add l2 > 0"
    )


@jax.jit
def _newton_step(
    system: System, w: Array, g: Array, inverse: Array, accuracy: Any, safe: Any
) -> tuple[Array, Array]:
    """The next models, and whether they are better."""
    step, _ = conjugate_gradients(
        lambda v: system.product(w, v), lambda r: inverse * r, -g, accuracy, 2000
    )
    steps = [size * step for size in (1.0, 0.5, 0.25, 0.1, 0.02, 1e-3, 1e-5)]
    # Where curvature jumps, as Huber's does, Newton's step may not help; one to the
    # minimum of a parabola above the objective does, and a short one downhill.
    steps.append(-safe * g)
    if any(isinstance(one, Huber) for one in kinds_of(system.population.model)):
        steps.append(_sure_step(system, w, g, inverse, accuracy))
    return newton.best(
        system.objective,
        system.gradient,
        w,
        w + jnp.stack(steps),
        each=lambda f, many: jax.lax.map(f, many),
    )


def _sure_step(
    system: System, w: Array, g: Array, inverse: Array, accuracy: Any
) -> Array:
    population = system.population
    blocks = jax.vmap(lambda rows, u: newton.above(population.local(rows), u))(
        population.rows, w
    )

    def product(v: Array) -> Array:
        return jnp.einsum("nde,ne->nd", blocks, v) + system.pulled(v)

    return conjugate_gradients(product, lambda r: inverse * r, -g, accuracy, 2000)[0]
