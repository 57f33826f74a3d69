"""TAMUNA: random numbers of local steps, a cohort of agents, compressed letters.

L. Condat, I. Agarsky, G. Malinovsky, P. Richtarik, "TAMUNA: Doubly Accelerated
Federated Learning with Local Training, Compression, and Partial Participation",
arXiv 2302.09832, Algorithm 1. With l ~ Geom(p), p = 1/Ne, and a cohort S,

    agent i in S   w = x, then l times  w <- w - gamma (g_i(w) - h_i)
                   sends C_i(w): the coordinates that its mask lets through
    coordinator    x = (1/s) sum_{i in S} C_i(w_i)
    agent i in S   h_i <- h_i + (eta/gamma) C_i(x - w_i)

The masks are drawn anew in every round so that each coordinate is sent by exactly s of
the cohort; therefore sum_i h_i = 0 always. Without compression s = |S|.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.algorithm import random_steps
from tacita.algorithm.base import Gradients, Number, Phase, Round, ServerAlgorithm
from tacita.problem.oracles import AgentOracle, Full, Oracle
from tacita.schedule import rate
from tacita.theory import descent
from tacita.trees import count, flag, frozen, number

if TYPE_CHECKING:
    from tacita.problem.problem import Problem


class State(NamedTuple):
    """One agent's memory."""

    w: Array  # w_i, the model after its last local steps
    h: Array  # h_i, which tends to grad f_i(x*)


class Told(NamedTuple):
    """What the coordinator tells all agents, and itself remembers."""

    x: Array  # the shared model
    steps: Array  # l, the number of local steps
    slots: Any  # every agent's place in the cohort, with compression
    cohort: Any  # the size of the cohort, with compression


def _eta(problem: Problem, algorithm: Any) -> Any:
    """(1/Ne) N (s - 1) / (s (N - 1)), with s = N where there is no compression."""
    n = problem.n_agents
    s = n if algorithm.sparsity is None else min(algorithm.sparsity, n)
    return n * (s - 1) / (s * max(n - 1, 1)) / algorithm.local_steps


def _agents(problem: Problem, algorithm: Any) -> Any:
    """Numbers from 0, where letters are compressed."""
    return None if algorithm.sparsity is None else np.arange(problem.n_agents)


