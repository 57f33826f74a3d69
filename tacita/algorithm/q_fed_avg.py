"""q-FedAvg: agents with a large loss weigh more, so that losses become alike.

T. Li, M. Sanjabi, A. Beirami, V. Smith, "Fair Resource Allocation in Federated
Learning", ICLR 2020, Algorithm 2, which descends sum_k F_k(w)^(q+1)/(q+1).

    agent k       w_k = w after R local steps, F_k = its loss at w
                  D_k = L (w - w_k)
                  h_k = q F_k^(q-1) ||D_k||^2 + L F_k^q
    coordinator   w <- w - sum_k F_k^q D_k / sum_k h_k

Divided by L, with a_k = F_k^q and b_k = q F_k^(q-1) L ||w - w_k||^2, that is

                  w <- sum_k (a_k w_k + b_k w) / sum_k (a_k + b_k),

the mean of local and old models. With q = 0 it is FedAvg.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.algorithm.base import Gradients, ModelState, Number, Round, ServerAlgorithm
from tacita.algorithm.gradient_steps import gradient_steps
from tacita.problem import fair
from tacita.problem.oracles import AgentOracle, Full, Oracle
from tacita.schedule import rate
from tacita.theory import descent
from tacita.trees import count, frozen, number, one_of

if TYPE_CHECKING:
    from tacita.problem.problem import Problem


class Weighted(NamedTuple):
    """A letter: a model times its weight, and the weight."""

    model: Array  # a_k w_k + b_k w
    weight: Array  # a_k + b_k


@frozen
class QFedAvg(ServerAlgorithm):
    """FedAvg in which an agent weighs as its loss to the power of q.

    Attributes:
        q: How much evenness counts: 0 is FedAvg, a large one minds the worst loss.
        step_size: Of the local steps; None lets theory choose 1 / smoothness.
        local_steps: R, the number of local steps in a round.
        smoothness: L, by which a round is damped; None takes 1 / step_size.
        loss_bound: Rows' losses are cut to [0, loss_bound]; a private run needs it,
            chosen without looking at private data. None cuts nothing.
        least_loss: What smaller losses count as; with q below 1 and with noise about
            the size of that noise, for a loss of nearly zero halts its round.
        oracle: How agents compute gradients and losses.
        weights: "uniform", or agents weigh as their number of "samples" besides.
    """

    q: Number = number(check.not_negative, 1.0, common=True)
    step_size: Number = rate(theory=descent.safe_step_size)
    local_steps: int = count(1)
    smoothness: Number = number(check.positive, theory=descent.inverse_step_size)
    loss_bound: Number = number(check.positive, common=True)
    least_loss: Number = number(check.positive, 1e-10, common=True)
    oracle: Oracle = Full()
    weights: str = one_of("uniform", "samples")

    uses_losses: ClassVar[bool] = True
    purpose: ClassVar[str] = "a model that serves all agents about equally well"
    source: ClassVar[str] = "T. Li et al., q-FFL, ICLR 2020, Algorithm 2"

    def goal(self, problem: Problem) -> np.ndarray:
        """The minimiser of sum_k F_k(w)^(q+1), times the rows where those weigh."""
        if self.q == 0:
            return super().goal(problem)
        rows = (
            problem.counts
            if self.weights == "samples"
            else np.ones_like(problem.counts)
        )
        return fair.least_power(problem, float(self.q), rows / rows.mean())

    def gradients(self) -> Gradients:
        """One a local step, and a loss."""
        return self.local_steps, 1

    def init(self, w: Array) -> tuple[ModelState, Weighted]:
        """Start from w, everybody with the same weight."""
        return ModelState(w), Weighted(w, jnp.ones((), w.dtype))

    def combine(
        self, key: Array, kept: tuple[()], mean: Weighted, now: Round
    ) -> tuple[tuple[()], Array]:
        """The mean of local and old models: mean(a_k w_k + b_k w) / mean(a_k + b_k)."""
        # At q = 0 all weights are one, and so is their mean but for its rounding.
        weight = jnp.where(self.q == 0, 1, mean.weight)
        return kept, mean.model / weight

    def local(
        self, key: Array, oracle: AgentOracle, state: ModelState, inbox: Array
    ) -> tuple[ModelState, Weighted]:
        """R local steps, and the weight that the loss before them gives."""
        w = gradient_steps(key, oracle, inbox, self.step_size, self.local_steps)
        loss = oracle.loss_once(key, inbox, self.loss_bound)
        return ModelState(w), self.letter(inbox, w, loss)

    def letter(self, start: Array, end: Array, loss: Array) -> Weighted:
        """What an agent sends that came from `start` to `end`, with this loss."""
        loss = jnp.maximum(loss, jnp.asarray(self.least_loss, loss.dtype))
        # a_k = F_k^q
        own = loss**self.q
        # b_k = q F_k^(q-1) L ||w - w_k||^2
        damping = self.q * own / loss * self.smoothness * jnp.sum((start - end) ** 2)
        return Weighted(own * end + damping * start, own + damping)
