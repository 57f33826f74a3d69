"""FedGD and FedSGD: gradient descent on GTVMin, every node with its own model.

A. Jung, "Federated Learning: From Theory to Practice", Algorithms 4/5 (FedGD) and 6/7
(FedSGD). They minimise

    sum_i f_i(w_i) + alpha sum_{edges} A_ij ||w_i - w_j||^2

by w_i <- w_i - eta [ g_i(w_i) + 2 alpha sum_j A_ij (w_i - w_j) ], all nodes at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple, Self

from jax import Array

from tacit import check
from tacit.algorithm.base import Edges, GraphAlgorithm, Number
from tacit.problem.oracle import AgentOracle, Full, Minibatch, Oracle
from tacit.theory import gtv
from tacit.trees import record, replace, static

if TYPE_CHECKING:
    from tacit.problem.problem import Problem


class State(NamedTuple):
    """One node's memory."""

    w: Array  # w_i, its own model


class _GTVDescent(GraphAlgorithm):
    """The step that FedGD and FedSGD share; they differ in their gradients only."""

    alpha: float
    step_size: Number
    oracle: Oracle
    need_connected: bool

    def __post_init__(self) -> None:
        check.not_negative(alpha=self.alpha)
        check.positive(step_size=self.step_size)

    def needs_connection(self) -> bool:
        """As the user chose."""
        return self.need_connected

    def resolve(self, problem: Problem) -> Self:
        """Set the step size by theory where the user gave none."""
        if self.step_size is not None:
            return self
        return replace(self, step_size=gtv.step_size(problem, self.alpha))

    def init(self, w: Array, edges: Edges) -> tuple[State, Array]:
        """Start from w and tell the neighbours."""
        return State(w), w

    def local(
        self, key: Array, oracle: AgentOracle, edges: Edges, state: State, inbox: Array
    ) -> tuple[State, Array]:
        """One step along the local gradient and the coupling."""
        w, g = state.w, oracle.once(key, state.w)
        # sum_j A_ij (w_i - w_j) = d_i w_i - sum_j A_ij w_j, and the inbox is that sum.
        coupling = edges.degree * w - inbox
        # (105): w_i <- w_i - eta [ g_i(w_i) + 2 alpha sum_j A_ij (w_i - w_j) ]
        w = w - self.step_size * (g + 2 * self.alpha * coupling)
        return State(w), w

    def model(self, state: State) -> Array:
        """Its own model."""
        return state.w


@record
class FedGD(_GTVDescent):
    """Gradient descent on GTVMin with exact local gradients.

    Attributes:
        alpha: Strength of the coupling along edges; 0 trains every node alone.
        step_size: eta, one number or one per node; None lets theory choose
            2 / (smallest + largest curvature), see `tacit.theory.gtv`.
        oracle: How nodes compute gradients; over all rows by default.
        need_connected: Refuse a graph that falls into several parts.
    """

    alpha: float
    step_size: Number = None
    oracle: Oracle = Full()
    need_connected: bool = static(default=True)

    source: ClassVar[str] = "A. Jung, Federated Learning, Algorithms 4 and 5"


@record
class FedSGD(_GTVDescent):
    """FedGD with stochastic gradients.

    Attributes:
        alpha: Strength of the coupling along edges; 0 trains every node alone.
        step_size: eta, one number or one per node; None as in FedGD.
        oracle: How nodes compute gradients; one random row by default.
        need_connected: Refuse a graph that falls into several parts.
    """

    alpha: float
    step_size: Number = None
    oracle: Oracle = Minibatch(size=1)
    need_connected: bool = static(default=True)

    source: ClassVar[str] = "A. Jung, Federated Learning, Algorithms 6 and 7"
