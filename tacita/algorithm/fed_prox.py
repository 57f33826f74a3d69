"""FedProx: every active agent solves a proximal problem around the shared model.

A. Jung, "Federated Learning: From Theory to Practice", Algorithm 10; T. Li et al.,
MLSys 2020. In the book's form

    w_i = argmin_v  f_i(v) + (1/eta) ||v - w||^2,

exactly (linear models: one linear system) or by local gradient steps. Exact answers
need no gradients, so that losses with kinks have them, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from jax import Array

from tacita import check
from tacita.algorithm.base import Gradients, ModelState, Number, ServerAlgorithm
from tacita.algorithm.gradient_steps import descend
from tacita.algorithm.joining import Around, Joining, Rules
from tacita.problem import proximal
from tacita.problem.oracles import AgentOracle, Full, Oracle
from tacita.schedule import rate
from tacita.theory import descent
from tacita.trees import count, frozen, needed, one_of

if TYPE_CHECKING:
    from tacita.problem.problem import Problem


def _step_size(problem: Problem, algorithm: Any) -> float | None:
    """1 / (L + 2/eta), where there are local steps."""
    if algorithm.local_steps is None:
        return None
    return 1 / (descent.smoothness(problem, algorithm) + 2 / algorithm.eta)


@frozen
class FedProx(ServerAlgorithm):
    """Proximal local problems, averaged over the active agents.

    Attributes:
        eta: Strength of the pull to the shared model is 1/eta: small eta, small moves.
        step_size: Of the local steps; None lets theory choose, with smoothness L,
            1 / (L + 2/eta).
        local_steps: Gradient steps on the proximal problem; None solves it exactly, for
            all models but networks and those of your own.
        oracle: How agents compute gradients of f_i.
        weights: "uniform" mean, or weighted by the agents' number of "samples".
    """

    eta: float = needed(check.positive)
    step_size: Number = rate(theory=_step_size)
    local_steps: int | None = count(None)
    oracle: Oracle = Full()
    weights: str = one_of("uniform", "samples")

    joining: ClassVar[Joining] = Joining(Around.BROADCAST, Rules.ANY)
    purpose: ClassVar[str] = "like FedAvg, held back where agents' rows differ"
    source: ClassVar[str] = "A. Jung, Federated Learning, Algorithm 10"

    def refuse_problem(self, problem: Problem) -> None:
        """Also refuses what has no exact answer, where there are no local steps."""
        super().refuse_problem(problem)
        if self.local_steps is None:
            if self.step_size is not None:
                check.refuse(
                    f"step_size={self.step_size!r} is of local steps, and FedProx "
                    "without local_steps makes none; give local_steps=, or leave it out"
                )
            who, remedy = "FedProx without local_steps", "give local_steps="
            proximal.require_exact(problem, self.oracle, who, remedy)

    def gradients(self) -> Gradients:
        """One a local step; the exact answer takes curvature."""
        if self.local_steps is None:
            return "without local_steps it solves its problems by their curvature"
        return (self.local_steps,)

    def init(self, w: Array) -> tuple[ModelState, Array]:
        """Start from w."""
        return ModelState(w), w

    def local(
        self, key: Array, oracle: AgentOracle, state: ModelState, inbox: Array
    ) -> tuple[ModelState, Array]:
        """argmin_v f_i(v) + (1/eta)||v - w||^2, from v = w."""
        if self.local_steps is None:
            w = proximal.toward(oracle.local, inbox, inbox, 2 / self.eta)
        else:
            # v <- v - step * (g_i(v) + (2/eta)(v - w))
            w = descend(
                key,
                oracle,
                inbox,
                self.local_steps,
                lambda v, g: v - self.step_size * (g + 2 / self.eta * (v - inbox)),
            )
        return ModelState(w), w
