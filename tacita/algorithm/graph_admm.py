"""ADMM on a graph with linearised local steps; with noise, decentralised DP-ADMM.

Z. Huang et al., "DP-ADMM", IEEE Trans. Inf. Forensics Secur. 2020, in the form for
graphs that DP-Norm is compared with. With e = 1/mu, edge weights A_ij, E_i = sum_j A_ij
and wbar the models at the last exchange:

    lam <- lam + rho (E_i wbar_i - sum_j A_ij wbar_j)
    K times: w <- ( e w - g - lam + rho (E_i wbar_i + sum_j A_ij wbar_j) )
                  / (2 rho E_i + e)

Without noise and with full gradients it reaches the common optimum. With a `Noisy`
oracle of standard deviation sigma the noise in w, which the paper counts, is
sigma / (2 rho E_i + 1/mu) a step. Table II of the DP-Norm paper has steps that shrink,
mu_kr = mu / sqrt(k r) in local step k of round r: `step_size=Polynomial(start=mu,
power=0.5)` with `local_power=0.5`.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from tacita import check
from tacita.algorithm.base import Edges, Gradients, GraphAlgorithm, Number
from tacita.problem.oracles import AgentOracle, Full, Oracle
from tacita.schedule import rate
from tacita.theory import descent
from tacita.trees import count, frozen, needed, number


class State(NamedTuple):
    """One node's memory."""

    w: Array  # w_i, its own model, which is also its letter
    lam: Array  # lambda_i, the sum of its edges' multipliers


@frozen
class GraphADMM(GraphAlgorithm):
    """ADMM whose local problems are solved by K gradient steps.

    Attributes:
        rho: The penalty on differences along edges, common to all nodes.
        step_size: mu = 1/e, of the local steps; None lets theory choose 1 / smoothness.
        local_steps: K, gradient steps between two exchanges.
        local_power: Local step k has mu / k^local_power.
        oracle: How nodes compute gradients.
    """

    # Both ends of an edge must use the same penalty.
    rho: float = needed(check.positive, common=True)
    step_size: Number = rate(theory=descent.safe_step_size)
    local_steps: int = count(10)
    local_power: float = number(check.between(0, 1), 0.0)
    oracle: Oracle = Full()

    purpose: ClassVar[str] = "one model on a graph, to the exact optimum, by ADMM"
    source: ClassVar[str] = "Z. Huang et al., DP-ADMM, on a graph"
    partial: ClassVar[bool] = False
    why_not_partial: ClassVar[str] = (
        "its multipliers add up to zero only if every letter arrives in its round"
    )

    def gradients(self) -> Gradients:
        """One a local step."""
        return (self.local_steps,)

    def init(self, w: Array, edges: Edges) -> tuple[State, Array]:
        """Start from w, with multipliers 0."""
        return State(w, jnp.zeros_like(w)), w

    def local(
        self, key: Array, oracle: AgentOracle, edges: Edges, state: State, inbox: Array
    ) -> tuple[State, Array]:
        """Bring the multipliers up to date, then K steps on the local problem."""
        own = edges.degree * state.w
        lam = state.lam + self.rho * (own - inbox)
        towards = self.rho * (own + inbox) - lam

        def step(v: Array, now: tuple[Any, Array]) -> tuple[Array, None]:
            draw, k = now
            # e = 1/mu_k with mu_k = mu / k^local_power, k from 1
            e = (1.0 + k) ** self.local_power / self.step_size
            share = 1 / (2 * self.rho * edges.degree + e)
            return share * (e * v - oracle(draw, v) + towards), None

        draws, numbers = (
            oracle.draws(key, self.local_steps),
            jnp.arange(self.local_steps),
        )
        w = jax.lax.scan(step, state.w, (draws, numbers))[0]
        return State(w, lam), w
