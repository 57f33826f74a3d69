"""FedBuff: the coordinator steps as soon as K changes are there, however old they are.

J. Nguyen et al., "Federated Learning with Buffered Asynchronous Aggregation", AISTATS
2022, Algorithm 1, with the weights of its section 5.

    agent i       y <- x, then Q times y <- y - eta_l g_i(y);  D_i = y - x
    coordinator   x <- x + eta (1/K) sum over the buffer of s(t - t_i) D_i

where x is what agent i was told in round t_i, and s(tau) = 1 / sqrt(1 + tau). K is the
run's participation; which K come, and how late, `asynchronous=` says. In step it is
FedAvg with a step of the coordinator's.
"""

from __future__ import annotations

from typing import ClassVar

from jax import Array

from tacita import check
from tacita.algorithm.base import Gradients, ModelState, Number, Round, ServerAlgorithm
from tacita.algorithm.gradient_steps import gradient_steps
from tacita.algorithm.joining import COUNTED_BY_AGE, Around, Joining, Rules
from tacita.problem.oracles import AgentOracle, Full, Oracle
from tacita.schedule import rate
from tacita.theory import descent
from tacita.trees import count, frozen, number


@frozen
class FedBuff(ServerAlgorithm):
    """Changes of models, buffered, older ones counting for less.

    Attributes:
        step_size: eta_l of the local steps; None lets theory choose 1 / smoothness.
        local_steps: Q, the number of local steps for a letter.
        server_step: eta, how far the coordinator follows the mean change.
        power: How much old changes are discounted: s(tau) = (1 + tau)^-power.
        oracle: How agents compute gradients.
    """

    step_size: Number = rate(theory=descent.safe_step_size)
    local_steps: int = count(1)
    server_step: Number = rate(1.0, common=True)
    power: Number = number(check.not_negative, 0.5, common=True)
    oracle: Oracle = Full()

    takes_late: ClassVar[bool] = True
    joining: ClassVar[Joining] = Joining(Around.ZERO, Rules.ANY, no_sum=COUNTED_BY_AGE)
    purpose: ClassVar[str] = "slow agents: nobody is waited for, K letters a step"
    source: ClassVar[str] = "J. Nguyen et al., FedBuff, AISTATS 2022, Algorithm 1"

    def gradients(self) -> Gradients:
        """One a local step."""
        return (self.local_steps,)

    def freshness(self, staleness: Array) -> Array:
        """s(tau) = (1 + tau)^-power, the paper's 1 / sqrt(1 + tau) by default."""
        return (1.0 + staleness) ** -self.power

    def init(self, w: Array) -> tuple[ModelState, Array]:
        """Nothing has changed yet, so the first broadcast is the start."""
        return ModelState(w), 0 * w

    def init_coordinator(self, w: Array) -> Array:
        """The coordinator keeps the model."""
        return w

    def combine(
        self, key: Array, kept: Array, mean: Array, now: Round
    ) -> tuple[Array, Array]:
        """Step: x <- x + eta (1/K) sum_i s(tau_i) D_i."""
        # The mean is weighted by s, so (1/K) sum_i s_i D_i is fresh times mean.
        x = kept + self.server_step * now.fresh * mean
        return x, x

    def local(
        self, key: Array, oracle: AgentOracle, state: ModelState, inbox: Array
    ) -> tuple[ModelState, Array]:
        """Y <- x, then Q times y <- y - eta_l g_i(y); the letter is y - x."""
        y = gradient_steps(key, oracle, inbox, self.step_size, self.local_steps)
        return ModelState(y), y - inbox
