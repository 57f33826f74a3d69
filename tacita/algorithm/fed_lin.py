"""FedLin: local steps corrected by the mean gradient, two exchanges a round.

A. Mitra, R. Jaafar, G. Pappas, H. Hassani, "Linear Convergence in Federated Learning:
Tackling Client Heterogeneity and Sparse Gradients", NeurIPS 2021, Algorithm 1.

    first exchange    g = (1/N) sum_i g_i(x)
    second exchange   w = x, then tau_i times  w <- w - gamma_i (g_i(w) - g_i(x) + g)
                      x = (1/N) sum_i w_i

Either way of the first exchange may be sparse: only the k longest entries are sent, and
what was left out is added before the next time (error feedback):

    agents            g = (1/N) sum_i S_k(e_i + g_i(x)),  e_i <- e_i + g_i(x) - S_k(.)
    coordinator       g = S_k(e + (1/N) sum_i g_i(x)),    e   <- e + mean     - S_k(.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from tacita import check
from tacita.algorithm.base import Gradients, Number, Phase, Round, ServerAlgorithm
from tacita.algorithm.gradient_steps import check_own_steps, descend
from tacita.problem.oracles import AgentOracle, Full, Oracle
from tacita.schedule import rate
from tacita.theory import descent
from tacita.trees import count, frozen, number

if TYPE_CHECKING:
    from tacita.problem.problem import Problem


class State(NamedTuple):
    """One agent's memory."""

    w: Array  # w_i, the model after its last local steps
    g: Array  # g_i(x), its gradient at the shared model
    e: Array  # e_i, what it has not sent of its gradients


class Kept(NamedTuple):
    """The coordinator's memory."""

    x: Array  # the shared model
    e: Array  # what it has not told of mean gradients


class Told(NamedTuple):
    """What the coordinator tells all agents."""

    x: Array  # the shared model
    g: Array  # the mean gradient there


def _step_size(problem: Problem, algorithm: Any) -> Any:
    """1 / (L tau_i): a round moves no agent further than one step of size 1/L."""
    steps = (
        algorithm.local_steps if algorithm.own_steps is None else algorithm.own_steps
    )
    return descent.safe_step_size(problem, algorithm) / steps


def _longest(v: Array, k: int | None) -> Array:
    """S_k: v with zeros for all but its k longest entries; None keeps all."""
    if k is None or k >= len(v):
        return v
    chosen = jax.lax.top_k(jnp.abs(v), k)[1]
    return jnp.zeros_like(v).at[chosen].set(v[chosen])


@frozen
class FedLin(ServerAlgorithm):
    """Local gradient steps towards the minimum of the mean loss.

    Attributes:
        step_size: gamma_i, one number or one per agent; None chooses 1 / (L tau_i),
            with which a round moves no further than one gradient step of size 1/L.
        local_steps: Gradient steps in a round.
        own_steps: tau_i, steps of each agent where they differ, of these `local_steps`.
        entries_sent: k of the agents' gradients; None sends all. With fewer it ends
            only near the optimum, where agents differ.
        entries_told: k of the coordinator's mean gradient; None tells all. With fewer
            the optimum is exact, by shorter steps.
        oracle: How agents compute gradients.
    """

    step_size: Number = rate(theory=_step_size)
    local_steps: int = count(5)
    own_steps: Number = number(check.whole)
    entries_sent: int | None = count(None)
    entries_told: int | None = count(None)
    oracle: Oracle = Full()

    partial: ClassVar[bool] = False
    exchanges: ClassVar[int] = 2
    purpose: ClassVar[str] = "the exact optimum by local steps, two exchanges each"
    source: ClassVar[str] = "A. Mitra et al., Linear Convergence in FL, NeurIPS 2021"

    def refuse_problem(self, problem: Problem) -> None:
        """Also agents with more steps of their own than there are in a round."""
        super().refuse_problem(problem)
        check_own_steps(self.own_steps, self.local_steps)

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
        zero = jnp.zeros_like(w)
        return State(w, zero, zero), w

    def gradient(
        self, key: Array, oracle: AgentOracle, state: State, inbox: Told
    ) -> tuple[State, Array]:
        """First exchange: g_i(x), or its longest entries and those left out before."""
        g = oracle.once(key, inbox.x)
        sent = _longest(state.e + g, self.entries_sent)
        return State(state.w, g, state.e + g - sent), sent

    def average_gradient(
        self, key: Array, kept: Kept, mean: Array, now: Round
    ) -> tuple[Kept, Told]:
        """Tell the mean gradient, or its longest entries."""
        told = _longest(kept.e + mean, self.entries_told)
        return Kept(kept.x, kept.e + mean - told), Told(kept.x, told)

    def train(
        self, key: Array, oracle: AgentOracle, state: State, inbox: Told
    ) -> tuple[State, Array]:
        """Second exchange: corrected local steps from x."""

        def update(w: Array, g: Array) -> Array:
            # w <- w - gamma_i (g_i(w) - g_i(x) + g)
            return w - self.step_size * (g - state.g + inbox.g)

        w = descend(key, oracle, inbox.x, self.local_steps, update, self.own_steps)
        return State(w, state.g, state.e), w

    def init_coordinator(self, w: Array) -> Kept:
        """The coordinator keeps the shared model."""
        return Kept(w, jnp.zeros_like(w))

    def average_model(
        self, key: Array, kept: Kept, mean: Array, now: Round
    ) -> tuple[Kept, Told]:
        """X = (1/N) sum_i w_i."""
        return Kept(mean, kept.e), Told(mean, jnp.zeros_like(mean))

    def shared(self, broadcast: Told) -> Array:
        """x, the shared model."""
        return broadcast.x
