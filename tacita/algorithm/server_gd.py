"""Server-based gradient descent: the coordinator steps along the mean gradient.

A. Jung, "Federated Learning: From Theory to Practice", Algorithm 8. With minibatches it
is server-based stochastic gradient descent. With an h that is a constraint the steps
are projected, (91); with any other they are proximal gradient steps.
"""

from __future__ import annotations

from typing import ClassVar

from jax import Array

from tacita import check
from tacita.algorithm.base import (
    Gradients,
    ModelState,
    Number,
    Round,
    ServerAlgorithm,
)
from tacita.algorithm.joining import Around, Joining, Rules
from tacita.problem.oracles import AgentOracle, Full, Oracle
from tacita.theory import descent
from tacita.trees import frozen, number


@frozen
class ServerGD(ServerAlgorithm):
    """Every active agent sends its gradient; the coordinator takes one step.

    Attributes:
        step_size: Of the step along the mean gradient; None lets theory choose
            2 / (strong convexity + smoothness).
        oracle: How agents compute gradients.
    """

    step_size: Number = number(check.positive, theory=descent.step_size)
    oracle: Oracle = Full()

    composite: ClassVar[bool] = True
    joining: ClassVar[Joining] = Joining(Around.ZERO, Rules.ANY, no_sum=None)
    purpose: ClassVar[str] = "the yardstick: one exact gradient step a round"
    source: ClassVar[str] = "A. Jung, Federated Learning, Algorithm 8"

    def gradients(self) -> Gradients:
        """The letter."""
        return (1,)

    def init(self, w: Array) -> tuple[ModelState, Array]:
        """The first letter carries no gradient, so the first broadcast is the start."""
        return ModelState(w), 0 * w

    def init_coordinator(self, w: Array) -> Array:
        """The coordinator keeps the model."""
        return w

    def combine(
        self, key: Array, kept: Array, mean: Array, now: Round
    ) -> tuple[Array, Array]:
        """Step along the mean: w <- prox_{(eta/N) h}(w - eta/N sum_i grad f_i(w))."""
        w = now.prox(kept - self.step_size * mean, self.step_size / now.n_agents)
        return w, w

    def local(
        self, key: Array, oracle: AgentOracle, state: ModelState, inbox: Array
    ) -> tuple[ModelState, Array]:
        """The gradient at the model received."""
        return ModelState(inbox), oracle.once(key, inbox)

    def increment(
        self, key: Array, oracle: AgentOracle, state: ModelState, inbox: Array
    ) -> tuple[ModelState, Array]:
        """The gradient of the rows."""
        return ModelState(inbox), oracle.of_data.once(key, inbox)

    def joined(self, kept: Array, told: Array, mean: Array, now: Round) -> Array:
        """With the regulariser's gradient, which everybody knows."""
        return mean + now.regulariser.grad(told)
