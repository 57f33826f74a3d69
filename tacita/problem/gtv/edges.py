"""GTVMin with norms, or with an h at nodes, solved exactly by flows on the edges.

The primal-dual method of A. Chambolle and T. Pock on the incidence operator, all nodes
and edges at once; `tacita.PrimalDual` is the same method as nodes can run it. Nodes
answer exactly, see `problem.proximal`. A function h of a node's own model is one edge
more, from the node to zero: with it the operator has a row of the identity per node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.problem import moduli, proximal, units
from tacita.problem.gtv import nodes
from tacita.problem.gtv import penalty as penalties
from tacita.problem.model.linear import Kinked
from tacita.problem.model.per_agent import PerAgent, kinds_of
from tacita.problem.population import Population
from tacita.problem.solve import in_float64
from tacita.trees import double_precision

if TYPE_CHECKING:
    from tacita.problem.gtv.gtvmin import GTVMin
    from tacita.problem.problem import Problem

#: Steps between looks at the residual.
_CHECK_EVERY = 50
_MOST_CHECKS = 8_000
#: Slopes that flows leave, of their size: far above what rounding leaves of them.
_UNBALANCED = 1e-6


class _Edges(NamedTuple):
    """The edges, each once, as the primal-dual method needs them."""

    i: Array
    j: Array
    reach: Array  # 2 alpha A_e
    counts: Array  # edges at every node, the one to zero included where there is an h

    def at_nodes(self, flows: Array, own: Array) -> Array:
        """Mean over a node's edges of the flow out of it, (N, d)."""
        n = self.counts.shape[0]
        out = jax.ops.segment_sum(flows, self.i, n)
        back = jax.ops.segment_sum(flows, self.j, n)
        return (out - back + own) / jnp.maximum(self.counts, 1)[:, None]


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
            jnp.asarray(2 * gtv.alpha * weights),
            jnp.asarray(graph.neighbour_counts, jnp.float64) + (gtv.h is not None),
        )
        penalty = penalties.in_dtype(gtv.penalty, np.float64)
        problems = population, penalty, nodes.stacked(gtv.h, problem.n_agents)
        unit = units.of(problem.population).models
        w, flows, left = _run_primal_dual(*problems, edges, rho, tolerance, unit)
    if not float(left) <= 100 * tolerance:
        check.refuse(
            f"the primal-dual method stopped at a residual of {float(left):.1e}; add "
            "l2 > 0, or loosen tolerance="
        )
    models, along = np.asarray(w), np.asarray(flows)
    _require_balance(gtv, models, along, tolerance)
    return models, along


def _require_balance(
    gtv: GTVMin, w: np.ndarray, flows: np.ndarray, tolerance: float
) -> None:
    """Refuse models that rest because steps are short: slopes must balance flows."""
    kinked = any(isinstance(one, Kinked) for one in kinds_of(gtv.problem.model))
    if kinked or gtv.h is not None:
        return  # of these one slope of many would be looked at
    i, j, _ = gtv.graph.pairs()
    left = np.array(gtv.problem.grad(w), np.float64)
    np.add.at(left, i, flows)
    np.add.at(left, j, -flows)
    longest = np.abs(flows).max(axis=0, initial=0.0)
    sizes = units.of_slopes(gtv.problem.population) + longest
    worst = float(np.max(np.abs(left).max(axis=0) / sizes))
    if not worst <= max(_UNBALANCED, 100 * tolerance):
        check.refuse(
            f"the primal-dual method came to rest with {worst:.1e} of the slopes left; "
            "scale the features, whose sizes may be very different"
        )


def edge_rho(problem: Problem) -> float:
    """A penalty per edge that matches the curvature of a node's loss."""
    assert problem.graph is not None
    count = max(1.0, float(np.mean(problem.graph.neighbour_counts)))
    usual = usual_curvature(problem)
    return (usual if usual > 0 else 1e-6) / count


def usual_curvature(problem: Problem) -> float:
    """The curvature of a node's loss, by the bound on rows if there is one."""
    # Losses with kinks have no curvature of their own: that of the others will do.
    if problem.bound is None and isinstance(problem.model, PerAgent | Kinked):
        return moduli.usual_curvature(problem.population)
    if any(isinstance(model, Kinked) for model in kinds_of(problem.model)):
        return moduli.usual_within(problem.population, float(problem.bound or 0))
    return problem.moduli.usual


class _Carry(NamedTuple):
    """Where the method is."""

    w: Array
    u: Array  # flows along edges over rho
    z: Array  # flows to zero over rho, where there is an h
    rho: Array
    left: Array  # how far the last step still moved
    checks: Array


