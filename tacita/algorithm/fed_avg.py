"""FedAvg: local gradient steps from the shared model, then the mean over the active.

A. Jung, "Federated Learning: From Theory to Practice", Algorithm 9; B. McMahan et al.,
AISTATS 2017. With unequal agents and several local steps its fixed point is not the
optimum: see docs/explanation-algorithms.md. With an h that is a constraint the mean is
projected onto it in every round.
"""

from __future__ import annotations

from typing import Any, ClassVar

import jax.numpy as jnp
from jax import Array

from tacita.algorithm.base import Gradients, ModelState, Number, Round, ServerAlgorithm
from tacita.algorithm.from_zero import StepsFromZero
from tacita.algorithm.gradient_steps import gradient_steps
from tacita.algorithm.joining import Around, Joining, Rules
from tacita.problem.oracles import AgentOracle, Full, Oracle
from tacita.schedule import rate
from tacita.theory import descent
from tacita.trees import count, frozen, one_of


@frozen
class FedAvg(StepsFromZero, ServerAlgorithm):
    """Local gradient steps, averaged over the active agents.

    Attributes:
        step_size: Of the local steps; None lets theory choose 1 / smoothness.
        local_steps: R, the number of local steps in a round.
        oracle: How agents compute gradients.
        weights: "uniform" mean, or weighted by the agents' number of "samples".
    """

    step_size: Number = rate(theory=descent.safe_step_size)
    local_steps: int = count(1)
    oracle: Oracle = Full()
    weights: str = one_of("uniform", "samples")

    composite: ClassVar[bool] = True
    joining: ClassVar[Joining] = Joining(Around.BROADCAST, Rules.ANY, no_sum=None)
    purpose: ClassVar[str] = "few letters, where agents hold similar rows"
    source: ClassVar[str] = "A. Jung, Federated Learning, Algorithm 9"

    def gradients(self) -> Gradients:
        """One a local step."""
        return (self.local_steps,)

    def init(self, w: Array) -> tuple[ModelState, Array]:
        """Start from w; the first broadcast is the mean of the starts."""
        return ModelState(w), w

    def combine(
        self, key: Array, kept: Any, mean: Array, now: Round
    ) -> tuple[Any, Array]:
        """The mean, after a proximal step of h that is as long as the local steps."""
        reach = self.local_steps * jnp.mean(jnp.asarray(self.step_size, mean.dtype))
        return kept, now.prox(mean, reach / now.n_agents)

    def local(
        self, key: Array, oracle: AgentOracle, state: ModelState, inbox: Array
    ) -> tuple[ModelState, Array]:
        """w_i <- w, then R times w_i <- w_i - eta g_i(w_i)."""
        w = gradient_steps(key, oracle, inbox, self.step_size, self.local_steps)
        return ModelState(w), w
