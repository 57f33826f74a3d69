"""The dual of GTVMin, and the gap that proves a solution.

A. Jung, "Federated Learning: From Theory to Practice", (68)-(71). With a flow y_e on
every edge and s_i, the flows into node i less those out of it,

    minimise  sum_i f_i(w_i) + sum_e c_e phi(w_i - w_j),      c_e = alpha A_e
    maximise  - sum_i f_i*(s_i) - sum_e (c_e phi)*(y_e)

and no dual value exceeds a primal one: where they meet, both are solved. Of a norm the
conjugate is zero in the ball of radius c_e of the dual norm, and infinite outside it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from tacita import check
from tacita.problem import moduli, units
from tacita.problem.gtv import p_norm
from tacita.problem.gtv.penalty import KINDS, Combined, OwnPenalty, Penalty, on_edges
from tacita.problem.model.linear import Linear, Logistic, Softmax
from tacita.problem.model.per_agent import kinds_of
from tacita.problem.newton import root, shortest
from tacita.problem.solve import in_float64
from tacita.trees import double_precision

if TYPE_CHECKING:
    from tacita.problem.gtv.gtvmin import GTVMin
    from tacita.problem.problem import Problem

#: Flows this much too long, relatively, are so by rounding.
_ROUNDING = 1e-9


class Certificate(NamedTuple):
    """A solution of GTVMin with its proof.

    Attributes:
        models: Every node's model, (N, d).
        flows: What runs along every edge of `graph.pairs()`, (edges, d).
        primal: The objective at the models.
        dual: The dual objective at the flows: no models have a smaller objective.
    """

    models: np.ndarray
    flows: np.ndarray
    primal: float
    dual: float

    @property
    def gap(self) -> float:
        """How far the objective is from the smallest one, at most."""
        return self.primal - self.dual


def certificate(gtv: GTVMin, w: np.ndarray, flows: np.ndarray) -> Certificate:
    """These models and flows with their values, both in float64."""
    dual = value(gtv, flows)
    with double_precision():
        primal = float(_primal(gtv)(jnp.asarray(w)))
    return Certificate(w, flows, primal, dual)


def _primal(gtv: GTVMin) -> Callable[[Any], Any]:
    """The objective at float64 models, whatever the rows' type, for JAX to trace.

    Without an h, of which no dual is known.
    """
    with double_precision():
        population = in_float64(gtv.problem.population)
        i, j, weights = (jnp.asarray(part) for part in gtv.graph.pairs())

    def primal(w: Any) -> Any:
        apart = on_edges(gtv.penalty, "__call__", w[i] - w[j])
        return population.smooth_loss(w) + gtv.alpha * jnp.sum(weights * apart)

    return primal


def metric(gtv: GTVMin) -> Callable[[Any, Any], Any]:
    """The objective at agents' models less the largest dual value, for JAX to trace."""
    least = gtv.certificate().dual
    if not np.isfinite(least):
        check.refuse(
            "no dual value bounds the objective: some node's loss has no minimum under "
            "its flows; add l2 > 0"
        )
    primal = _primal(gtv)

    def gap(shared: Any, agents: Any) -> Any:
        return primal(agents.astype(jnp.float64)) - least

    return gap


def value(gtv: GTVMin, flows: Any) -> float:
    """The dual objective at flows (edges, d); minus infinity where they are too long.

    A node whose loss has no minimum under its flows makes it minus infinity too, but
    for flows that are rounding beside what slopes and flows are in the network.
    """
    i, j, weights = (np.asarray(part) for part in gtv.graph.pairs())
    problem = gtv.problem
    y = np.asarray(check.finite(flows=flows), np.float64)
    check.shape((len(i), problem.dim), flows=y)
    known = Linear | Logistic | Softmax
    if not all(isinstance(model, known) for model in kinds_of(problem.model)):
        check.refuse(
            "the dual needs a linear, logistic or softmax model; for others stop by "
            "the objective, and compare with solve()"
        )
    if gtv.h is not None:
        check.refuse("the dual of GTVMin with an h at nodes is not known; run solve()")
    _require_convex(problem)
    net = np.zeros((problem.n_agents, problem.dim))
    np.add.at(net, i, -y)
    np.add.at(net, j, y)
    longest = np.zeros_like(net)
    np.maximum.at(longest, i, np.abs(y))
    np.maximum.at(longest, j, np.abs(y))
    along = _edge_conjugates(gtv, y, gtv.alpha * weights)
    return -float(np.sum(_node_conjugates(gtv, net, longest))) - along


