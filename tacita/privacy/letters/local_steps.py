"""Letters after several local steps with noise once: FedSPD and DP-FedAvg.

How far a record moves such a letter depends on the steps in which it is used and on
whether steps expand. With batches of b and gradients clipped to G, the change by one
use is 2 G/b in units of a gradient, times what the algorithm makes of it:

    one_hit     at most, of one step's change;
    every_step  at most, of the same change in all Q steps.

Steps do not expand for losses with one score per record (clipping keeps the scalar
derivative monotone and no steeper) where they are short enough for the smoothness L:
gamma >= L/2, eta <= 2/L. Otherwise a record is taken to change every clipped gradient
by 2 G, from the first step on, which needs nothing but clipping.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tacita import check
from tacita.algorithm import ClientDPFedAvg, DPFedAvg, FedSPD
from tacita.privacy.accounting.compose import account
from tacita.privacy.accounting.curve import GaussianCurve
from tacita.privacy.accounting.guarantee import (
    Assumption,
    Guarantee,
    believed,
    enforced,
)
from tacita.privacy.accounting.subsampling import (
    Poisson,
    Sampling,
    WithoutReplacement,
    WithReplacement,
)
from tacita.privacy.letters.account import Letters, letters_of, of_noised
from tacita.privacy.letters.composition import over_rounds
from tacita.privacy.letters.primal_dual_steps import hidden_state_norm, printed_claim
from tacita.privacy.letters.question import (
    ALWAYS_BELIEVED,
    BROADCAST_ONLY,
    Question,
    clipped_oracle,
    number_of,
    present_noise,
)
from tacita.privacy.letters.rows import longest_row
from tacita.privacy.scope import Relation, Unit
from tacita.problem.model.linear import Linear, Logistic
from tacita.problem.model.regulariser import SquaredL2
from tacita.problem.oracles import Full, Minibatch
from tacita.problem.problem import Problem


@dataclass(frozen=True)
class Use:
    """How a round uses a record: what is drawn, and how it enters gradients.

    Attributes:
        sampling: How the records of a round are drawn, where that amplifies.
        change: Of one gradient by one use, in l2 norm.
        every_step: Whether the record may enter every step, else one of them.
        times: In how many steps at most, where it is not every one.
        expands: Whether steps may expand, so that clipping alone bounds the change.
    """

    sampling: Sampling | None
    change: float
    every_step: bool
    times: int = 1
    expands: bool = False


@letters_of.register
def _(algorithm: DPFedAvg) -> Letters:
    theorem = partial(_dp_fed_avg, algorithm)
    return of_noised(algorithm, theorem=theorem, public_state=True)


@letters_of.register
def _(algorithm: FedSPD) -> Letters:
    public = algorithm.state == "public"
    given: dict[str, Any] = {} if public else {"with_noise": _refuse_hidden}
    theorem = partial(_fed_spd, algorithm)
    return of_noised(algorithm, theorem=theorem, public_state=public, **given)


def _refuse_hidden(noise_std: Any) -> Any:
    check.refuse(
        "FedSPD with state='hidden' remembers records without noise, so no noise "
        "is set for a budget; use state='public'"
    )


def _dp_fed_avg(algorithm: DPFedAvg, problem: Problem, question: Question) -> Guarantee:
    """Noise eta noise_std on Q steps of length eta: one hit moves no further."""
    noise = present_noise(algorithm, algorithm.noise_std)
    step = number_of(algorithm.step_size, question.agent)
    steps = algorithm.local_steps
    use, notes = _use(algorithm, problem, question, steps, 2 / step)
    change = use.change * (steps if use.every_step else use.times)
    one = _one_round(question, use, change, number_of(noise, question.agent), notes)
    return over_rounds(one, question)


def _fed_spd(algorithm: FedSPD, problem: Problem, question: Question) -> Guarantee:
    """The public state's rounds compose; a hidden state's letters are one release."""
    noise = number_of(present_noise(algorithm, algorithm.noise_std), question.agent)
    gamma = number_of(algorithm.gamma, question.agent)
    steps, rho = algorithm.local_steps, number_of(algorithm.rho, question.agent)
    hidden = algorithm.state == "hidden"
    use, notes = _use(algorithm, problem, question, steps, 2 * gamma, hidden)
    if hidden:
        return _hidden(algorithm, problem, question, use, notes)
    # A letter carries noise 2 noise_std/(rho + gamma_t). With a = gamma/(rho + gamma):
    # a hit at step r moves the mean iterate by (1 - a^(Q-r))/(Q rho) times its change.
    a = gamma / (rho + gamma)
    if algorithm.gamma_growth > 0:
        one_hit, all_hits = 1.0, (steps + 1) / 2  # the limit of a -> 1, a bound
    else:
        one_hit = (1 - a**steps) / (steps * (1 - a))
        all_hits = (1 - a * (1 - a**steps) / (steps * (1 - a))) / (1 - a)
    change = use.change * (all_hits if use.every_step else one_hit * use.times)
    one = _one_round(question, use, change, noise, notes)
    named = dataclasses.replace(one, theorem=f"public-state sensitivity; {one.theorem}")
    return over_rounds(named, question)


def _one_round(
    question: Question,
    use: Use,
    change: float,
    noise: float,
    notes: tuple[Assumption, ...],
) -> Guarantee:
    one = account(
        **question.scope.words,
        noise_std=noise,
        sensitivity=change,
        rounds=1,
        sampling=use.sampling,
        clipped=True,
    )
    loose = "; local steps may expand: 2 C in every step" if use.expands else ""
    return dataclasses.replace(
        one,
        theorem=one.theorem + loose,
        assumptions=(*one.assumptions, *notes, *ALWAYS_BELIEVED),
    )


def _hidden(
    algorithm: FedSPD,
    problem: Problem,
    question: Question,
    use: Use,
    notes: tuple[Assumption, ...],
) -> Guarantee:
    """The trajectory's sensitivity, and the printed theorem beside it."""
    agent, steps = question.agent, algorithm.local_steps
    noise = number_of(algorithm.noise_std, agent)
    total = question.rounds if question.total is None else question.total
    rho = number_of(algorithm.rho, agent)
    first = number_of(algorithm.gamma, agent)
    growth = float(algorithm.gamma_growth)
    if question.rounds == total and question.participation == 1.0:
        lows = highs = first * np.arange(1, total + 1) ** growth
    else:
        # Which rounds is not known: any gamma between the first and the last.
        lows = np.full(question.rounds, first)
        highs = np.full(question.rounds, first * total**growth)
    mu = 0.0
    if question.rounds:
        mu = hidden_state_norm(
            low=lows,
            high=highs,
            rho=rho,
            inner_steps=steps,
            kick=use.change * use.times,
            every_step=use.every_step,
            noise_std=noise,
        )
    oracle = clipped_oracle(algorithm)
    bound = number_of(oracle.norm, agent)
    clip = enforced(f"every record's gradient has norm at most {bound:g}")
    claim = None
    if question.scope.unit == Unit.RECORD and isinstance(oracle.oracle, Minibatch):
        claim = printed_claim(
            noise_std=noise,
            inner_steps=steps,
            gradient_bound=bound,
            rate=_printed_rate(oracle.oracle, int(problem.counts[agent]), steps),
            participation=question.participation,
            rounds=max(question.rounds, 1),
        )
    return Guarantee(
        curve=GaussianCurve(mu),
        scope=question.scope,
        theorem="hidden-state trajectory sensitivity, Gaussian composition; WARNING: "
        "a hidden state remembers records without noise, no amplification applies",
        assumptions=(
            clip,
            *notes,
            *ALWAYS_BELIEVED,
            believed("local models x_i are not published"),
        ),
        paper_claim=claim,
    )


