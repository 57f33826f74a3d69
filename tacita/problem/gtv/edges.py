"""GTVMin with norms, solved exactly by flows on the edges.

The primal-dual method of A. Chambolle and T. Pock on the incidence operator, all nodes
and edges at once; `tacita.PrimalDual` is the same method as nodes can run it. Nodes
with linear models answer in closed form, with logistic and softmax ones by Newton's
method.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.problem.gtv import penalty as penalties
from tacita.problem.model import ridge
from tacita.problem.newton import exact_prox
from tacita.problem.population import Population
from tacita.problem.solve import in_float64
from tacita.trees import double_precision

if TYPE_CHECKING:
    from tacita.problem.gtv.gtvmin import GTVMin
    from tacita.problem.problem import Problem

#: Steps between looks at the residual.
_CHECK_EVERY = 50
_MOST_CHECKS = 8_000


class _Edges(NamedTuple):
    """The edges, each once, as the primal-dual method needs them."""

    i: Array
    j: Array
    reach: Array  # 2 alpha A_e / rho
    counts: Array  # edges at every node

    def at_nodes(self, flows: Array) -> Array:
        """Mean over a node's edges of the flow out of it, (N, d)."""
        n = self.counts.shape[0]
        out = jax.ops.segment_sum(flows, self.i, n)
        back = jax.ops.segment_sum(flows, self.j, n)
        return (out - back) / jnp.maximum(self.counts, 1)[:, None]


def solve(gtv: GTVMin, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """The minimiser of GTVMin with norms, (N, d), and the flows, (edges, d).

    A flow goes along `graph.pairs()`: at the solution, the gradient of a node's loss
    and the flows out of it less those into it add up to zero.
    """
    problem, graph = gtv.problem, gtv.graph
    with double_precision():
        population = in_float64(problem.population)
        rho = edge_rho(problem)
        i, j, weights = graph.pairs()
        edges = _Edges(
            jnp.asarray(i),
            jnp.asarray(j),
            jnp.asarray(2 * gtv.alpha * weights / rho),
            jnp.asarray(graph.neighbour_counts, jnp.float64),
        )
        penalty = penalties.in_dtype(gtv.penalty, np.float64)
        w, u, left = _run_primal_dual(population, penalty, edges, rho, tolerance)
    if not float(left) <= 100 * tolerance:
        check.refuse(
            f"the primal-dual method stopped at a residual of {float(left):.1e}; add "
            "l2 > 0, or loosen tolerance="
        )
    return np.asarray(w), rho * np.asarray(u)


def edge_rho(problem: Problem) -> float:
    """A penalty per edge that matches the curvature of a node's loss."""
    assert problem.graph is not None
    count = max(1.0, float(np.mean(problem.graph.neighbour_counts)))
    return max(problem.moduli.usual, 1e-6) / count


@jax.jit
def _run_primal_dual(
    population: Population, penalty: Any, edges: _Edges, rho: Any, tolerance: Any
) -> tuple[Array, Array, Array]:
    d = population.model.dim
    mask = jnp.asarray(penalty.mask(d))
    pulls = rho * edges.counts[:, None] * mask

    def proximal(w: Array, v: Array) -> Array:
        def one(rows: Any, w: Array, v: Array, pull: Array) -> Array:
            local = population.local(rows)
            if ridge.has_closed_form(local):
                return ridge.toward(local, v, pull)
            return exact_prox(local, w, v, 1 / pull)

        return jax.vmap(one)(population.rows, w, v, pulls)

    def step(w: Array, u: Array) -> tuple[Array, Array]:
        # (71): the flow is projected on the dual ball of radius alpha A_e.
        q = w[edges.i] - w[edges.j] + 2 * u
        kept = jax.vmap(lambda a, t: penalty.prox(a, t))(q, edges.reach)
        fresh = (q - kept) / 2
        return proximal(w, w - edges.at_nodes(2 * fresh - u)), fresh

    def body(carry: tuple) -> tuple:
        w, u, _, k = carry
        w, u = jax.lax.fori_loop(0, _CHECK_EVERY - 1, lambda _, c: step(*c), (w, u))
        new, fresh = step(w, u)
        size = 1 + jnp.maximum(_largest(new), _largest(fresh))
        moved = jnp.maximum(_largest(new - w), _largest(fresh - u))
        return new, fresh, moved / size, k + 1

    def go_on(carry: tuple) -> Array:
        return (carry[2] > tolerance) & (carry[3] < _MOST_CHECKS)

    zero = jnp.zeros((population.n_agents, d))
    flows = jnp.zeros((edges.i.shape[0], d))
    first = (zero, flows, jnp.asarray(jnp.inf), 0)
    w, u, left, _ = jax.lax.while_loop(go_on, body, first)
    return w, u, left


def _largest(values: Array) -> Array:
    """The largest entry in size; 0 where there is none, as on a graph without edges."""
    return jnp.max(jnp.abs(values), initial=0.0)
