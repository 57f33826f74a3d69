"""Agnostic FedAvg: descent on the worst mixture of the agents' losses.

M. Mohri, G. Sivek, A. T. Suresh, "Agnostic Federated Learning", ICML 2019:
minimise over w the largest, over weights p >= 0 that add up to one, of
sum_k p_k F_k(w). The weights climb by exponentiated gradients rather than by the
paper's projection, so that the coordinator needs sums of letters only:

    agent k       s_k <- s_k + F_k(w), a_k = exp(gamma s_k - c)
                  w_k = w after R local steps; sends a_k w_k and a_k
    coordinator   w <- sum_k a_k w_k / sum_k a_k
                  c <- c + log(mean a_k)

so p_k is proportional to exp(gamma s_k), and c keeps the weights near one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.algorithm.base import Gradients, Number, Round, ServerAlgorithm
from tacita.algorithm.gradient_steps import gradient_steps
from tacita.problem import fair
from tacita.problem.oracles import AgentOracle, Full, Oracle
from tacita.schedule import rate
from tacita.theory import descent
from tacita.trees import count, frozen, number

if TYPE_CHECKING:
    from tacita.problem.problem import Problem

#: Weights beyond exp of this wait for c to follow: single precision ends at exp(88).
_STEEPEST = 60.0


class State(NamedTuple):
    """One agent's memory."""

    w: Array  # w_k, its last local model
    climbed: Array  # gamma s_k, from all losses that it has had


class Told(NamedTuple):
    """What the coordinator keeps, and tells: the model and the scale of weights."""

    w: Array
    scale: Array  # c


class Weighted(NamedTuple):
    """A letter: a model times its weight, and the weight."""

    model: Array  # a_k w_k
    weight: Array  # a_k


@frozen
class AgnosticFedAvg(ServerAlgorithm):
    """FedAvg in which agents with large losses gain weight from round to round.

    Attributes:
        weight_step: gamma, how fast weights follow losses; a small one settles.
        step_size: Of the local steps; None lets theory choose 1 / smoothness.
        local_steps: R, the number of local steps in a round; with several the fixed
            point has the bias of FedAvg.
        loss_bound: Rows' losses are cut to [0, loss_bound]; a private run needs it,
            chosen without looking at private data. None cuts nothing.
        oracle: How agents compute gradients and losses.
    """

    weight_step: Number = number(check.not_negative, 0.1, common=True)
    step_size: Number = rate(theory=descent.safe_step_size)
    local_steps: int = count(1)
    loss_bound: Number = number(check.positive, common=True)
    oracle: Oracle = Full()

    uses_losses: ClassVar[bool] = True
    purpose: ClassVar[str] = "a model for the agent that is served worst"
    source: ClassVar[str] = "M. Mohri et al., Agnostic Federated Learning, ICML 2019"

    def goal(self, problem: Problem) -> np.ndarray:
        """The minimiser of the worst loss; of their mean where weights stay."""
        if self.weight_step == 0:
            return super().goal(problem)
        return fair.least_worst(problem)

    def gradients(self) -> Gradients:
        """One a local step, and a loss."""
        return self.local_steps, 1

    def init(self, w: Array) -> tuple[State, Weighted]:
        """Start from w, everybody with the same weight."""
        return State(w, jnp.zeros((), w.dtype)), Weighted(w, jnp.ones((), w.dtype))

    def init_coordinator(self, w: Array) -> Told:
        """All weights begin at their scale."""
        return Told(w, jnp.zeros((), w.dtype))

    def combine(
        self, key: Array, kept: Told, mean: Weighted, now: Round
    ) -> tuple[Told, Told]:
        """The weighted mean; where all weights vanish the model stays."""
        least = jnp.finfo(mean.weight.dtype).tiny
        weight = jnp.maximum(mean.weight, least)
        # w <- sum a_k w_k / sum a_k
        w = jnp.where(mean.weight >= least, mean.model / weight, kept.w)
        # c <- c + log(mean a_k)
        told = Told(w, kept.scale + jnp.log(weight))
        return told, told

    def local(
        self, key: Array, oracle: AgentOracle, state: State, inbox: Told
    ) -> tuple[State, Weighted]:
        """R local steps, after the loss before them has raised the weight."""
        w = gradient_steps(key, oracle, inbox.w, self.step_size, self.local_steps)
        loss = oracle.loss_once(key, inbox.w, self.loss_bound)
        # gamma s_k <- gamma s_k + gamma F_k(w)
        climbed = state.climbed + self.weight_step * loss
        weight = jnp.exp(jnp.minimum(climbed - inbox.scale, _STEEPEST))
        return State(w, climbed), Weighted(weight * w, weight)

    def shared(self, broadcast: Told) -> Array:
        """The model."""
        return broadcast.w
