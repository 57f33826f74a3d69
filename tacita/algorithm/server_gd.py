"""Server-based gradient descent: the coordinator steps along the mean gradient.

A. Jung, "Federated Learning: From Theory to Practice", Algorithm 8, (115)-(117):

    agent i       v <- w, then R times v <- v - eta g_i(v)
    coordinator   w <- (1/n) sum_i v_i

A letter is the sum of the R gradients met on the way, so that v_i is w less eta times
it, and the mean of the printed letters v_i is a step along the mean of these. With
R = 1 it is gradient descent; with minibatches, stochastic gradient descent. With an h
that is a constraint the steps are projected, (91); with any other they are proximal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from tacita.algorithm.base import (
    Gradients,
    ModelState,
    Number,
    Round,
    ServerAlgorithm,
)
from tacita.algorithm.from_zero import steps_from_zero, steps_without_rows
from tacita.algorithm.joining import Around, Joining, Rules
from tacita.problem.oracles import AgentOracle, Full, Oracle
from tacita.schedule import rate
from tacita.theory import descent
from tacita.trees import count, frozen

if TYPE_CHECKING:
    from tacita.problem.problem import Problem


def _step_size(problem: Problem, algorithm: Any) -> float:
    """Of the mean loss; with several steps of an agent's own, or batches, for each."""
    batches = problem.bound is None and descent.in_batches(problem, algorithm.oracle)
    if algorithm.local_steps == 1 and not batches:
        return descent.step_size(problem)
    return descent.safe_step_size(problem, algorithm)


@frozen
class ServerGD(ServerAlgorithm):
    """Every active agent sends its gradient; the coordinator takes one step.

    Attributes:
        step_size: Of the step along the mean gradient; None lets theory choose
            2 / (strong convexity + smoothness), with several local steps
            1 / smoothness.
        local_steps: R, the gradient steps of an agent's own in a round.
        oracle: How agents compute gradients.
    """

    step_size: Number = rate(theory=_step_size, common=True)
    local_steps: int = count(1)
    oracle: Oracle = Full()

    composite: ClassVar[bool] = True
    joining: ClassVar[Joining] = Joining(Around.ZERO, Rules.ANY, no_sum=None)
    purpose: ClassVar[str] = "the yardstick: one exact gradient step a round"
    source: ClassVar[str] = "A. Jung, Federated Learning, Algorithm 8"

    def gradients(self) -> Gradients:
        """The letter, or one a local step."""
        return (self.local_steps,)

    @property
    def sends_gradients(self) -> bool:
        """Of one local step it is one; of several, their sum."""
        return self.local_steps == 1

    def init(self, w: Array) -> tuple[ModelState, Array]:
        """The first letter carries no gradient, so the first broadcast is the start."""
        return ModelState(w), 0 * w

    def init_coordinator(self, w: Array) -> Array:
        """The coordinator keeps the model."""
        return w

    def combine(
        self, key: Array, kept: Array, mean: Array, now: Round
    ) -> tuple[Array, Array]:
        """Step along the mean: w <- prox_{(eta/N) h}(w - eta/N sum_i of gradients)."""
        w = now.prox(kept - self.step_size * mean, self.step_size / now.n_agents)
        return w, w

    def local(
        self, key: Array, oracle: AgentOracle, state: ModelState, inbox: Array
    ) -> tuple[ModelState, Array]:
        """The gradient at the model received, or the sum of those of R steps."""
        if self.local_steps == 1:
            return ModelState(inbox), oracle.once(key, inbox)

        def body(total: Array, draw: Any) -> tuple[Array, None]:
            # v = w - eta * (the gradients so far)
            return total + oracle(draw, inbox - self.step_size * total), None

        draws = oracle.draws(key, self.local_steps)
        start = jnp.zeros_like(inbox)
        total, _ = jax.lax.scan(body, start, draws, length=self.local_steps)
        return ModelState(inbox - self.step_size * total), total

    def increment(
        self, key: Array, oracle: AgentOracle, state: ModelState, inbox: Array
    ) -> tuple[ModelState, Array]:
        """The gradient of the rows, or what they add to the sum of R of them."""
        if self.local_steps == 1:
            return ModelState(inbox), oracle.of_data.once(key, inbox)
        steps = (self.step_size, self.local_steps)
        moved = steps_from_zero(key, oracle, inbox, *steps)
        return ModelState(inbox), -moved / self.step_size

    def joined(self, kept: Array, told: Array, mean: Array, now: Round) -> Array:
        """With the regulariser's gradients, which everybody knows."""
        if self.local_steps == 1:
            return mean + now.regulariser.grad(told)
        steps = (self.step_size, self.local_steps)
        known = steps_without_rows(now.regulariser, told, *steps)
        return mean - known / self.step_size
