"""ProxSkip (Scaffnew): exchanges at random moments, with probability p after a step.

K. Mishchenko, G. Malinovsky, S. Stich, P. Richtarik, "ProxSkip: Yes! Local Gradient
Steps Provably Lead to Communication Acceleration! Finally!", ICML 2022, Algorithm 2.
A round here is what lies between two exchanges: l ~ Geom(p) steps.

    agent i       xh = x, then l times  xh <- xh - gamma (g_i(xh) - h_i)
    coordinator   x = (1/N) sum_i xh_i
    agent i       h_i <- h_i + (p/gamma) (x - xh_i),  on receiving x
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import jax.numpy as jnp
from jax import Array

from tacita import check
from tacita.algorithm import random_steps
from tacita.algorithm.base import Gradients, Number, Round, ServerAlgorithm
from tacita.problem.oracles import AgentOracle, Full, Oracle
from tacita.schedule import constant
from tacita.theory import descent
from tacita.trees import frozen, number

if TYPE_CHECKING:
    from tacita.problem.problem import Problem


class State(NamedTuple):
    """One agent's memory."""

    x: Array  # xh_i, the model after its last local steps
    h: Array  # h_i, which tends to grad f_i(x*)
    trained: Array  # 1 once xh_i was sent, 0 before the first round


class Told(NamedTuple):
    """What the coordinator tells all agents."""

    x: Array  # the shared model
    steps: Array  # l, the number of local steps until the next exchange


def _probability(problem: Problem) -> float:
    """sqrt(mu/L), or 1/5 where mu is not positive."""
    low, high = problem.moduli.smallest, problem.moduli.largest
    return (low / high) ** 0.5 if low > 0 else 0.2


@frozen
class ProxSkip(ServerAlgorithm):
    """Gradient steps with control variates and rare, random exchanges.

    Attributes:
        step_size: gamma, one number for all; None lets theory choose 1/L.
        probability: p of an exchange after a step; None lets theory choose the best
            one, sqrt(mu/L), or 1/5 where mu is not positive.
        oracle: How agents compute gradients.
    """

    # Numbers of their own would spoil sum_i h_i = 0.
    step_size: Number = constant(
        "its control variates are scaled by the steps of the round before",
        theory=descent.safe_step_size,
        common=True,
    )
    probability: Number = number(check.fraction, theory=_probability, common=True)
    oracle: Oracle = Full()

    partial: ClassVar[bool] = False
    purpose: ClassVar[str] = "the exact optimum, with letters in few rounds only"
    source: ClassVar[str] = "K. Mishchenko et al., ProxSkip, ICML 2022, Algorithm 2"

    def gradients(self) -> Gradients:
        """No number of steps is the largest."""
        return random_steps.UNBOUNDED

    def drawn_steps(self) -> float:
        """1/p."""
        return 1 / float(self.probability)

    def init(self, w: Array) -> tuple[State, Array]:
        """Start from w with h_i = 0."""
        return State(w, jnp.zeros_like(w), jnp.zeros((), w.dtype)), w

    def combine(
        self, key: Array, kept: Any, mean: Array, now: Round
    ) -> tuple[Any, Told]:
        """The mean, and how long to train until the next exchange."""
        return kept, Told(mean, random_steps.geometric(key, self.probability))

    def local(
        self, key: Array, oracle: AgentOracle, state: State, inbox: Told
    ) -> tuple[State, Array]:
        """The control variate of the last exchange, then l local steps."""
        # h_i <- h_i + (p/gamma) (x - xh_i)
        weight = state.trained * self.probability / self.step_size
        h = state.h + weight * (inbox.x - state.x)

        def update(x: Array, g: Array) -> Array:
            # xh <- xh - gamma (g_i(xh) - h_i)
            return x - self.step_size * (g - h)

        steps = random_steps.as_drawn(inbox.steps, self.probability)
        x = random_steps.descend(key, oracle, inbox.x, steps, update)
        return State(x, h, jnp.ones_like(state.trained)), x

    def shared(self, broadcast: Told) -> Array:
        """x, the mean of the last exchange."""
        return broadcast.x
