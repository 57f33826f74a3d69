"""FedAsync: the coordinator mixes in every model that comes, old ones less.

C. Xie, S. Koyejo, I. Gupta, "Asynchronous Federated Optimization", 2019, Algorithm 1.

    agent i       y <- x, then H times y <- y - gamma (g_i(y) + rho (y - x))
    coordinator   alpha_t = alpha s(t - t_i),  x <- (1 - alpha_t) x + alpha_t y

where x is what agent i was told in round t_i. With staleness tau, s(tau) is

    constant      1
    hinge         1 if tau <= b, else 1 / (a (tau - b) + 1)
    polynomial    (tau + 1)^-a

The paper has one letter a step: `participation=1`. Of several, the mean of their steps
is taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import jax.numpy as jnp
from jax import Array

from tacita import check
from tacita.algorithm.base import Gradients, ModelState, Number, Round, ServerAlgorithm
from tacita.algorithm.gradient_steps import descend
from tacita.algorithm.joining import COUNTED_BY_AGE, Around, Joining, Rules
from tacita.problem.oracles import AgentOracle, Full, Oracle
from tacita.schedule import rate
from tacita.theory import descent
from tacita.trees import count, frozen, number, one_of

if TYPE_CHECKING:
    from tacita.problem.problem import Problem


def _step_size(problem: Problem, algorithm: Any) -> float:
    """1 / (L + rho)."""
    return 1 / (descent.smoothness(problem, algorithm) + algorithm.rho)


@frozen
class FedAsync(ServerAlgorithm):
    """Models mixed into the shared one as they come.

    Attributes:
        mixing: alpha, what a letter that is not late counts for in the shared model.
        staleness: s, how old letters are discounted: "polynomial", "hinge", or all
            alike, "constant".
        slope: a, how steeply.
        grace: b of the hinge: up to this staleness nothing is discounted.
        rho: Of the pull to the shared model in the local steps; 0 for none.
        step_size: gamma of the local steps; None lets theory choose, with smoothness
            L, 1 / (L + rho).
        local_steps: H, the number of local steps for a letter.
        oracle: How agents compute gradients.
    """

    mixing: Number = number(check.fraction, 0.6, common=True)
    staleness: str = one_of("polynomial", "hinge", "constant")
    slope: Number = number(check.positive, 0.5, common=True)
    grace: Number = number(check.not_negative, 4.0, common=True)
    rho: Number = number(check.not_negative, 0.0)
    step_size: Number = rate(theory=_step_size)
    local_steps: int = count(1)
    oracle: Oracle = Full()

    takes_late: ClassVar[bool] = True
    joining: ClassVar[Joining] = Joining(
        Around.BROADCAST, Rules.ANY, no_sum=COUNTED_BY_AGE
    )
    purpose: ClassVar[str] = "slow agents: every letter is a step of its own"
    source: ClassVar[str] = "C. Xie et al., Asynchronous Federated Optimization, 2019"

    def gradients(self) -> Gradients:
        """One a local step."""
        return (self.local_steps,)

    def freshness(self, staleness: Array) -> Array:
        """s(tau)."""
        tau = 1.0 * staleness
        if self.staleness == "constant":
            return jnp.ones_like(tau)
        if self.staleness == "hinge":
            late = jnp.maximum(tau - self.grace, 0)
            return 1 / (self.slope * late + 1)
        return (tau + 1) ** -self.slope

    def init(self, w: Array) -> tuple[ModelState, Array]:
        """Start from w; the first broadcast is the mean of the starts."""
        return ModelState(w), w

    def init_coordinator(self, w: Array) -> Array:
        """The coordinator keeps the model."""
        return w

    def combine(
        self, key: Array, kept: Array, mean: Array, now: Round
    ) -> tuple[Array, Array]:
        """Mix: x <- (1 - alpha_t) x + alpha_t y."""
        # Before the first round the letters are the starts, and none was trained.
        share = jnp.where(now.number > 0, self.mixing * now.fresh, 0)
        share = share.astype(kept.dtype)
        x = (1 - share) * kept + share * mean
        return x, x

    def local(
        self, key: Array, oracle: AgentOracle, state: ModelState, inbox: Array
    ) -> tuple[ModelState, Array]:
        """Y <- x, then H times y <- y - gamma (g_i(y) + rho (y - x))."""
        y = descend(
            key,
            oracle,
            inbox,
            self.local_steps,
            lambda v, g: v - self.step_size * (g + self.rho * (v - inbox)),
        )
        return ModelState(y), y
