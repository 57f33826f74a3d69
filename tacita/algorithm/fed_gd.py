"""FedGD and FedSGD: gradient descent on GTVMin, every node with its own model.

A. Jung, "Federated Learning: From Theory to Practice", Algorithms 4/5 (FedGD) and 6/7
(FedSGD). They minimise

    sum_i f_i(w_i) + alpha sum_{edges} A_ij ||w_i - w_j||^2

by w_i <- w_i - eta_ti [ g_i(w_i) + 2 alpha sum_j A_ij (w_i - w_j) ], all nodes at once.
Learning rates may differ between nodes, and shrink as (78) asks for:
`step_size=tacita.schedule.Polynomial(start=..., power=0.75)`. With a function h(w_i) of
every node's model, such as a constraint, a step ends with prox_{eta h}: (91), (93).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from jax import Array

from tacita import check
from tacita.algorithm.base import Edges, Gradients, ModelState, Number
from tacita.algorithm.coupled import Coupled, own_function
from tacita.algorithm.joining import NO_COORDINATOR, Around, Joining, Rules
from tacita.problem.gtv import penalty as penalties
from tacita.problem.oracles import AgentOracle, Full, Minibatch, Oracle
from tacita.schedule import rate
from tacita.theory import descent, gtv
from tacita.trees import flag, frozen, needed

if TYPE_CHECKING:
    from tacita.problem.problem import Problem


def _step_size(problem: Problem, algorithm: Any) -> Any:
    """2 / (smallest + largest curvature), (83); of batches 1 / theirs."""
    alpha, penalty = algorithm.alpha, algorithm.penalty
    if problem.bound is None and descent.in_batches(problem, algorithm.oracle):
        return gtv.batch_step_size(problem, alpha, algorithm.oracle, penalty)
    return gtv.step_size(problem, alpha, penalty)


@frozen
class _GTVDescent(Coupled):
    """The step that FedGD and FedSGD share; they differ in their gradients only."""

    alpha: float = needed(check.not_negative, common=True)
    step_size: Number = rate(theory=_step_size)
    oracle: Oracle
    penalty: Any = penalties.coupling("squared")
    h: Any = own_function()
    need_connected: bool = flag(True)

    joining: ClassVar[Joining] = Joining(Around.OWN, Rules.ANY, NO_COORDINATOR)

    def gradients(self) -> Gradients:
        """One."""
        return (1,)

    def init(self, w: Array, edges: Edges) -> tuple[ModelState, Array]:
        """Start from w and tell the neighbours."""
        return ModelState(w), w

    def local(
        self,
        key: Array,
        oracle: AgentOracle,
        edges: Edges,
        state: ModelState,
        inbox: Array,
    ) -> tuple[ModelState, Array]:
        """One step along the local gradient and the coupling."""
        w, g = state.w, oracle.once(key, state.w)
        # sum_j A_ij (w_i - w_j) = d_i w_i - sum_j A_ij w_j, and the inbox is that sum.
        coupling = edges.degree * w - inbox
        # (105): w_i <- w_i - eta [ g_i(w_i) + 2 alpha sum_j A_ij (w_i - w_j) ]
        pull = 2 * self.alpha * self.penalty.curvature * coupling
        w = w - self.step_size * (g + pull)
        if self.h is not None:
            w = self.h.prox(w, self.step_size)
        return ModelState(w), w


@frozen
class FedGD(_GTVDescent):
    """Gradient descent on GTVMin with exact local gradients.

    Attributes:
        alpha: Strength of the coupling along edges; 0 trains every node alone.
        step_size: eta, one number or one per node; None lets theory choose
            2 / (smallest + largest curvature) as in (83), with the bound (106) on
            large networks; see `tacita.theory.gtv`, which also has one per node. Of
            batches as in FedSGD.
        oracle: How nodes compute gradients; over all rows by default.
        penalty: "squared", or squared `Penalty` objects that couple some coordinates.
        h: A function of every node's own model, such as `tacita.problem.prox.L1(0.1)`
            or a `Box`, with common numbers or one per node; None for none.
        need_connected: Refuse a graph that falls into several parts.
    """

    oracle: Oracle = Full()

    purpose: ClassVar[str] = "a model for every node of a graph, all rows"
    source: ClassVar[str] = "A. Jung, Federated Learning, Algorithms 4 and 5"


@frozen
class FedSGD(_GTVDescent):
    """FedGD with stochastic gradients.

    Attributes:
        alpha: Strength of the coupling along edges; 0 trains every node alone.
        step_size: eta, one number or one per node; None lets theory choose
            1 / (the smoothness of batches and of the coupling), see
            `tacita.theory.descent`. A schedule lets stochastic steps converge.
        oracle: How nodes compute gradients; one random row by default.
        penalty: "squared", or squared `Penalty` objects that couple some coordinates.
        h: A function of every node's own model, such as `tacita.problem.prox.L1(0.1)`
            or a `Box`, with common numbers or one per node; None for none.
        need_connected: Refuse a graph that falls into several parts.
    """

    oracle: Oracle = Minibatch(size=1)

    purpose: ClassVar[str] = "a model for every node of a graph, batches of rows"
    source: ClassVar[str] = "A. Jung, Federated Learning, Algorithms 6 and 7"
