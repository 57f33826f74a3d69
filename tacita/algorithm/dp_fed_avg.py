"""DP-FedAvg, twice: noise at the clients, for records, or at the coordinator.

`DPFedAvg` protects records against everybody, the coordinator included: local steps on
clipped gradients, and noise in the letter before it leaves.

    client i      w_i <- w, then Q times w_i <- w_i - eta g_i(w_i)
                  letter = w_i + eta noise_std N(0, I)
    coordinator   w = mean letter of the active clients

`ClientDPFedAvg` protects whole clients against those who see models only, and trusts
the coordinator: H. B. McMahan, D. Ramage, K. Talwar, L. Zhang, "Learning Differentially
Private Recurrent Language Models", ICLR 2018, with the fixed denominator.

    client i      d_i = clip(w_i - w, S) after Q local steps
    coordinator   w <- w + (sum over active d_i + noise_std N(0, I)) / cohort
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import jax
import jax.numpy as jnp
from jax import Array

from tacita import check, integer_noise
from tacita.algorithm.base import ModelState, Number, Round, ServerAlgorithm
from tacita.algorithm.from_zero import (
    StepsFromZero,
    steps_from_zero,
    steps_without_rows,
)
from tacita.algorithm.gradient_steps import gradient_steps
from tacita.algorithm.joining import Around, Joining, Rules
from tacita.problem.oracles import AgentOracle, Full, Oracle
from tacita.random_numbers import normal
from tacita.schedule import rate
from tacita.theory import descent
from tacita.trees import count, frozen, number

if TYPE_CHECKING:
    from tacita.problem.problem import Problem


@frozen
class DPFedAvg(StepsFromZero, ServerAlgorithm):
    """Local steps on clipped gradients, noise in the letter.

    Attributes:
        step_size: eta; None lets theory choose 1/L.
        local_steps: Q, local steps in a round.
        oracle: How clients compute gradients; with disjoint batches
            (`Minibatch(size=b, sampling="permutation")`) the privacy of a round is
            amplified.
        noise_std: Of the noise in a gradient: a letter has step_size noise_std
            N(0, I) added, once. None adds none. One number or one per client.
        noise_kind: "float" for floating-point Gaussians, or "integers": what rows add
            is rounded to a grid and gets noise of exact integers, as in federations.
    """

    step_size: Number = rate(theory=descent.safe_step_size)
    local_steps: int = count(5)
    oracle: Oracle = Full()
    noise_std: Number = number(check.not_negative)
    noise_kind: str = integer_noise.noise_kind()

    joining: ClassVar[Joining] = Joining(Around.BROADCAST, Rules.ANY, no_sum=None)
    purpose: ClassVar[str] = "private training with few letters, noise in each"
    source: ClassVar[str] = "B. McMahan et al., FedAvg, with noise in every letter"

    def step_before_noise(self) -> Any:
        """A local step."""
        return self.step_size

    def init(self, w: Array) -> tuple[ModelState, Array]:
        """Start from w; the first broadcast is the mean of the starts."""
        return ModelState(w), w

    def local(
        self, key: Array, oracle: AgentOracle, state: ModelState, inbox: Array
    ) -> tuple[ModelState, Array]:
        """w_i <- w, then Q times w_i <- w_i - eta g_i(w_i); then noise."""
        for_rows, for_noise = jax.random.split(key)
        steps = (self.step_size, self.local_steps)
        if self.noise_std is None:
            w = gradient_steps(for_rows, oracle, inbox, *steps)
            return ModelState(w), w
        noised = partial(
            integer_noise.noised,
            std=self.step_size * self.noise_std,
            kind=self.noise_kind,
        )
        if self.noise_kind == "float":
            w = noised(for_noise, gradient_steps(for_rows, oracle, inbox, *steps))
        else:
            # From zero: the digits of a broadcast are its sender's choice.
            moved = noised(for_noise, steps_from_zero(for_rows, oracle, inbox, *steps))
            known = steps_without_rows(oracle.local.regulariser, inbox, *steps)
            w = inbox + known + moved
        return ModelState(w), w


def _everybody(problem: Problem) -> int:
    """N, all clients."""
    return problem.n_agents


@frozen
class ClientDPFedAvg(ServerAlgorithm):
    """Clipped updates, summed by a trusted coordinator who adds the noise.

    The denominator is fixed, and a round in which nobody takes part has its noise too:
    models do not tell how many did. Where clients are not trusted to clip, the
    coordinator bounds updates once more: `aggregation=NormBound(radius=S)`.

    Attributes:
        clip: S, the largest norm of one client's update.
        cohort: Clients expected in a round, participation times N: the fixed
            denominator. None for all of them.
        step_size: eta of the local steps; None lets theory choose 1/L.
        local_steps: Q, local steps in a round.
        oracle: How clients compute gradients.
        noise_std: Of the noise on the *sum* of updates, drawn by the coordinator;
            None adds none.
    """

    clip: float = number(check.positive, 1.0, common=True)
    cohort: Number = number(check.positive, theory=_everybody, common=True)
    step_size: Number = rate(theory=descent.safe_step_size)
    local_steps: int = count(5)
    oracle: Oracle = Full()
    noise_std: float | None = number(check.not_negative, common=True)

    joining: ClassVar[Joining] = Joining(Around.ZERO, Rules.BOUNDED, no_sum=None)
    purpose: ClassVar[str] = "hides whole clients, from all but the coordinator"
    source: ClassVar[str] = (
        "H. B. McMahan et al., Learning Differentially Private Recurrent Language "
        "Models, ICLR 2018, Algorithm 1"
    )

    def init(self, w: Array) -> tuple[ModelState, Array]:
        """Nothing was contributed yet."""
        return ModelState(w), jnp.zeros_like(w)

    def init_coordinator(self, w: Array) -> Array:
        """The coordinator keeps the model."""
        return w

    def combine(
        self, key: Array, kept: Array, mean: Array, now: Round
    ) -> tuple[Array, Array]:
        """Step along the sum: w <- w + (sum over active d_i + noise) / cohort."""
        change = jnp.asarray(now.active, mean.dtype) * mean
        if self.noise_std is not None:
            # No noise before the first round: nothing was sent.
            noise = normal(key, mean.shape, mean.dtype)
            std = jnp.where(now.number > 0, self.noise_std, 0.0)
            change = change + std.astype(mean.dtype) * noise
        w = kept + change / self.cohort
        return w, w

    def local(
        self, key: Array, oracle: AgentOracle, state: ModelState, inbox: Array
    ) -> tuple[ModelState, Array]:
        """d_i = clip(w_i - w, S)."""
        w = gradient_steps(key, oracle, inbox, self.step_size, self.local_steps)
        return ModelState(inbox), self._clipped(w - inbox)

    def _clipped(self, update: Array) -> Array:
        # An update that is not a number counts as zero: it must not show.
        update = jnp.where(jnp.all(jnp.isfinite(update)), update, 0)
        length = jnp.sqrt(jnp.sum(update**2))
        return update * jnp.minimum(1, self.clip / jnp.maximum(length, 1e-15))

    def increment(
        self, key: Array, oracle: AgentOracle, state: ModelState, inbox: Array
    ) -> tuple[ModelState, Array]:
        """The clipped update: it is an increment already."""
        return self.local(key, oracle, state, inbox)

    def joined(self, kept: Array, told: Array, mean: Array, now: Round) -> Array:
        """The mean update."""
        return mean
