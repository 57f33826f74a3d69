"""A clipping norm that follows a quantile of the gradient norms, privately.

G. Andrew, O. Thakkar, B. McMahan, S. Ramaswamy, "Differentially Private Learning with
Adaptive Clipping", NeurIPS 2021. Beside its letter every agent sends the share of its
records whose gradient is not clipped, with noise; the coordinator moves the norm:

    C <- C exp(-rate (mean share - quantile))

The noise of the gradients is scaled with C, so that a round costs the same whatever C
is; the share costs a little more.
"""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tacita import check
from tacita.algorithm.base import Round
from tacita.algorithm.wrapper import Wrapper
from tacita.privacy.accounting.guarantee import Guarantee
from tacita.privacy.clipped import Clipped, schedule_of
from tacita.privacy.letters import Letters, Question, around, letters_of
from tacita.privacy.letters.composition import noisy_gradients, one_round
from tacita.privacy.letters.on_grid import has_integers
from tacita.privacy.letters.over_rounds import scheduled
from tacita.privacy.letters.question import clipped_oracle, number_of
from tacita.privacy.scope import Unit
from tacita.problem.oracles import AgentOracle
from tacita.problem.problem import Problem
from tacita.problem.quantised import Quantised
from tacita.random_numbers import normal
from tacita.trees import frozen, needed, number, replace


class WithShare(NamedTuple):
    """A letter with the share of records that were not clipped."""

    letter: Any
    share: Array


class WithNorm(NamedTuple):
    """A broadcast with the norm to clip to."""

    broadcast: Any
    norm: Array


@frozen
class AdaptiveClipping(Wrapper):
    """An algorithm whose clipping norm follows a quantile of the gradient norms.

    Attributes:
        algorithm: With one exchange a round and noisy, clipped gradients; its norm is
            the first one, and the noise of its oracle belongs to that norm.
        share_noise_std: Of the noise on the share of records that are not clipped,
            one number or one per agent. One record changes the share by 1/m.
        quantile: The share of records that should not be clipped.
        rate: How fast the norm moves.
    """

    algorithm: Any
    share_noise_std: Any = needed(check.positive)
    quantile: float = number(check.between(0, 1), 0.5)
    rate: float = number(check.positive, 0.2)

    source: ClassVar[str] = "G. Andrew et al., Adaptive Clipping, NeurIPS 2021"

    def refuse_problem(self, problem: Problem) -> None:
        """Also wants noisy, clipped gradients inside, and one exchange a round."""
        self.require_one_exchange("adaptive clipping")
        noisy_gradients(self.algorithm)
        if isinstance(self.algorithm.oracle, Quantised):
            check.refuse(
                "adaptive clipping is not offered for rounded gradients, whose range "
                "stays; leave quantile out, or tacita.Quantised"
            )
        if np.ndim(self._clipped.norm):
            check.refuse(
                "adaptive clipping moves one norm for all agents, and the oracle has "
                "one per agent; give tacita.Clipped a single norm"
            )
        self.algorithm.refuse_problem(problem)

    def init(self, w: Array) -> tuple[Any, WithShare]:
        """The first share moves nothing."""
        state, letter = self.algorithm.init(w)
        return state, WithShare(letter, jnp.asarray(self.quantile, w.dtype))

    def init_coordinator(self, w: Array) -> WithNorm:
        """The coordinator keeps the norm."""
        norm = jnp.asarray(self._clipped.norm, w.dtype)
        return WithNorm(self.algorithm.init_coordinator(w), norm)

    def combine(
        self, key: Array, kept: WithNorm, mean: WithShare, now: Round
    ) -> tuple[WithNorm, WithNorm]:
        """C <- C exp(-rate (share - quantile))."""
        inner, told = self.algorithm.combine(key, kept.broadcast, mean.letter, now)
        norm = kept.norm * jnp.exp(-self.rate * (mean.share - self.quantile))
        return WithNorm(inner, norm), WithNorm(told, norm)

    def local(
        self, key: Array, oracle: AgentOracle, state: Any, inbox: WithNorm
    ) -> tuple[Any, WithShare]:
        """The inner letter with the norm received, and the noisy share."""
        for_letter, for_share = jax.random.split(key)
        scale = inbox.norm / self._clipped.norm
        clipped = replace(self._clipped, norm=inbox.norm)
        std = oracle.oracle.std * scale
        noisy = replace(oracle.oracle, std=std, oracle=clipped)  # of this round
        inner = replace(self.algorithm, oracle=noisy)
        here = AgentOracle(noisy, oracle.local)
        state, letter = inner.local(for_letter, here, state, inbox.broadcast)
        share = clipped.share_below(oracle.local, inner.shared(inbox.broadcast))
        noise = normal(for_share, (), share.dtype)
        return state, WithShare(letter, share + self.share_noise_std * noise)

    def shared(self, broadcast: WithNorm) -> Array:
        """The inner algorithm's model."""
        return self.algorithm.shared(broadcast.broadcast)

    def model(self, state: Any) -> Array:
        """The inner algorithm's model."""
        return self.algorithm.model(state)

    @property
    def _clipped(self) -> Clipped:
        return clipped_oracle(self.algorithm)


@letters_of.register
def _(algorithm: AdaptiveClipping) -> Letters:
    inner = letters_of(algorithm.algorithm)
    theorem = partial(_letter_and_share, algorithm, inner.mixed)
    return around(algorithm, theorem=theorem, mixed=inner.mixed)


def _letter_and_share(
    algorithm: AdaptiveClipping, mixed: Any, problem: Problem, question: Question
) -> Guarantee:
    """A round is the inner algorithm's letter and one share; both are released."""
    if has_integers(algorithm):
        check.refuse(
            "the share of records that are clipped has floating-point noise; use "
            "noise_kind='float' with adaptive clipping"
        )
    client = question.scope.unit == Unit.CLIENT
    samples = 1 if client else int(problem.counts[question.agent])
    noise = number_of(algorithm.share_noise_std, question.agent)
    share = question.releases(noise, 1 / samples)
    letter = one_round(algorithm.algorithm, problem, question, mixed)
    schedule = schedule_of(algorithm.algorithm.oracle)
    return scheduled(letter, schedule, question, beside=share)