def _require_convex(problem: Problem) -> None:
    """Refuse losses of which a point without slope may be no minimum."""
    bent = problem.population.regulariser.curvature_bounds[0]
    if bent < 0 and moduli.of(problem.population).smallest < 0:
        name = type(problem.population.regulariser).__name__
        check.refuse(
            f"the dual needs convex losses, got regulariser={name} of curvature down "
            f"to {float(bent):g}; use l2="
        )


def _edge_conjugates(gtv: GTVMin, y: np.ndarray, reach: np.ndarray) -> float:
    """Sum over edges of (c_e phi)*(y_e)."""
    penalty: Any = gtv.penalty
    if isinstance(penalty, OwnPenalty):
        check.refuse(
            f"the dual needs one of the penalties {KINDS}; run solve() instead"
        )
    parts = penalty.parts if isinstance(penalty, Combined) else (penalty,)
    free = 1 - np.asarray(penalty.mask(y.shape[1]))
    if np.abs(y * free).max(initial=0.0) > _ROUNDING * np.abs(y).max(initial=0.0):
        return np.inf  # a flow in coordinates that are nobody's
    return sum(_conjugate(part, y, reach) for part in parts)


def _conjugate(part: Penalty, y: np.ndarray, reach: np.ndarray) -> float:
    radius = reach * float(part.strength)
    mine = y * np.asarray(part.mask(y.shape[1]))
    if part.kind == "squared":
        squares = np.sum(mine**2, axis=1)
        if np.any((radius == 0) & (squares > 0)):
            return np.inf
        # (c ||.||^2)*(y) = ||y||^2 / (4 c)
        return float(np.sum(squares / (4 * np.where(radius > 0, radius, 1.0))))
    # The dual norm of l1 is the largest entry and the other way round; l2 is its own.
    known = {"l2": 2, "l1": np.inf, "linf": 1}
    order = known.get(part.kind) or p_norm.dual_of(float(part.p))
    lengths = np.linalg.norm(mine, order, axis=1)
    return np.inf if np.any(lengths > radius * (1 + _ROUNDING)) else 0.0


def _node_conjugates(gtv: GTVMin, net: np.ndarray, longest: np.ndarray) -> np.ndarray:
    """f_i*(s_i) = max_w <s_i, w> - f_i(w) of every node, and its longest flows."""
    with double_precision():
        population = in_float64(gtv.problem.population)
        start = jnp.asarray(gtv.problem.start, jnp.float64)
        flows = jnp.asarray(net), jnp.asarray(longest)
        usual = units.of_slopes(population) + longest.max(axis=0)
        values, left = _maxima(population, start, *flows, jnp.asarray(usual))
    return np.where(np.asarray(left) <= _ROUNDING, np.asarray(values), np.inf)


@jax.jit
def _maxima(
    population: Any, start: Any, net: Any, longest: Any, usual: Any
) -> tuple[Any, Any]:
    """The maxima of <s_i, w> - f_i(w), and what is left of slopes, of their parts.

    Of what slopes and flows `usual`ly are in the network, where a node's own are less:
    what runs into a node without rows at the end of a path is rounding alone.
    """

    def one(rows: Any, s: Any, flows: Any) -> tuple[Any, Any]:
        local = population.local(rows)
        # In units in which features of any size are alike.
        unit = 1 / units.of_own_columns(local)

        def slope(w: Any) -> Any:
            return unit * (local.grad(unit * w) - s)

        # A node with few rows, or none, is flat in some directions. Along these a step
        # would go as far as rounding drives it.
        w = unit * root(slope, start / unit, solve=shortest)
        # Flows of one coordinate move the scores, and these pull at all of them.
        parts = units.of_residuals(local) + jnp.max(unit * flows)
        left = jnp.abs(local.grad(w) - s) / jnp.maximum(parts / unit, usual)
        return jnp.dot(s, w) - local.loss(w), jnp.max(left)

    return jax.vmap(one)(population.rows, net, longest)