@jax.jit
def _run_primal_dual(
    population: Population,
    penalty: Any,
    h: Any,
    edges: _Edges,
    rho: Any,
    until: Any,
    unit: Any,
) -> tuple[Array, Array, Array]:
    """Models, flows, and how far the last step still moved; h is stacked, or None."""
    d = population.model.dim
    mask = jnp.asarray(penalty.mask(d)) if h is None else jnp.ones(d)
    counts = edges.counts[:, None]
    # A node with kinks in its loss has to be held everywhere: where no edge does that,
    # to where it was, so that it comes to its minimiser step by step.
    kinked = jnp.reshape(_have_kinks(population), (-1, 1))
    held = jnp.where(kinked, jnp.maximum(counts, 1), counts * mask)

    def own_steps(w: Array, v: Array, rho: Array) -> Array:
        def one(rows: Any, w: Array, v: Array, pull: Array) -> Array:
            return proximal.toward(population.local(rows), w, v, pull)

        return jax.vmap(one)(population.rows, w, v, rho * held)

    def kept_by_h(v: Array, rho: Array) -> Array:
        return jax.vmap(lambda one, u: one.prox(u, 1 / rho))(h, v)

    def step(_: Any, now: _Carry) -> _Carry:
        w, u, z, rho = now[:4]
        # (71): the flow is projected on the dual ball of radius alpha A_e.
        q = w[edges.i] - w[edges.j] + 2 * u
        kept = jax.vmap(lambda a, t: penalty.prox(a, t))(q, edges.reach / rho)
        fresh = (q - kept) / 2
        new = z if h is None else w + z - kept_by_h(w + z, rho)
        away = edges.at_nodes(2 * fresh - u, 2 * new - z)
        return now._replace(w=own_steps(w, w - away, rho), u=fresh, z=new)

    def body(before: _Carry) -> _Carry:
        was = jax.lax.fori_loop(0, _CHECK_EVERY - 1, step, before)
        new = step(0, was)
        moved = [_largest(a - b) for a, b in zip(new[:3], was[:3], strict=True)]
        # Flows have the size that rho gives them: they are measured by their own, or
        # by a small part of the models', below which they are rounding.
        size = unit + _largest(new.w)
        sizes = [size, *(jnp.maximum(_largest(u), 1e-3 * size) for u in new[1:3])]
        rests = [m / one for m, one in zip(moved, sizes, strict=True)]
        left = jnp.max(jnp.stack(rests))
        new = new._replace(left=left, checks=before.checks + 1)
        return _balanced(was, new)

    def go_on(now: _Carry) -> Array:
        return (now.left > until) & (now.checks < _MOST_CHECKS)

    zero = jnp.zeros((population.n_agents, d))
    flows = jnp.zeros((edges.i.shape[0], d))
    first = _Carry(
        zero, flows, zero, jnp.asarray(rho), jnp.asarray(jnp.inf), jnp.asarray(0)
    )
    end = jax.lax.while_loop(go_on, body, first)
    # What h left of it is where w is, and keeps its zeros and its constraints.
    w = end.w if h is None else kept_by_h(end.w + end.z, end.rho)
    return w, end.rho * end.u, end.left


def _balanced(was: _Carry, now: _Carry) -> _Carry:
    """Rho changed so that models and flows come to rest together.

    Each is measured by how far it still moves, relative to its size. Less and less
    often, for the method converges with any rho that stays.
    """
    moved = jax.tree.map(jnp.subtract, now[:3], was[:3])
    flowed = jnp.hypot(jnp.linalg.norm(moved[1]), jnp.linalg.norm(moved[2]))
    flows = jnp.hypot(jnp.linalg.norm(now.u), jnp.linalg.norm(now.z))
    models = jnp.linalg.norm(moved[0]) * jnp.linalg.norm(now.w)
    ratio = jnp.sqrt(flowed * flows / models)
    due = (now.checks & (now.checks - 1)) == 0  # after 1, 2, 4, 8, ... checks
    usable = due & jnp.isfinite(ratio) & (ratio > 0)
    change = jnp.where(usable, jnp.clip(ratio, 0.1, 10.0), 1.0)
    return now._replace(u=now.u / change, z=now.z / change, rho=now.rho * change)


def _have_kinks(population: Population) -> Any:
    """Whether the losses of all nodes have kinks, or which of them do."""
    model = population.model
    if not isinstance(model, PerAgent):
        return isinstance(model, Kinked)
    kinked = jnp.asarray([isinstance(one, Kinked) for one in model.models])
    return kinked[population.rows.kind]


def _largest(values: Array) -> Array:
    """The largest entry in size; 0 where there is none, as on a graph without edges."""
    return jnp.max(jnp.abs(values), initial=0.0)
