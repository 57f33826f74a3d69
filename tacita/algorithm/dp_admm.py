"""DP-ADMM, with a coordinator: one linearised step a round, noise in every letter.

Z. Huang, R. Hu, Y. Guo, E. Chan-Tin, Y. Gong, "DP-ADMM: ADMM-based Distributed
Learning with Differential Privacy", IEEE TIFS 2020. With w~_i the noisy local model,

    client i      lam_i <- lam_i - rho (w~_i - w)
                  w~_i  <- (w~_i/eta_t + rho w + lam_i - g_i(w~_i)) / (rho + 1/eta_t)
                  letter = w~_i - lam_i/rho
    coordinator   w = prox_{h/(N rho)}( (1/N) sum_i letter_i )

The noise is that of the gradients, from a `Noisy` oracle of standard deviation sigma: a
letter carries sigma/(rho + 1/eta_t). The next step starts from what was released, so
rounds compose. Its own step size balances radius and noise, eta_t = radius / sqrt(2 t
(G^2 + d sigma^2)) with G the clipping norm; the paper writes sigma as
2 G sqrt(2 ln(1.25/delta))/(m epsilon).
The paper takes a subgradient of h at the clients; here the coordinator takes the
proximal step, which is exact.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import jax.numpy as jnp
from jax import Array

from tacita import check
from tacita.algorithm.base import (
    Averages,
    Gradients,
    Number,
    Round,
    ServerAlgorithm,
)
from tacita.algorithm.defaults import inverse_splitting_rho
from tacita.algorithm.joining import NOISE_WEARS_OFF, Joining
from tacita.problem.oracles import AgentOracle, Full, Oracle
from tacita.schedule import rate
from tacita.theory import descent
from tacita.trees import frozen, number

if TYPE_CHECKING:
    from tacita.problem.problem import Problem


class State(NamedTuple):
    """One client's memory; whoever sees all letters can compute it."""

    w: Array  # w~_i, its noisy model
    lam: Array  # lambda_i, its dual variable
    started: Array  # 0 before its first round


class Told(NamedTuple):
    """What the coordinator tells the active clients."""

    w: Array  # the shared model
    round: Array  # t, from 1; decides eta_t by the paper's rule


def _step_size(problem: Problem, algorithm: Any) -> Any:
    """1/L, unless the paper's rule finds a bound on gradients."""
    bounds = algorithm.gradient_bound, algorithm.oracle.norm
    unbounded = all(bound is None for bound in bounds)
    return descent.safe_step_size(problem, algorithm) if unbounded else None


def _gradient_bound(problem: Problem, algorithm: Any) -> Any:
    """The clipping norm, where no step size is given."""
    return algorithm.oracle.norm if algorithm.step_size is None else None


@frozen
class DPADMM(ServerAlgorithm):
    """Linearised ADMM on noisy letters.

    Attributes:
        rho: Penalty of the consensus constraint; None lets theory choose sqrt(mu L),
            or L where mu is not positive.
        step_size: eta_t; None follows the paper's rule where gradients are clipped,
            else it is 1/L. A constant one is exact without noise.
        radius: How far models may lie apart, for the paper's rule.
        gradient_bound: G of the paper's rule; None takes the clipping norm.
        oracle: How clients compute gradients.
    """

    # Penalties of their own would spoil sum_i lam_i = 0.
    rho: Number = number(check.positive, theory=inverse_splitting_rho, common=True)
    step_size: Number = rate(theory=_step_size)
    radius: float = number(check.positive, 1.0)
    gradient_bound: Number = number(check.positive, theory=_gradient_bound)
    oracle: Oracle = Full()

    averages: ClassVar[Averages] = Averages.ALL
    joining: ClassVar[Joining] = Joining(no_sum=NOISE_WEARS_OFF)
    composite: ClassVar[bool] = True
    purpose: ClassVar[str] = "private training with h, by linearised ADMM"
    source: ClassVar[str] = "Z. Huang et al., DP-ADMM, IEEE TIFS 2020, Algorithm 2"

    def inverse_step(self, number: Any, dim: int) -> Any:
        """1/eta_t in round t."""
        if self.step_size is not None:
            return 1 / self.step_size
        # eta_t = radius / sqrt(2 t (G^2 + d sigma^2))
        spread = self.gradient_bound**2 + dim * self.oracle.std**2
        return jnp.sqrt(2 * number * spread) / self.radius

    def gradients(self) -> Gradients:
        """One, at its own model."""
        return (1,)

    def init(self, w: Array) -> tuple[State, Array]:
        """w~_i = w, lam_i = 0."""
        return State(w, jnp.zeros_like(w), jnp.zeros((), w.dtype)), w

    def combine(
        self, key: Array, kept: Any, mean: Array, now: Round
    ) -> tuple[Any, Told]:
        """The shared model, w = prox_{h/(N rho)}(mean letter)."""
        w = now.prox(mean, 1 / (now.n_agents * self.rho))
        return kept, Told(w, jnp.asarray(now.number + 1, mean.dtype))

    def local(
        self, key: Array, oracle: AgentOracle, state: State, inbox: Told
    ) -> tuple[State, Array]:
        """The dual step of the last letter, one linearised primal step, the letter."""
        rho, w = self.rho, inbox.w
        inverse = self.inverse_step(inbox.round, w.size)
        # lam_i <- lam_i - rho (w~_i - w)
        lam = state.lam - state.started * rho * (state.w - w)
        g = oracle.once(key, state.w)
        # argmin <g, v> - <lam_i, v> + rho/2 ||v - w||^2 + ||v - w~_i||^2/(2 eta_t)
        own = (inverse * state.w + rho * w + lam - g) / (rho + inverse)
        return State(own, lam, jnp.ones_like(state.started)), own - lam / rho

    def shared(self, broadcast: Told) -> Array:
        """The shared model."""
        return broadcast.w
