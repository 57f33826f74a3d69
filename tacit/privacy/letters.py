"""What the letters of each algorithm reveal: small functions, one per algorithm.

An algorithm has its privacy here, not in its own file. To plug one in, register it:

* `noisy_gradients(algorithm)` and `with_noise(algorithm, noise_std)`, if its letter is
  made of gradients with Gaussian noise in each (ServerGD, FedAvg, Fed-PLT, DP-SGD,
  DP-ADMM): the bound then follows by composition, for any model, from clipping alone;
* `guarantee(algorithm, problem, question)`, if it has a theorem of its own (Fed-PLT's
  rounds in `fed_plt_letters`; local steps with noise once in `local_letters`).
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from tacit import check
from tacit.algorithm import DPADMM, DPSGD, FedAvg, FedPLT, ServerGD
from tacit.algorithm.solvers import GradientDescent, NoisyGradient
from tacit.privacy.account import account, take_part, take_part_in_losses
from tacit.privacy.clip import Clipped
from tacit.privacy.curve import GaussianCurve, LossCurve, renyi
from tacit.privacy.guarantee import Guarantee, believed
from tacit.privacy.sampling import (
    Poisson,
    Sampling,
    WithoutReplacement,
    WithReplacement,
)
from tacit.problem.oracle import Full, Minibatch
from tacit.problem.problem import Problem
from tacit.trees import replace

#: Observers who are shown broadcasts, not letters.
BROADCAST_ONLY = ("final_model", "neighbour")
ALWAYS_BELIEVED = (
    believed("no number of the algorithm was chosen by looking at private data"),
    believed("the number of rows of every agent is public"),
)


@dataclass(frozen=True, kw_only=True)
class Question:
    """Whose privacy, against whom, after how many rounds.

    Attributes:
        observer: Who looks.
        unit: What is protected.
        relation: How neighbouring data differ.
        agent: The number of the agent whose data it is.
        rounds: Rounds in which the agent takes part; with a participation below 1,
            all rounds of the plan.
        participation: Probability of taking part in a round.
        active: Agents active in every round, or None if their number varies.
        total: All rounds of the run, where `rounds` counts the agent's own.
    """

    observer: str
    unit: str
    relation: str
    agent: int
    rounds: int
    participation: float = 1.0
    active: int | None = None
    total: int | None = None


class NoisyGradients(NamedTuple):
    """What an agent computes in a round: `steps` gradients with noise in each."""

    steps: int
    noise_std: Any  # of the noise in a gradient, one number or one per agent


def number_of(value: Any, agent: int) -> float:
    """One agent's number out of a common one or of one per agent."""
    return float(np.asarray(value)[agent] if np.ndim(value) else value)


@singledispatch
def noisy_gradients(algorithm: Any) -> NoisyGradients:
    """The noisy gradients of one round of the algorithm, or a refusal."""
    check.refuse(
        f"{type(algorithm).__name__} adds no noise to its letters, so nothing bounds "
        "what they reveal; use ServerGD, FedAvg, FedPLT, "
        "FedSPD, DPSGD, DPFedAvg or DPADMM; on a graph DPNorm"
    )


@noisy_gradients.register(ServerGD)
@noisy_gradients.register(DPSGD)
@noisy_gradients.register(DPADMM)
def _(algorithm: Any) -> NoisyGradients:
    # DP-ADMM's letter is an affine function of one gradient with its noise.
    return NoisyGradients(1, present_noise(algorithm, algorithm.noise_std))


@noisy_gradients.register
def _(algorithm: FedAvg) -> NoisyGradients:
    return NoisyGradients(
        algorithm.local_steps, present_noise(algorithm, algorithm.noise_std)
    )


@noisy_gradients.register
def _(algorithm: FedPLT) -> NoisyGradients:
    solver = algorithm.solver
    if not isinstance(solver, NoisyGradient):
        check.refuse(
            "FedPLT adds noise with solver=NoisyGradient(...) only, got "
            f"{type(solver).__name__}"
        )
    # A step adds sqrt(2 gamma) tau N(0, I) and moves by gamma times the gradient.
    tau, gamma = np.asarray(solver.noise_std), np.asarray(solver.step_size)
    return NoisyGradients(
        solver.local_steps, present_noise(algorithm, tau * np.sqrt(2 / gamma))
    )