def _printed_rate(batch: Minibatch, samples: int, steps: int) -> float:
    """q_i of (22)."""
    if batch.sampling == "with_replacement":
        return WithReplacement(batch.size * steps, samples).rate
    return min(batch.size * steps / samples, 1.0)


def _use(
    algorithm: Any,
    problem: Problem,
    question: Question,
    steps: int,
    steepest: float,
    hidden: bool = False,
) -> tuple[Use, tuple[Assumption, ...]]:
    """How the record is used; steps do not expand up to a smoothness of `steepest`.

    A `hidden` state gains nothing from the draw of a record among many.
    """
    oracle, samples = clipped_oracle(algorithm), int(problem.counts[question.agent])
    norm = number_of(oracle.norm, question.agent)
    smooth = _smoothness(problem, steepest)
    inner = oracle.oracle
    record = question.scope.unit == Unit.RECORD
    if not record or smooth is None:
        # Any two clipped gradients lie within 2 G of each other.
        amplifies = record and _disjoint(inner, samples, steps)
        drawn = None
        if amplifies and isinstance(inner, Minibatch):
            drawn = WithoutReplacement(steps * inner.size, samples)
        return Use(drawn, 2 * norm, every_step=True, expands=smooth is None), ()
    notes = (believed(f"no record has features longer than {longest_row(problem):g}"),)
    factor = 2 * norm if question.scope.relation == Relation.REPLACE_ONE else norm
    if isinstance(inner, Full):
        return Use(None, factor / samples, every_step=True), notes
    assert isinstance(inner, Minibatch)
    change, drawn = factor / inner.size, inner.size * steps
    if inner.sampling == "permutation":
        if _disjoint(inner, samples, steps):
            return Use(WithoutReplacement(drawn, samples), change, False), notes
        times = -(-steps // (samples // inner.size))
        return Use(None, change, every_step=False, times=times), notes
    if inner.sampling == "with_replacement" and not hidden:
        return Use(WithReplacement(drawn, samples), change, every_step=False), notes
    if inner.sampling == "without_replacement":
        return Use(None, change, every_step=True), notes
    # Anything may be in a batch any number of times.
    return Use(None, 2 * norm, every_step=True), notes


def _disjoint(inner: Any, samples: int, steps: int) -> bool:
    """Whether the batches of a round are disjoint."""
    permuted = isinstance(inner, Minibatch) and inner.sampling == "permutation"
    return permuted and inner.size * steps <= samples


def _smoothness(problem: Problem, steepest: float) -> float | None:
    """The smoothness of any neighbour's loss if steps do not expand, else None."""
    model, regulariser = problem.model, problem.population.regulariser
    if not isinstance(regulariser, SquaredL2) or regulariser.weight > steepest:
        check.refuse(
            "local steps may expand under this regulariser, so nothing bounds the "
            "letters; use l2= with a weight below the steps' limit "
            f"{steepest:g}, or shorter steps"
        )
    if not isinstance(model, Linear | Logistic):
        return None
    high = model.curvature_bounds[1] * longest_row(problem) ** 2 + regulariser.weight
    return high if high <= steepest * (1 + 1e-12) else None


@letters_of.register
def _(algorithm: ClientDPFedAvg) -> Letters:
    return of_noised(
        algorithm,
        theorem=partial(_client_dp_fed_avg, algorithm),
        with_noise=_refuse_client,
        relation=Relation.ADD_REMOVE,
        secret_turns=True,
    )


def _refuse_client(noise_std: Any) -> Any:
    check.refuse(
        "the noise of ClientDPFedAvg is the coordinator's, none is set in its letters; "
        "give noise_std= and see what it costs with tacita.privacy.forecast"
    )


def _client_dp_fed_avg(
    algorithm: ClientDPFedAvg, problem: Problem, question: Question
) -> Guarantee:
    """A sum of clipped updates with noise, over a secret draw of clients."""
    scope = question.scope
    if scope.observer not in BROADCAST_ONLY or scope.unit != Unit.CLIENT:
        check.refuse(
            "ClientDPFedAvg protects whole clients against who sees models only; it "
            "trusts the coordinator, who sees updates without noise"
        )
    if not question.aggregation.additive:
        check.refuse(
            "the noise of ClientDPFedAvg covers a sum of updates; a rule other than "
            "the mean has no bounded sensitivity, so leave aggregation out"
        )
    n, chance = problem.n_agents, question.participation
    replaced = scope.relation == Relation.REPLACE_ONE
    sampling, mixed = None, 1.0
    if chance < 1.0:
        if question.active is None and not replaced:
            sampling = Poisson(chance)
        elif question.active is not None and replaced:
            sampling = WithoutReplacement(question.active, n)
        elif replaced:
            mixed = chance  # as if who took part were seen
        else:
            check.refuse(
                "a fixed number of clients in every round is accounted for "
                "relation='replace_one' only; use that, or a probability"
            )
    if question.rounds == 0:
        check.refuse("expected rounds >= 1, got rounds=0")
    one = account(
        **scope.words,
        noise_std=present_noise(algorithm, algorithm.noise_std),
        sensitivity=(2 if replaced else 1) * float(algorithm.clip),
        rounds=question.rounds,
        sampling=sampling,
        participation=mixed,
        clipped=True,
    )
    trusted = believed("the coordinator is honest, draws the noise and tells nobody")
    secret = believed("who takes part in a round stays secret")
    return dataclasses.replace(one, assumptions=(*one.assumptions, trusted, secret))
