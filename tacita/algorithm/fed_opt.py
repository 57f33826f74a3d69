"""FedOpt: the coordinator takes the mean change of models for a gradient.

S. J. Reddi et al., "Adaptive Federated Optimization", ICLR 2021, Algorithm 2; FedAvgM
is of T.-M. H. Hsu, H. Qi, M. Brown, "Measuring the Effects of Non-Identical Data
Distribution for Federated Visual Classification", 2019.

    agent i       w_i <- x, then K times w_i <- w_i - eta_l g_i(w_i)
    coordinator   D = mean of w_i over the active - x
                  m <- beta_1 m + (1 - beta_1) D
                  v <- v + D^2                                   FedAdagrad
                  v <- v - (1 - beta_2) D^2 sign(v - D^2)        FedYogi
                  v <- beta_2 v + (1 - beta_2) D^2               FedAdam
                  x <- x + eta m / (sqrt(v) + tau)
    FedAvgM       m <- beta m + D, x <- x + eta m

Letters are those of FedAvg; what the coordinator makes of their mean uses no rows.
Optimisers of optax, for agents and coordinator: `tacita.FedOpt`.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax import Array

from tacita import check
from tacita.algorithm.base import Gradients, ModelState, Number, Round, ServerAlgorithm
from tacita.algorithm.from_zero import StepsFromZero
from tacita.algorithm.gradient_steps import gradient_steps
from tacita.algorithm.joining import Around, Joining, Rules
from tacita.problem.oracles import AgentOracle, Full, Oracle
from tacita.schedule import rate
from tacita.theory import descent
from tacita.trees import count, frozen, number, one_of

_PAPER = "S. J. Reddi et al., Adaptive Federated Optimization, ICLR 2021, Algorithm 2"

Kept = TypeVar("Kept", bound=tuple)


class Moments(NamedTuple):
    """What the coordinator remembers."""

    x: Array  # the shared model
    m: Array  # of the changes, a running mean or sum
    v: Array  # of their squares


def once_begun(now: Round, after: Kept, before: Kept) -> Kept:
    """What the coordinator keeps: before the first round starts, and no changes."""
    return jax.tree.map(
        lambda new, old: jnp.where(now.number > 0, new, old), after, before
    )


class CoordinatorSteps(StepsFromZero, ServerAlgorithm):
    """Local steps as in FedAvg, then a step of the coordinator's. Abstract."""

    step_size: Number
    local_steps: int
    server_step: Number

    joining: ClassVar[Joining] = Joining(Around.BROADCAST, Rules.ANY, no_sum=None)

    def follow(self, kept: Moments, change: Array) -> tuple[Moments, Array]:
        """The moments after a mean change, and the step to take from x."""
        raise NotImplementedError

    def gradients(self) -> Gradients:
        """One a local step."""
        return (self.local_steps,)

    def init(self, w: Array) -> tuple[ModelState, Array]:
        """Start from w; the first broadcast is the mean of the starts."""
        return ModelState(w), w

    def init_coordinator(self, w: Array) -> Moments:
        """No change was seen yet."""
        return Moments(w, jnp.zeros_like(w), jnp.zeros_like(w))

    def combine(
        self, key: Array, kept: Moments, mean: Array, now: Round
    ) -> tuple[Moments, Array]:
        """Step: x <- x + step, with the mean change as the gradient."""
        # D = mean of w_i - x
        change = mean - kept.x
        after, step = self.follow(kept, change)
        # x + step, from the mean: a step that is the change gives FedAvg to the bit.
        after = after._replace(x=mean + (step - change))
        told = once_begun(now, after, kept._replace(x=mean))
        return told, told.x

    def local(
        self, key: Array, oracle: AgentOracle, state: ModelState, inbox: Array
    ) -> tuple[ModelState, Array]:
        """w_i <- x, then K times w_i <- w_i - eta_l g_i(w_i)."""
        w = gradient_steps(key, oracle, inbox, self.step_size, self.local_steps)
        return ModelState(w), w


class AdaptiveSteps(CoordinatorSteps):
    """Every entry of a change is measured by its own size so far. Abstract."""

    beta_1: Number
    tau: Number

    def init_coordinator(self, w: Array) -> Moments:
        """Begin v at tau^2, the least that the paper allows."""
        return super().init_coordinator(w)._replace(v=jnp.full_like(w, self.tau**2))

    def squares(self, v: Array, square: Array) -> Array:
        """The v after a change with this square."""
        raise NotImplementedError

    def follow(self, kept: Moments, change: Array) -> tuple[Moments, Array]:
        """Both moments, and their quotient."""
        # m <- beta_1 m + (1 - beta_1) D
        m = self.beta_1 * kept.m + (1 - self.beta_1) * change
        v = self.squares(kept.v, change**2)
        # eta m / (sqrt(v) + tau)
        return Moments(kept.x, m, v), self.server_step * m / (jnp.sqrt(v) + self.tau)


