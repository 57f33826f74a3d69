"""LED: local exact diffusion, with a coordinator as the network or on a graph.

S. Alghunaim, "Local Exact-Diffusion for Decentralized Optimization and Learning", IEEE
Transactions on Automatic Control 2024.

    agent i       f = x_i, then Ne times  f <- f - alpha g_i(f) - beta y_i
    network       x_i = sum_j W_ij f_j
    agent i       y_i <- y_i + f_i - x_i,  at the start of its next round

With a coordinator the network is complete, W = (1/N) 1 1^T. On a graph W is
(I + M)/2 with M the Metropolis weights: without the half, eigenvalues near -1 (a ring
of an even number of nodes has one of -1/3) would make corrections swing. Any other
mixing matrix without negative eigenvalues is given by the weights of the edges,

    W_ij = A_ij on edges,      W_ii = 1 - sum_j A_ij,      so W = I - L

with L the Laplacian of the graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import jax.numpy as jnp
from jax import Array

from tacita import check
from tacita.algorithm.base import (
    Delivery,
    Edges,
    Gradients,
    GraphAlgorithm,
    Number,
    ServerAlgorithm,
)
from tacita.algorithm.gossip import mixed, to_all
from tacita.algorithm.gradient_steps import descend
from tacita.problem.oracles import AgentOracle, Full, Oracle
from tacita.schedule import constant
from tacita.theory import descent
from tacita.trees import count, frozen, number, one_of

if TYPE_CHECKING:
    from tacita.problem.problem import Problem


#: An eigenvalue that is known to some digits only.
_ROUNDING = 1e-6
#: Why its steps do not shrink.
_ONE_STEP = "its corrections add up what steps of one length leave"


class State(NamedTuple):
    """One agent's memory."""

    f: Array  # f_i, the model after its last local steps
    y: Array  # y_i, its correction
    trained: Array  # 1 once f_i was sent, 0 before the first round


def _beta(problem: Problem, algorithm: Any) -> float:
    """1/Ne."""
    return 1 / algorithm.local_steps


@frozen
class LED(ServerAlgorithm):
    """Local gradient steps, corrected by how far the agent ended from the mean.

    Attributes:
        step_size: alpha, one number for all; None lets theory choose 1/L.
        beta: Weight of the correction in each step; None chooses 1/Ne.
        local_steps: Ne, gradient steps in a round.
        oracle: How agents compute gradients.
    """

    # One agent's own step would weigh it more in the optimum.
    step_size: Number = constant(_ONE_STEP, theory=descent.safe_step_size, common=True)
    beta: Number = number(check.positive, theory=_beta, common=True)
    local_steps: int = count(5)
    oracle: Oracle = Full()

    partial: ClassVar[bool] = False
    purpose: ClassVar[str] = "the exact optimum by corrected local steps"
    source: ClassVar[str] = "S. Alghunaim, Local Exact-Diffusion, IEEE TAC 2024"

    def gradients(self) -> Gradients:
        """One a local step."""
        return (self.local_steps,)

    def init(self, w: Array) -> tuple[State, Array]:
        """Start from w without a correction."""
        return State(w, jnp.zeros_like(w), jnp.zeros((), w.dtype)), w

    def local(
        self, key: Array, oracle: AgentOracle, state: State, inbox: Array
    ) -> tuple[State, Array]:
        """The correction of the last round, then local steps from x."""
        after = _round(self, key, oracle, state, inbox)
        return after, after.f


@frozen
class GraphLED(GraphAlgorithm):
    """Local gradient steps on a graph, corrected by how far neighbours are.

    Attributes:
        step_size: alpha, one number for all; None lets theory choose 1/(L Ne), with
            which a round moves no further than one gradient step of size 1/L.
        beta: Weight of the correction in each step; None chooses 1/Ne.
        local_steps: Ne, gradient steps in a round.
        mixing: W: "metropolis" weights, halved with the identity, whatever edges
            weigh; or the "weights" of the edges themselves, W_ij = A_ij.
        oracle: How nodes compute gradients.
    """

    step_size: Number = constant(
        _ONE_STEP, theory=descent.step_size_of_round, common=True
    )
    beta: Number = number(check.positive, theory=_beta, common=True)
    local_steps: int = count(5)
    mixing: str = one_of("metropolis", "weights")
    oracle: Oracle = Full()

    delivery: ClassVar[Delivery] = Delivery.SLOTS
    partial: ClassVar[bool] = False
    why_not_partial: ClassVar[str] = (
        "its corrections add up to zero only if every letter arrives in its round"
    )
    purpose: ClassVar[str] = "the exact optimum on a graph, by local steps"
    source: ClassVar[str] = "S. Alghunaim, Local Exact-Diffusion, IEEE TAC 2024"

    def gradients(self) -> Gradients:
        """One a local step."""
        return (self.local_steps,)

    def init(self, w: Array, edges: Edges) -> tuple[State, Array]:
        """Start from w without a correction."""
        state = State(w, jnp.zeros_like(w), jnp.zeros((), w.dtype))
        return state, to_all(edges, w)

    def local(
        self,
        key: Array,
        oracle: AgentOracle,
        edges: Edges,
        state: State,
        inbox: Array,
    ) -> tuple[State, Array]:
        """Mix, then the correction of the last round and local steps."""
        x = self._mixed(edges, state.f, inbox)
        after = _round(self, key, oracle, state, x)
        return after, to_all(edges, after.f)

    def _mixed(self, edges: Edges, own: Array, inbox: Array) -> Array:
        """x_i = sum_j W_ij f_j, with W = (I + M)/2 or the weights of the edges."""
        if self.mixing == "metropolis":
            return (own + mixed(edges, own, inbox)) / 2
        weights = edges.weight.astype(own.dtype)
        return own + jnp.einsum("s,sd->d", weights, inbox - own)

    def refuse_problem(self, problem: Problem) -> None:
        """Also edges whose weights are no mixing matrix that steadies corrections."""
        super().refuse_problem(problem)
        if self.mixing == "metropolis":
            return
        assert problem.graph is not None
        largest = problem.graph.spectrum().lambda_n
        if largest > 1 + _ROUNDING:
            check.refuse(
                "with mixing='weights' edges weigh as W = I - L does, which needs no "
                f"eigenvalue below 0, and this graph has one of {1 - largest:.3g}; "
                f"divide the weights by {largest:.3g} or more, or use "
                "mixing='metropolis'"
            )


def _round(
    method: LED | GraphLED, key: Array, oracle: AgentOracle, state: State, x: Array
) -> State:
    """One agent's round from x, the mean of what was sent in the last."""
    # y_i <- y_i + f_i - x_i
    y = state.y + state.trained * (state.f - x)

    def update(f: Array, g: Array) -> Array:
        # f <- f - alpha g_i(f) - beta y_i
        return f - method.step_size * g - method.beta * y

    f = descend(key, oracle, x, method.local_steps, update)
    return State(f, y, jnp.ones_like(state.trained))