def present_noise(algorithm: Any, noise_std: Any) -> Any:
    """The noise, or a refusal where there is none."""
    if noise_std is None or np.any(np.asarray(noise_std) <= 0):
        check.refuse(
            f"{type(algorithm).__name__} has no noise; set noise_std, or let "
            "tacit.private set it for a budget"
        )
    return noise_std


@singledispatch
def with_noise(algorithm: Any, noise_std: Any) -> Any:
    """The same algorithm with this noise in every gradient, or a refusal."""
    return noisy_gradients(algorithm)  # which refuses and says why


@with_noise.register(ServerGD)
@with_noise.register(FedAvg)
@with_noise.register(DPSGD)
@with_noise.register(DPADMM)
def _(algorithm: Any, noise_std: Any) -> Any:
    return replace(algorithm, noise_std=noise_std)


@with_noise.register
def _(algorithm: FedPLT, noise_std: Any) -> FedPLT:
    solver = algorithm.solver
    if not isinstance(solver, GradientDescent | NoisyGradient):
        check.refuse(
            "FedPLT can be made private with gradient steps only, got solver="
            f"{type(solver).__name__}; use solver=NoisyGradient(...) or leave it out"
        )
    gamma = np.asarray(solver.step_size)
    tau = noise_std * np.sqrt(gamma / 2)
    noisy = NoisyGradient(
        step_size=solver.step_size,
        local_steps=solver.local_steps,
        noise_std=tau if np.ndim(tau) else float(tau),
    )
    return replace(algorithm, solver=noisy)


@singledispatch
def mixes_letters(algorithm: Any) -> bool:
    """Whether a broadcast shows letters only in a mean with all their noise.

    Needs letters that are a function of the broadcast plus plain Gaussian noise.
    """
    return False


@mixes_letters.register(ServerGD)
@mixes_letters.register(DPSGD)
def _(algorithm: Any) -> bool:
    return True


@mixes_letters.register
def _(algorithm: FedAvg) -> bool:
    # The noise of earlier local steps passes through later gradients.
    return algorithm.local_steps == 1


@singledispatch
def state_is_public(algorithm: Any) -> bool:
    """Whether who sees all letters can compute what an agent's next one starts from."""
    return False


@state_is_public.register(ServerGD)
@state_is_public.register(FedAvg)
@state_is_public.register(FedPLT)
@state_is_public.register(DPSGD)
@state_is_public.register(DPADMM)
def _(algorithm: Any) -> bool:
    # They start from the broadcast; Fed-PLT's x_i is y + (z_i - z_i before)/2, and
    # DP-ADMM's w~_i and lambda_i follow from letters and broadcasts.
    return True


@singledispatch
def hides_participation(algorithm: Any) -> bool:
    """Whether the bound is over a secret draw of who takes part."""
    return False


@singledispatch
def replays(algorithm: Any) -> bool:
    """Whether an agent's state carries no noise, so that both data sets give one.

    Who knows two data sets and what the agent received computes its state for either.
    """
    return False


@singledispatch
def noise_in_letters(algorithm: Any, edges: Any) -> np.ndarray | None:
    """What one draw of noise is multiplied by in the letter on each edge of a node.

    None where letters of a round never share noise and show different things.
    """
    return None


@singledispatch
def noise_needed(
    algorithm: Any, problem: Problem, unit: str, relation: str
) -> np.ndarray | None:
    """Per agent, what its noise should be proportional to.

    None where that is the change of one gradient.
    """
    return None


@singledispatch
def facts_of_agents(algorithm: Any, problem: Problem) -> list[np.ndarray]:
    """Numbers per agent that a guarantee depends on, besides rows and rounds.

    The algorithm's own numbers per agent are always looked at.
    """
    return []


def clipped_oracle(algorithm: Any) -> Clipped:
    """The algorithm's clipping, or a refusal: without it nothing is bounded."""
    if not isinstance(algorithm.oracle, Clipped):
        check.refuse(
            f"the gradients of {type(algorithm).__name__} are not clipped, so one "
            "record may change them by any amount; wrap the oracle: "
            "oracle=tacit.privacy.Clipped(norm=1.0)"
        )
    return algorithm.oracle


@singledispatch
def natural_relation(algorithm: Any) -> str:
    """The relation that the sampling is accounted under."""
    inner = getattr(algorithm.oracle, "oracle", algorithm.oracle)
    poisson = isinstance(inner, Minibatch) and inner.sampling == "poisson"
    return "add_remove" if poisson else "replace_one"


