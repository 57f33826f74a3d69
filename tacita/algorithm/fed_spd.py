"""FedSPD: stochastic primal-dual steps for sparse models, with silent clients.

Y. Li, S. Wang, T.-H. Chang, C.-Y. Chi, "Federated Stochastic
Primal-dual Learning with Differential Privacy", Algorithm 1, misprints mended. Solves
min_w sum_i f_i(w) + h(w), with h shared equally: R_i = h/N.

    coordinator   x0 = (1/N) sum_i y_i              the last letters of all clients
    client i      u <- prox_{R_i/(gamma+rho)}( (gamma u + rho x0 + lam_i - g_i(u))
                                                / (gamma + rho) )         Q times
                  x_i = the mean of the Q iterates
                  y_i = 2 x_i - x0 - lam_i/rho + noise
                  lam_i <- lam_i - rho (x_i - x0)

with gamma_t in round t, a number or a schedule. As printed, u_i and lam_i stay hidden
and remember every record without noise: the printed privacy theorem is refuted
(docs/explanation-fed-spd.md). With `state="public"` they are rebuilt from the letter,

    x~ = (y_i + x0 + lam_i/rho)/2 = x_i + noise/2,   u_i = x~,
    lam_i <- lam_i - rho (x~ - x0),

so that a client keeps nothing that the coordinator cannot compute.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from tacita import check, integer_noise
from tacita.algorithm.base import Averages, Number, Round, ServerAlgorithm
from tacita.algorithm.defaults import inverse_splitting_rho
from tacita.algorithm.joining import Joining
from tacita.problem.oracles import AgentOracle, Full, Oracle
from tacita.schedule import rate
from tacita.theory import descent
from tacita.trees import count, flag, frozen, number, one_of


class State(NamedTuple):
    """One client's memory."""

    u: Array  # u_i, where its next local steps start
    lam: Array  # lambda_i, its dual variable


class Told(NamedTuple):
    """What the coordinator tells the active clients."""

    x0: Array  # the shared model
    average: Any = ()  # of the shared models of all rounds, where that is published


@frozen
class FedSPD(ServerAlgorithm):
    """Federated stochastic primal-dual learning.

    Attributes:
        rho: Penalty of the consensus constraint, common to all; None lets theory
            choose sqrt(mu L), or L where mu is not positive.
        gamma: gamma_t, the inverse of the local step size; None lets theory choose L,
            twice what keeps local steps from expanding. A constant one is exact without
            noise; the paper's (26) grows, `Polynomial(start=gamma, power=-0.5)`.
        local_steps: Q, local steps in a round.
        oracle: How clients compute gradients. For the amplified privacy bound the Q
            batches of a round are disjoint:
            `Clipped(norm=1.0, oracle=Minibatch(size=b, sampling="permutation"))`.
        average: Publish the mean of the shared models of all rounds, of which Theorem 2
            speaks, instead of the last one; letters are the same.
        state: "public" rebuilds the client's state from its released letter, "hidden"
            is the algorithm as printed.
        noise_std: Of the noise in a gradient: a letter has 2 noise_std/(rho + gamma_t)
            N(0, I) added, as one local step would carry it over. None adds none. One
            number or one per client, see `tacita.private`.
        noise_kind: "float" for floating-point Gaussians, or "integers": letters are
            rounded to a grid and get noise of exact integers, as in federations.
        paper_noise: Allow noise beside a hidden state, to reproduce the paper.
    """

    # Penalties of their own would spoil sum_i lam_i = 0.
    rho: Number = number(check.positive, theory=inverse_splitting_rho, common=True)
    gamma: Number = rate(theory=descent.smoothness)
    local_steps: int = count(5)
    oracle: Oracle = Full()
    average: bool = flag(False)
    state: str = one_of("public", "hidden")
    noise_std: Number = number(check.not_negative)
    noise_kind: str = integer_noise.noise_kind()
    paper_noise: bool = flag(False)

    averages: ClassVar[Averages] = Averages.ALL
    joining: ClassVar[Joining] = Joining(
        no_sum="its state needs the agent's own noisy letter"
    )
    composite: ClassVar[bool] = True
    purpose: ClassVar[str] = "private training with h, noise in letters"
    source: ClassVar[str] = (
        "Y. Li et al., Federated Stochastic Primal-dual Learning with Differential "
        "Privacy, Algorithm 1"
    )

    def __post_init__(self) -> None:
        if self.noise_std is not None and self.state == "hidden":
            if not self.paper_noise:
                check.refuse(
                    "noise_std beside state='hidden' hides less than the paper claims; "
                    "use state='public', or paper_noise=True to reproduce the paper"
                )

    def step_before_noise(self) -> Any:
        """A local step, 1/(rho + gamma)."""
        return 1 / (self.rho + self.gamma)

    def init(self, w: Array) -> tuple[State, Array]:
        """u_i = y_i = w, lam_i = 0."""
        return State(w, jnp.zeros_like(w)), w

    def init_coordinator(self, w: Array) -> Any:
        """The average of the shared models, where it is published."""
        return w if self.average else ()

    def combine(
        self, key: Array, kept: Any, mean: Array, now: Round
    ) -> tuple[Any, Told]:
        """x0 = (1/N) sum_i y_i, over the last letters of all clients."""
        if self.average:
            # Before the first round there is nothing to average with.
            kept = kept + (mean - kept) / jnp.maximum(now.number, 1)
        return kept, Told(mean, kept)

    def local(
        self, key: Array, oracle: AgentOracle, state: State, inbox: Told
    ) -> tuple[State, Array]:
        """Q proximal steps, the letter, and the dual step."""
        x0, rho, lam = inbox.x0, self.rho, state.lam
        for_rows, for_noise = jax.random.split(key)
        u, x = self._train(for_rows, oracle, state, inbox)
        # y_i = 2 x_i - x0 - lam_i/rho (+ noise), which is x_i - lam_i/rho afterwards
        letter = 2 * x - x0 - lam / rho
        if self.noise_std is not None:
            std = 2 * self.noise_std / (rho + self.gamma)
            letter = integer_noise.noised(for_noise, letter, std, self.noise_kind)
        if self.state == "public":
            # x~ = (y_i + x0 + lam_i/rho)/2
            u = x = (letter + x0 + lam / rho) / 2
        # lam_i <- lam_i - rho (x_i - x0)
        return State(u, lam - rho * (x - x0)), letter

    def _train(
        self, key: Array, oracle: AgentOracle, state: State, inbox: Told
    ) -> tuple[Array, Array]:
        """The last of the Q iterates, and their mean."""
        gamma, h = self.gamma, oracle.local.h
        anchor = self.rho * inbox.x0 + state.lam
        weight = gamma + self.rho

        def step(carry: tuple[Array, Array], draw: Any) -> tuple[Any, None]:
            u, total = carry
            v = (gamma * u + anchor - oracle(draw, u)) / weight
            # prox_{R_i/(gamma + rho)} with R_i = h/N
            u = v if h is None else h.prox(v, 1 / (oracle.local.n_agents * weight))
            return (u, total + u), None

        draws = oracle.draws(key, self.local_steps)
        start = (state.u, jnp.zeros_like(state.u))
        u, total = jax.lax.scan(step, start, draws, length=self.local_steps)[0]
        return u, total / self.local_steps

    def shared(self, broadcast: Told) -> Array:
        """x0, or its average."""
        return broadcast.average if self.average else broadcast.x0
