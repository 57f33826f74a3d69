"""FedLin: local steps corrected by the mean gradient, two exchanges a round.

A. Mitra, R. Jaafar, G. Pappas, H. Hassani, "Linear Convergence in Federated Learning:
Tackling Client Heterogeneity and Sparse Gradients", NeurIPS 2021, Algorithm 1 without
sparsification.

    first exchange    g = (1/N) sum_i g_i(x)
    second exchange   w = x, then Ne times  w <- w - gamma (g_i(w) - g_i(x) + g)
                      x = (1/N) sum_i w_i
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
from jax import Array

from tacita import check
from tacita.algorithm.base import (
    Gradients,
    Number,
    Phase,
    Round,
    ServerAlgorithm,
    descend,
)
from tacita.problem.oracles import AgentOracle, Full, Oracle
from tacita.theory import descent
from tacita.trees import count, frozen, number


class State(NamedTuple):
    """One agent's memory."""

    w: Array  # w_i, the model after its last local steps
    g: Array  # g_i(x), its gradient at the shared model


class Told(NamedTuple):
    """What the coordinator tells all agents."""

    x: Array  # the shared model
    g: Array  # the mean gradient there


@frozen
class FedLin(ServerAlgorithm):
    """Local gradient steps towards the minimum of the mean loss.

    Attributes:
        step_size: gamma, one number or one per agent; None chooses 1 / (L Ne), with
            which a round moves no further than one gradient step of size 1/L.
        local_steps: Ne, gradient steps in a round.
        oracle: How agents compute gradients.
    """

    step_size: Number = number(check.positive, theory=descent.step_size_of_round)
    local_steps: int = count(5)
    oracle: Oracle = Full()

    partial: ClassVar[bool] = False
    exchanges: ClassVar[int] = 2
    purpose: ClassVar[str] = "the exact optimum by local steps, two exchanges each"
    source: ClassVar[str] = "A. Mitra et al., Linear Convergence in FL, NeurIPS 2021"

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The gradient at the shared model, then training."""
        return (
            Phase(self.gradient, self.average_gradient),
            Phase(self.train, self.average_model),
        )

    def gradients(self) -> Gradients:
        """One at the shared model, then one a local step."""
        return (1, self.local_steps)

    def init(self, w: Array) -> tuple[State, Array]:
        """Start from w."""
        return State(w, jnp.zeros_like(w)), w

    def gradient(
        self, key: Array, oracle: AgentOracle, state: State, inbox: Told
    ) -> tuple[State, Array]:
        """First exchange: g_i(x)."""
        g = oracle.once(key, inbox.x)
        return State(state.w, g), g

    def average_gradient(
        self, key: Array, kept: Any, mean: Array, now: Round
    ) -> tuple[Any, Told]:
        """Tell the mean gradient."""
        return kept, Told(kept, mean)

    def train(
        self, key: Array, oracle: AgentOracle, state: State, inbox: Told
    ) -> tuple[State, Array]:
        """Second exchange: corrected local steps from x."""

        def update(w: Array, g: Array) -> Array:
            # w <- w - gamma (g_i(w) - g_i(x) + g)
            return w - self.step_size * (g - state.g + inbox.g)

        w = descend(key, oracle, inbox.x, self.local_steps, update)
        return State(w, state.g), w

    def init_coordinator(self, w: Array) -> Array:
        """The coordinator keeps the shared model."""
        return w

    def average_model(
        self, key: Array, kept: Any, mean: Array, now: Round
    ) -> tuple[Array, Told]:
        """X = (1/N) sum_i w_i."""
        return mean, Told(mean, jnp.zeros_like(mean))

    def shared(self, broadcast: Told) -> Array:
        """x, the shared model."""
        return broadcast.x
