"""PrimalDual: GTVMin with norms, by dual variables on the edges.

A. Jung, "Federated Learning: From Theory to Practice", (48) and its dual (68)-(71): for

    sum_i f_i(w_i) + alpha sum_{edges} A_ij phi(w_i - w_j)

with phi a norm, the dual variable (the flow) of an edge lies in the ball of radius
alpha A_ij of the dual norm. The method is that of A. Chambolle and T. Pock (J. Math.
Imaging Vis. 40, 2011) on the incidence operator, with the diagonal steps of their paper
of ICCV 2011: 1/(rho n_i) at a node with n_i neighbours and rho/2 on an edge. It is also
the network lasso's ADMM (D. Hallac, J. Leskovec, S. Boyd, KDD 2015).

Each end of an edge keeps a flow u_ij of its own, in units of rho, and writes
w_i + u_ij along it. In step, u_ji = -u_ij; out of step the two ends differ for a while,
but agree wherever the method comes to rest, so it can also be run asynchronously. A
function h(w_i) of every node's model is one edge more, from the node to zero: the node
keeps its flow z_i and counts one neighbour more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.algorithm.base import Delivery, Edges, Number
from tacita.algorithm.coupled import SolvedByNodes, own_function
from tacita.algorithm.solvers import Solver
from tacita.problem.gtv import penalty as penalties
from tacita.problem.gtv.edges import edge_rho
from tacita.problem.oracles import AgentOracle, Full, Oracle
from tacita.trees import flag, frozen, needed, number

if TYPE_CHECKING:
    from tacita.problem.problem import Problem


class State(NamedTuple):
    """One node's memory."""

    w: Array  # w_i, its own model
    u: Array  # u_ij / rho, the flow out along each of its edges, (slots, d)
    z: Array  # z_i / rho, what h takes of it, (d,); no number where there is no h


@frozen
class PrimalDual(SolvedByNodes):
    """Proximal steps at the nodes, projected flows on the edges.

    Attributes:
        alpha: Strength of the coupling along edges.
        penalty: phi: "l2" (the network lasso), "l1", "linf", "l3" or another p-norm,
            "squared", a `Penalty` that couples some coordinates, several on disjoint
            ones, or one of your own.
        h: A function of every node's own model, such as `tacita.problem.prox.L1(0.1)`
            or a `Box`, with common numbers or one per node; None for none.
        rho: Trades steps of the models against steps of the flows; every positive
            number converges. None matches it to the curvature of the losses.
        solver: How a node solves its own problem: None exactly, or a local solver.
        oracle: How nodes compute gradients, for solvers that use them.
        need_connected: Refuse a graph that falls into several parts.
    """

    alpha: float = needed(check.not_negative, common=True)
    penalty: Any = penalties.coupling("l2", "l1", "linf", "squared")
    h: Any = own_function()
    rho: Number = number(check.positive, theory=edge_rho, common=True)
    solver: Solver | None = None
    oracle: Oracle = Full()
    need_connected: bool = flag(True)

    purpose: ClassVar[str] = "a model for every node, neighbours equal up to jumps"
    source: ClassVar[str] = "A. Jung, Federated Learning, (68)-(71)"
    delivery: ClassVar[Delivery] = Delivery.SLOTS

    def pulls(self, problem: Problem) -> np.ndarray:
        """Rho n_i; an h counts as a neighbour."""
        assert problem.graph is not None
        counts = np.asarray(problem.graph.neighbour_counts, float)
        return self.rho * np.maximum(counts + (self.h is not None), 1)

    def held(self, problem: Problem) -> np.ndarray:
        """Where there are neighbours, if every coordinate is coupled; all by an h."""
        assert problem.graph is not None
        if self.h is not None:
            return np.ones(problem.n_agents, bool)
        coupled = bool(np.all(self.penalty.mask(problem.dim) > 0))
        return (np.asarray(problem.graph.neighbour_counts) > 0) & coupled

    def init(self, w: Array, edges: Edges) -> tuple[State, Array]:
        """No flow; the neighbours are told w."""
        u = jnp.zeros((edges.mask.shape[0], *w.shape), w.dtype)
        first = State(w, u, jnp.zeros(0 if self.h is None else w.shape, w.dtype))
        return first, self._letters(first, edges)

    def _letters(self, state: State, edges: Edges) -> Array:
        return jnp.where(edges.mask[:, None], state.w + state.u, 0)

    def local(
        self, key: Array, oracle: AgentOracle, edges: Edges, state: State, inbox: Array
    ) -> tuple[State, Array]:
        """Project the flows, then one proximal step against them."""
        w, u, z = state
        # (71): the flow u + (w_i - w_j)/2 is projected on the dual ball of radius
        # alpha A_ij / rho; by Moreau that is what the penalty's prox takes away.
        gap = w + u - inbox
        reach = jnp.asarray(2 * self.alpha * edges.weight / self.rho, w.dtype)
        kept = jax.vmap(lambda a, t: self.penalty.prox(a, t))(gap, reach)
        fresh = jnp.where(edges.mask[:, None], (gap - kept) / 2, 0)
        # (69): w_i <- argmin f_i(v) + (rho n_i / 2) ||v - w_i + mean_j(2 u+ - u)||^2
        away = jnp.sum(2 * fresh - u, axis=0)
        count = edges.neighbour_count.astype(w.dtype)
        if self.h is not None:
            # The same for the edge to zero: z + w less what prox_{h/rho} leaves of it.
            after = w + z - self.h.prox(w + z, jnp.asarray(1 / self.rho, w.dtype))
            away, count, z = away + 2 * after - z, count + 1, after
        centre = w - away / jnp.maximum(count, 1)
        pull = self.rho * count
        if self.penalty.masked and self.h is None:
            pull = pull * jnp.asarray(self.penalty.mask(len(w)), w.dtype)
        pull = jnp.asarray(pull, w.dtype)
        w = self.answer(key, oracle, w, centre, pull)
        done = State(w, fresh, z)
        return done, self._letters(done, edges)
