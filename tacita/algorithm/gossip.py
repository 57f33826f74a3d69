"""Gossip: nodes average models with their neighbours between gradient steps.

GossipSGD is decentralised SGD (X. Lian et al., NeurIPS 2017), which with clipped, noisy
gradients is the decentralised DP-SGD that private methods on graphs are measured
against. GradientTracking (A. Nedic, A. Olshevsky, W. Shi, "DIGing", SIAM J. Optim.
2017) also gossips an estimate of the mean gradient, and is exact without noise.

Both mix by Metropolis weights, which every node knows from its neighbours' degrees:

    W_ij = 1/(1 + max(E_i, E_j))  on edges,      W_ii = 1 - sum_j W_ij
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import jax.numpy as jnp
from jax import Array

from tacita.algorithm.base import (
    Delivery,
    Edges,
    Gradients,
    GraphAlgorithm,
    ModelState,
    Number,
)
from tacita.algorithm.gradient_steps import gradient_steps
from tacita.problem.oracles import AgentOracle, Full, Oracle
from tacita.schedule import rate
from tacita.theory import descent
from tacita.trees import count, frozen

if TYPE_CHECKING:
    from tacita.problem.problem import Problem


def mixed(edges: Edges, own: Array, inbox: Array) -> Array:
    """W_ii own + sum_j W_ij letter_j with Metropolis weights."""
    larger = jnp.maximum(edges.neighbour_count, edges.neighbour_counts)
    weights = jnp.where(edges.mask, 1 / (1 + larger.astype(own.dtype)), 0)
    return own + jnp.einsum("s,sd->d", weights, inbox - own)


def to_all(edges: Edges, letter: Array) -> Array:
    """The same letter on every edge; zero where there is none."""
    return jnp.where(edges.mask[:, None], letter, jnp.zeros((), letter.dtype))


@frozen
class GossipSGD(GraphAlgorithm):
    """Mix models with the neighbours, then take local gradient steps.

    It is biased where nodes differ; the bias shrinks with the step size.

    Silent nodes, late letters and lost ones change the way, not the end. Mixing takes
    weighted means, so it lengthens no node's error beyond the longest; a step with
    step_size <= 1/L_i shrinks it by 1 - step_size sigma_i. So with full gradients of
    strongly convex losses a round is a contraction in the largest error over nodes,
    and such a map reaches its fixed point in any order, with letters of any age
    (D. Bertsekas, J. Tsitsiklis, "Parallel and Distributed Computation", 6.2).

    Attributes:
        step_size: Of the local steps; None lets theory choose 1 / smoothness.
        local_steps: Gradient steps between two exchanges: 1 gossips every step.
        oracle: How nodes compute gradients.
    """

    step_size: Number = rate(theory=descent.safe_step_size)
    local_steps: int = count(1)
    oracle: Oracle = Full()

    purpose: ClassVar[str] = "one model on a graph, the simplest way"
    source: ClassVar[str] = "X. Lian et al., decentralised SGD, NeurIPS 2017"
    delivery: ClassVar[Delivery] = Delivery.SLOTS

    def gradients(self) -> Gradients:
        """One a local step."""
        return (self.local_steps,)

    def init(self, w: Array, edges: Edges) -> tuple[ModelState, Array]:
        """Start from w and tell the neighbours."""
        return ModelState(w), to_all(edges, w)

    def local(
        self,
        key: Array,
        oracle: AgentOracle,
        edges: Edges,
        state: ModelState,
        inbox: Array,
    ) -> tuple[ModelState, Array]:
        """Mix, w <- sum_j W_ij w_j, then steps w <- w - mu g(w)."""
        w = mixed(edges, state.w, inbox)
        w = gradient_steps(key, oracle, w, self.step_size, self.local_steps)
        return ModelState(w), to_all(edges, w)


class TrackedState(NamedTuple):
    """One node's memory in GradientTracking."""

    w: Array  # w_i, its own model
    y: Array  # y_i, its estimate of the mean gradient
    g: Array  # its own gradient at w_i, in the round before


def _tenth_step_size(problem: Problem, algorithm: Any) -> float:
    """A tenth of 1/L."""
    return descent.safe_step_size(problem, algorithm) / 10


@frozen
class GradientTracking(GraphAlgorithm):
    """Gossip models and an estimate of the mean gradient; exact with full gradients.

    Attributes:
        step_size: mu; None lets theory choose a tenth of 1 / smoothness, which is
            short enough for all but badly connected graphs.
        oracle: How nodes compute gradients.
    """

    step_size: Number = rate(theory=_tenth_step_size)
    oracle: Oracle = Full()

    purpose: ClassVar[str] = "one model on a graph, to the exact optimum"
    source: ClassVar[str] = "A. Nedic, A. Olshevsky, W. Shi, DIGing, 2017"
    delivery: ClassVar[Delivery] = Delivery.SLOTS
    partial: ClassVar[bool] = False
    why_not_partial: ClassVar[str] = (
        "its estimates add up to the gradients only if every letter arrives in its "
        "round"
    )

    def gradients(self) -> Gradients:
        """One; that of the round before is known from its letters."""
        return (1,)

    def init(self, w: Array, edges: Edges) -> tuple[TrackedState, Array]:
        """Start from w; the first round finds the first gradient."""
        zero = jnp.zeros_like(w)
        return TrackedState(w, zero, zero), to_all(edges, jnp.concatenate([w, zero]))

    def local(
        self,
        key: Array,
        oracle: AgentOracle,
        edges: Edges,
        state: TrackedState,
        inbox: Array,
    ) -> tuple[TrackedState, Array]:
        """w+ = sum_j W_ij w_j - mu y, then y+ = sum_j W_ij y_j + g(w+) - g(w)."""
        both = mixed(edges, jnp.concatenate([state.w, state.y]), inbox)
        w, y = jnp.split(both, 2)
        w = w - self.step_size * state.y
        g = oracle.once(key, w)
        y = y + g - state.g
        return TrackedState(w, y, g), to_all(edges, jnp.concatenate([w, y]))