@singledispatch
def guarantee(algorithm: Any, problem: Problem, question: Question) -> Guarantee:
    """What one agent's data is guaranteed, by composition over noisy gradients."""
    return by_composition(algorithm, problem, question)


def by_composition(algorithm: Any, problem: Problem, question: Question) -> Guarantee:
    """Every noisy gradient of every round is a Gaussian release: they compose.

    Needs clipping only, no convexity; an observer is assumed to see every local step.
    """
    return over_rounds(one_round(algorithm, problem, question), question)


def one_round(algorithm: Any, problem: Problem, question: Question) -> Guarantee:
    """The guarantee of one round in which the agent takes part."""
    steps, noise = noisy_gradients(algorithm)
    oracle = clipped_oracle(algorithm)
    samples = int(problem.counts[question.agent])
    sampling, releases = _sampling(oracle, samples, steps, question.unit)
    change = oracle.sensitivity(
        question.relation,
        samples,
        unit=question.unit,
        norm=number_of(oracle.norm, question.agent),
    )
    own = number_of(noise, question.agent)
    mixed = _mixed_noise(algorithm, problem, question, noise)
    one = account(
        observer=question.observer,
        unit=question.unit,
        relation=question.relation,
        noise_std=own if mixed is None else mixed,
        sensitivity=change,
        rounds=releases,
        sampling=sampling,
        clipped=True,
    )
    told = "" if mixed is None else "; a broadcast carries the noise of all its letters"
    trust = (
        () if mixed is None else (believed("others' letters and noise stay secret"),)
    )
    return dataclasses.replace(
        one,
        theorem=one.theorem + told,
        assumptions=(*one.assumptions, *trust, *ALWAYS_BELIEVED),
    )


def over_rounds(one: Guarantee, question: Question) -> Guarantee:
    """From one round in which the agent takes part to all rounds of the question."""
    if question.rounds == 0:
        return dataclasses.replace(one, curve=GaussianCurve(0.0))
    if question.participation == 1.0:
        return one.repeat(question.rounds)
    if isinstance(one.curve, LossCurve):
        curve = take_part_in_losses(one.curve, question.participation)
    else:
        curve = take_part(renyi(one.curve), question.participation)
    drawn = believed("participation is drawn independently of the data")
    return dataclasses.replace(
        one,
        curve=curve.repeat(question.rounds),
        theorem=f"{one.theorem}; participation mixture",
        assumptions=(*one.assumptions, drawn),
    )


def _sampling(
    oracle: Clipped, samples: int, steps: int, unit: str
) -> tuple[Sampling | None, int]:
    """How records are drawn for a gradient, and in how many gradients one may be."""
    inner = oracle.oracle
    if isinstance(inner, Full) or unit == "client":
        return None, steps
    assert isinstance(inner, Minibatch)
    if inner.sampling == "without_replacement":
        return WithoutReplacement(inner.size, samples), steps
    if inner.sampling == "poisson":
        return Poisson(inner.size / samples), steps
    if inner.sampling == "permutation":
        # Batches of one epoch are disjoint: a record is in at most one of them.
        return None, math.ceil(steps / (samples // inner.size))
    return WithReplacement(inner.size, samples), steps


def _mixed_noise(
    algorithm: Any, problem: Problem, question: Question, noise: Any
) -> float | None:
    """The noise of a mean letter, in units of the agent's own letter; None if unseen.

    With weights a_j the mean moves by a_i g_i / sum a and carries noise of standard
    deviation sqrt(sum_j a_j^2 s_j^2) / sum a. A neighbour knows the noise of one of
    the letters, its own. Of the letters of a varying cohort the least noisy count.
    """
    if question.observer not in BROADCAST_ONLY or not mixes_letters(algorithm):
        return None
    if question.active is None:
        return None
    counts = np.asarray(problem.counts, dtype=float)
    weighted = getattr(algorithm, "weights", "uniform") == "samples"
    weights = counts if weighted else np.ones_like(counts)
    spread = weights * np.broadcast_to(np.asarray(noise, dtype=float), counts.shape)
    known = 1 if question.observer == "neighbour" else 0
    helpers = max(question.active - 1 - known, 0)
    others = np.sort(np.delete(spread, question.agent))
    total = math.hypot(spread[question.agent], *others[:helpers])
    return total / float(weights[question.agent])
