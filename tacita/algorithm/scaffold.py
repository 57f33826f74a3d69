"""SCAFFOLD: local steps corrected by control variates, any cohort.

S. P. Karimireddy, S. Kale, M. Mohri, S. Reddi, S. Stich, A. T. Suresh, "SCAFFOLD:
Stochastic Controlled Averaging for Federated Learning", ICML 2020, Algorithm 1 with
option II.

    agent i in S   y = x, then K times  y <- y - eta (g_i(y) - c_i + c)
                   c_i+ = c_i - c + (x - y)/(K eta)
                   sends y - x and c_i+ - c_i
    coordinator    x <- x + eta_g (1/|S|) sum_{i in S} (y_i - x)
                   c <- c + (1/N) sum_{i in S} (c_i+ - c_i)
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import jax.numpy as jnp
from jax import Array

from tacita.algorithm.base import Gradients, Number, Round, ServerAlgorithm
from tacita.algorithm.gradient_steps import descend
from tacita.problem.oracles import AgentOracle, Full, Oracle
from tacita.schedule import rate
from tacita.theory import descent
from tacita.trees import count, frozen


class State(NamedTuple):
    """One agent's memory."""

    y: Array  # y_i, the model after its last local steps
    c: Array  # c_i, which tends to grad f_i(x*)


class Pair(NamedTuple):
    """A model and a control variate: what is told, or how they changed."""

    x: Array
    c: Array


@frozen
class SCAFFOLD(ServerAlgorithm):
    """Gradient steps with control variates that survive silent rounds.

    Attributes:
        step_size: eta of the local steps; None chooses 1 / (L K), with which a round
            moves no further than one gradient step of size 1/L.
        local_steps: K, gradient steps in a round.
        server_step: eta_g, how far the coordinator follows the mean change.
        oracle: How agents compute gradients.
    """

    step_size: Number = rate(theory=descent.step_size_of_round)
    local_steps: int = count(5)
    server_step: Number = rate(1.0, common=True)
    oracle: Oracle = Full()

    purpose: ClassVar[str] = "local steps without drift, where agents' rows differ"
    source: ClassVar[str] = "S. P. Karimireddy et al., SCAFFOLD, ICML 2020, Algorithm 1"

    def gradients(self) -> Gradients:
        """One a local step."""
        return (self.local_steps,)

    def init(self, w: Array) -> tuple[State, Pair]:
        """c_i = 0; the first letter changes nothing."""
        return State(w, 0 * w), Pair(0 * w, 0 * w)

    def init_coordinator(self, w: Array) -> Pair:
        """The coordinator keeps x and c."""
        return Pair(w, 0 * w)

    def combine(
        self, key: Array, kept: Pair, mean: Pair, now: Round
    ) -> tuple[Pair, Pair]:
        """The mean change of models, and the cohort's part in the mean control."""
        # x <- x + eta_g (1/|S|) sum_{i in S} (y_i - x)
        x = kept.x + self.server_step * mean.x
        # c <- c + (|S|/N) (1/|S|) sum_{i in S} (c_i+ - c_i)
        share = jnp.asarray(now.active / now.n_agents, mean.c.dtype)
        told = Pair(x, kept.c + share * mean.c)
        return told, told

    def local(
        self, key: Array, oracle: AgentOracle, state: State, inbox: Pair
    ) -> tuple[State, Pair]:
        """K corrected steps from x, then the control variate they imply."""

        def update(y: Array, g: Array) -> Array:
            # y <- y - eta (g_i(y) - c_i + c)
            return y - self.step_size * (g - state.c + inbox.c)

        y = descend(key, oracle, inbox.x, self.local_steps, update)
        # c_i+ - c_i = (x - y)/(K eta) - c
        change = (inbox.x - y) / (self.local_steps * self.step_size) - inbox.c
        return State(y, state.c + change), Pair(y - inbox.x, change)

    def shared(self, broadcast: Pair) -> Array:
        """x, the shared model."""
        return broadcast.x