@frozen
class FedAvgM(CoordinatorSteps):
    """FedAvg whose coordinator has momentum; without it, and with step 1, FedAvg.

    Attributes:
        momentum: beta, what is kept of the last step.
        server_step: eta, how far the coordinator follows.
        step_size: eta_l of the local steps; None lets theory choose 1 / smoothness.
        local_steps: K, the number of local steps in a round.
        oracle: How agents compute gradients.
        weights: "uniform" mean, or weighted by the agents' number of "samples".
    """

    momentum: Number = number(check.below_one, 0.9, common=True)
    server_step: Number = rate(1.0, common=True)
    step_size: Number = rate(theory=descent.safe_step_size)
    local_steps: int = count(1)
    oracle: Oracle = Full()
    weights: str = one_of("uniform", "samples")

    purpose: ClassVar[str] = "momentum at the coordinator"
    source: ClassVar[str] = "T.-M. H. Hsu et al., FedAvgM, 2019"

    def follow(self, kept: Moments, change: Array) -> tuple[Moments, Array]:
        """The momentum."""
        # m <- beta m + D
        m = self.momentum * kept.m + change
        return kept._replace(m=m), self.server_step * m


@frozen
class FedAdagrad(AdaptiveSteps):
    """The coordinator divides by the root of all squares so far.

    Attributes:
        server_step: eta, about how far an entry of the model moves in a round.
        beta_1: What is kept of the mean change.
        tau: How much it adapts: entries that change by less move less.
        step_size: eta_l of the local steps; None lets theory choose 1 / smoothness.
        local_steps: K, the number of local steps in a round.
        oracle: How agents compute gradients.
        weights: "uniform" mean, or weighted by the agents' number of "samples".
    """

    server_step: Number = rate(0.1, common=True)
    beta_1: Number = number(check.below_one, 0.0, common=True)
    tau: Number = number(check.positive, 1e-3, common=True)
    step_size: Number = rate(theory=descent.safe_step_size)
    local_steps: int = count(1)
    oracle: Oracle = Full()
    weights: str = one_of("uniform", "samples")

    purpose: ClassVar[str] = "steps that shrink where models moved most"
    source: ClassVar[str] = _PAPER

    def squares(self, v: Array, square: Array) -> Array:
        """Add it: v <- v + D^2."""
        return v + square


@frozen
class FedYogi(AdaptiveSteps):
    """As FedAdam, but the mean square moves no faster than by a square.

    Attributes:
        server_step: eta, about how far an entry of the model moves in a round.
        beta_1: What is kept of the mean change.
        beta_2: What is kept of the mean square.
        tau: How much it adapts: entries that change by less move less.
        step_size: eta_l of the local steps; None lets theory choose 1 / smoothness.
        local_steps: K, the number of local steps in a round.
        oracle: How agents compute gradients.
        weights: "uniform" mean, or weighted by the agents' number of "samples".
    """

    server_step: Number = rate(0.1, common=True)
    beta_1: Number = number(check.below_one, 0.9, common=True)
    beta_2: Number = number(check.below_one, 0.99, common=True)
    tau: Number = number(check.positive, 1e-3, common=True)
    step_size: Number = rate(theory=descent.safe_step_size)
    local_steps: int = count(1)
    oracle: Oracle = Full()
    weights: str = one_of("uniform", "samples")

    purpose: ClassVar[str] = "adaptive steps that forget slowly"
    source: ClassVar[str] = _PAPER

    def squares(self, v: Array, square: Array) -> Array:
        """Towards it: v <- v - (1 - beta_2) D^2 sign(v - D^2)."""
        return v - (1 - self.beta_2) * square * jnp.sign(v - square)


@frozen
class FedAdam(AdaptiveSteps):
    """The coordinator divides by the root of the mean square.

    Attributes:
        server_step: eta, about how far an entry of the model moves in a round.
        beta_1: What is kept of the mean change.
        beta_2: What is kept of the mean square.
        tau: How much it adapts: entries that change by less move less.
        step_size: eta_l of the local steps; None lets theory choose 1 / smoothness.
        local_steps: K, the number of local steps in a round.
        oracle: How agents compute gradients.
        weights: "uniform" mean, or weighted by the agents' number of "samples".
    """

    server_step: Number = rate(0.1, common=True)
    beta_1: Number = number(check.below_one, 0.9, common=True)
    beta_2: Number = number(check.below_one, 0.99, common=True)
    tau: Number = number(check.positive, 1e-3, common=True)
    step_size: Number = rate(theory=descent.safe_step_size)
    local_steps: int = count(1)
    oracle: Oracle = Full()
    weights: str = one_of("uniform", "samples")

    purpose: ClassVar[str] = "adaptive steps at the coordinator"
    source: ClassVar[str] = _PAPER

    def squares(self, v: Array, square: Array) -> Array:
        """Mean: v <- beta_2 v + (1 - beta_2) D^2."""
        return self.beta_2 * v + (1 - self.beta_2) * square