@frozen
class TAMUNA(ServerAlgorithm):
    """Gradient steps with control variates; any cohort of at least two agents.

    Attributes:
        step_size: gamma, one number for all; None lets theory choose 1/L.
        eta: Step of the control variates; None lets theory choose, for N agents,
            (1/Ne) N (s - 1) / (s (N - 1)), with s = N where there is no compression.
            For a cohort of c agents the proof has s = c there, a half at least.
        local_steps: Ne, the mean number of local steps in a round.
        fixed: Make exactly round(Ne) steps instead of a random number.
        sparsity: s, how many of the cohort send each coordinate; None sends all.
        agent: Every agent's number, filled in for the masks; leave it out.
        oracle: How agents compute gradients.
    """

    # Numbers of their own would spoil sum_i h_i = 0.
    step_size: Number = rate(theory=descent.safe_step_size, common=True)
    eta: Number = number(check.positive, theory=_eta, common=True)
    local_steps: Number = number(check.between(1, 1e6), 5.0, common=True)
    fixed: bool = flag(False)
    sparsity: int | None = count(None, at_least=2)
    agent: Any = number(check.not_negative, theory=_agents)
    oracle: Oracle = Full()

    #: One agent alone finds x = w_i and no change of its control variate.
    least_active: ClassVar[int] = 2
    purpose: ClassVar[str] = "the exact optimum with few bytes: cohorts, sparsity"
    source: ClassVar[str] = "L. Condat et al., TAMUNA, arXiv 2302.09832, Algorithm 1"

    @property
    def phases(self) -> tuple[Phase, ...]:
        """Training, then the control variates; before them the masks, if any."""
        after = (
            Phase(self.train, self.average),
            Phase(self.control, self.announce),
        )
        return (
            after if self.sparsity is None else (Phase(self.join, self.assign), *after)
        )

    def gradients(self) -> Gradients:
        """One a local step, if their number is fixed."""
        if not self.fixed:
            return f"{random_steps.UNBOUNDED}; use fixed=True"
        return random_steps.blocks(int(np.round(self.local_steps)))

    @property
    def _fixed_steps(self) -> Array:
        """round(Ne)."""
        return jnp.round(jnp.asarray(self.local_steps)).astype(jnp.int32)

    def init(self, w: Array) -> tuple[State, tuple[()]]:
        """h_i = 0; the round's last exchange brings no letters."""
        return State(w, jnp.zeros_like(w)), ()

    def init_coordinator(self, w: Array) -> Told:
        """The coordinator keeps what it told last."""
        return Told(w, jnp.zeros((), jnp.int32), (), ())

    def announce(
        self, key: Array, kept: Told, mean: Any, now: Round
    ) -> tuple[Told, Told]:
        """Begin a round: l ~ Geom(1/Ne)."""
        steps = self._fixed_steps
        if not self.fixed:
            steps = random_steps.geometric(key, 1 / self.local_steps)
        slots = cohort = ()
        if self.sparsity is not None:
            slots = jnp.zeros(now.n_agents, jnp.int32)
            cohort = jnp.ones((), jnp.int32)
        told = Told(kept.x, steps, slots, cohort)
        return told, told

    def join(
        self, key: Array, oracle: AgentOracle, state: State, inbox: Told
    ) -> tuple[State, Array]:
        """Say that it is here."""
        everyone = jnp.arange(len(inbox.slots))
        return state, (everyone == self.agent).astype(inbox.x.dtype)

    def assign(
        self, key: Array, kept: Told, mean: Array, now: Round
    ) -> tuple[Told, Told]:
        """Give the agents of the cohort places 0, 1, ... in a random order."""
        here = mean > 0
        order = jnp.where(here, jax.random.uniform(key, here.shape), 2.0)
        slots = jnp.argsort(jnp.argsort(order)).astype(jnp.int32)
        told = kept._replace(slots=slots, cohort=jnp.sum(here, dtype=jnp.int32))
        return told, told

    def train(
        self, key: Array, oracle: AgentOracle, state: State, inbox: Told
    ) -> tuple[State, Array]:
        """L local steps from x."""

        def update(w: Array, g: Array) -> Array:
            # w <- w - gamma (g_i(w) - h_i)
            return w - self.step_size * (g - state.h)

        # A number that is agreed on is not for the coordinator to change: an account
        # counts on it.
        steps = random_steps.as_drawn(inbox.steps, 1 / self.local_steps)
        steps = self._fixed_steps if self.fixed else steps
        w = random_steps.descend(key, oracle, inbox.x, steps, update)
        return State(w, state.h), self._mask(inbox, w)

    def average(
        self, key: Array, kept: Told, mean: Array, now: Round
    ) -> tuple[Told, Told]:
        """X = (1/s) sum_{i in S} C_i(w_i); the mean is over the cohort."""
        if self.sparsity is not None:
            size = kept.cohort.astype(mean.dtype)
            mean = mean * size / jnp.minimum(size, self.sparsity)
        told = kept._replace(x=mean)
        return told, told

    def control(
        self, key: Array, oracle: AgentOracle, state: State, inbox: Told
    ) -> tuple[State, tuple[()]]:
        """h_i <- h_i + (eta/gamma) C_i(x - w_i)."""
        change = self._mask(inbox, inbox.x - state.w)
        return State(state.w, state.h + self.eta / self.step_size * change), ()

    def _mask(self, told: Told, v: Array) -> Array:
        """C_i(v): coordinate k is sent from places sk, ..., sk + s - 1 modulo |S|."""
        if self.sparsity is None:
            return v
        first = self.sparsity * jnp.arange(v.shape[0], dtype=jnp.int32)
        mine = told.slots[jnp.asarray(self.agent, jnp.int32)]
        place = (mine - first) % told.cohort
        return jnp.where(place < self.sparsity, v, 0)

    def shared(self, broadcast: Told) -> Array:
        """x, the shared model."""
        return broadcast.x
