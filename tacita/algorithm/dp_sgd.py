"""DP-SGD between clients and a coordinator: noisy clipped gradients, then momentum.

M. Abadi et al., "Deep Learning with Differential Privacy", CCS 2016, one step a round:
every active client sends its clipped gradient with noise, the coordinator steps along
their mean. Momentum and averaging happen at the coordinator, after the noise: they
cost no privacy.

    client i      letter = g_i(w), clipped and noised by its oracle
    coordinator   v <- momentum v + mean letter
                  w <- prox_{c h}( w - step_size v ),  c = step_size/(N (1-momentum))
                  published: the mean of the w of the last rounds (see `average`)

Clipping and noise wrap the oracle (`tacita.Clipped`, `tacita.Noisy`); a norm that
follows the median of the gradient norms, privately, is `tacita.private(...,
quantile=0.5)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import jax.numpy as jnp
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
from tacita.schedule import rate
from tacita.theory import descent
from tacita.trees import frozen, number

if TYPE_CHECKING:
    from tacita.problem.problem import Problem


class Iterates(NamedTuple):
    """The coordinator's memory."""

    w: Array  # the iterate
    v: Array  # the sum of past mean letters, fading
    mean: Array  # the running average of iterates


class Told(NamedTuple):
    """What the coordinator tells all clients."""

    w: Array  # where the next gradients are taken
    mean: Array  # the model to publish


def _step_size(problem: Problem, algorithm: Any) -> float:
    """1/L, times 1 - momentum."""
    return descent.safe_step_size(problem, algorithm) * (1 - algorithm.momentum)


@frozen
class DPSGD(ServerAlgorithm):
    """Stochastic gradient descent on noisy letters.

    Attributes:
        step_size: Of the step along the mean letter; None lets theory choose 1/L,
            times 1 - momentum.
        momentum: How much of the last step is kept, in [0, 1).
        average: The published model is m <- average m + (1 - average) w, in [0, 1);
            0 publishes the last iterate.
        oracle: How clients compute gradients.
    """

    step_size: Number = rate(theory=_step_size, common=True)
    momentum: float = number(check.below_one, 0.0, common=True)
    average: float = number(check.below_one, 0.0, common=True)
    oracle: Oracle = Full()

    composite: ClassVar[bool] = True
    joining: ClassVar[Joining] = Joining(Around.ZERO, Rules.ANY, no_sum=None)
    purpose: ClassVar[str] = "private training, the one to try first"
    source: ClassVar[str] = (
        "M. Abadi et al., Deep Learning with Differential Privacy, Algorithm 1"
    )

    def gradients(self) -> Gradients:
        """The letter."""
        return (1,)

    @property
    def sends_gradients(self) -> bool:
        """Yes."""
        return True

    def init(self, w: Array) -> tuple[ModelState, Array]:
        """The first letter carries no gradient, so the first broadcast is the start."""
        return ModelState(w), 0 * w

    def init_coordinator(self, w: Array) -> Iterates:
        """No step was made yet."""
        return Iterates(w, 0 * w, w)

    def combine(
        self, key: Array, kept: Iterates, mean: Array, now: Round
    ) -> tuple[Iterates, Told]:
        """One step with momentum, then the average of iterates."""
        # v <- momentum v + mean letter
        v = self.momentum * kept.v + mean
        # w <- prox_{c h}(w - step v), where v tends to 1/(1 - momentum) gradients;
        # before the first letters nothing moves
        reach = self.step_size / (1 - self.momentum)
        moved = now.prox(kept.w - self.step_size * v, reach / now.n_agents)
        w = jnp.where(now.number > 0, moved, kept.w)
        # m <- average m + (1 - average) w
        average = self.average * kept.mean + (1 - self.average) * w
        return Iterates(w, v, average), Told(w, average)

    def local(
        self, key: Array, oracle: AgentOracle, state: ModelState, inbox: Told
    ) -> tuple[ModelState, Array]:
        """The gradient at the model received."""
        return ModelState(inbox.w), oracle.once(key, inbox.w)

    def shared(self, broadcast: Told) -> Array:
        """The average of iterates."""
        return broadcast.mean

    def increment(
        self, key: Array, oracle: AgentOracle, state: ModelState, inbox: Told
    ) -> tuple[ModelState, Array]:
        """The gradient of the rows."""
        return ModelState(inbox.w), oracle.of_data.once(key, inbox.w)

    def joined(self, kept: Iterates, told: Told, mean: Array, now: Round) -> Array:
        """With the regulariser's gradient, which everybody knows."""
        return mean + now.regulariser.grad(told.w)
