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

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from tacita import check
from tacita.algorithm import DPFedAvg, FedSPD
from tacita.privacy.accounting.curve import GaussianCurve
from tacita.privacy.accounting.guarantee import (
    Assumption,
    Guarantee,
    PaperClaim,
    believed,
    enforced,
)
from tacita.privacy.accounting.subsampling import (
    Sampling,
    WithoutReplacement,
    WithReplacement,
)
from tacita.privacy.letters.composition import rows_rounded
from tacita.privacy.letters.dispatch import Letters, letters_of, of_noised
from tacita.privacy.letters.on_grid import Release, has_integers
from tacita.privacy.letters.over_rounds import over_rounds, until_the_last_model
from tacita.privacy.letters.primal_dual_steps import hidden_state_norm, printed_claim
from tacita.privacy.letters.question import (
    Increment,
    Question,
    clipped_before_noise,
    clipped_oracle,
    keeps_together,
    longest_row,
    no_longer_rows,
    number_of,
    present_noise,
    refuse_poisson,
)
from tacita.privacy.letters.steering import (
    kept_of_a_difference,
    noise_of_a_mean,
    shown_in_a_mean,
)
from tacita.privacy.scope import Relation, Unit
from tacita.problem.model.linear import Linear, Logistic
from tacita.problem.model.regulariser import SquaredL2
from tacita.problem.problem import Problem
from tacita.schedule import is_common, is_constant, largest, smallest


@dataclass(frozen=True, kw_only=True)
class Use:
    """How a round uses a record: what is drawn, and how it enters gradients.

    Attributes:
        change: Of one gradient by one use, in l2 norm.
        times: In how many steps the record is used at most; None for every one.
        sampling: How the records of a round are drawn, where that amplifies.
        expands: Whether steps may expand, so that clipping alone bounds the change.
        notes: What this rests on.
    """

    change: float
    times: int | None = None
    sampling: Sampling | None = None
    expands: bool = False
    notes: tuple[Assumption, ...] = ()


@letters_of.register
def _(algorithm: DPFedAvg) -> Letters:
    return of_noised(
        algorithm,
        theorem=partial(_dp_fed_avg, algorithm),
        increments=partial(_dp_fed_avg_increment, algorithm),
        public_state=True,
    )


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
    size = algorithm.step_size
    use = _use(algorithm, problem, question, 2 / _longest(algorithm, question))
    change = use.change * (use.times or algorithm.local_steps)
    release, seen = _release(algorithm, problem, question, change), None
    if not release.integers and (is_constant(size) or is_common(size)):
        # Of one release the ratio between agents counts, which a schedule keeps.
        factor = size if is_constant(size) else 1.0
        seen = noise_of_a_mean(algorithm, problem, question, factor=factor, std=noise)
    if seen is None:
        return _rounds(question, use, release, number_of(noise, question.agent))
    told = shown_in_a_mean(_one(question, use, release, seen))
    if not is_constant(size):
        return over_rounds(told, question)
    kept = kept_of_a_difference(problem, size, algorithm.local_steps)
    return until_the_last_model(told, question, kept)


def _longest(algorithm: DPFedAvg, question: Question) -> float:
    """The agent's longest step of all rounds."""
    return number_of(largest(algorithm.step_size), question.agent)


def _dp_fed_avg_increment(
    algorithm: DPFedAvg, problem: Problem, question: Question
) -> Increment:
    """Q steps of length eta along clipped gradients."""
    step, steps = _longest(algorithm, question), algorithm.local_steps
    use = _use(algorithm, problem, question, 2 / step)
    oracle = clipped_oracle(algorithm, question.agent)
    real = believed("local steps round as real numbers do, questions being bounded")
    return Increment(
        change=step * use.change * (use.times or steps),
        entry=step * steps * oracle.norm,
        rows=oracle.drawn(int(problem.counts[question.agent]))[0],
        sampling=use.sampling,
        notes=use.notes if steps == 1 else (*use.notes, real),
    )


def _fed_spd(algorithm: FedSPD, problem: Problem, question: Question) -> Guarantee:
    """The public state's rounds compose; a hidden state's letters are one release."""
    noise = number_of(present_noise(algorithm, algorithm.noise_std), question.agent)
    gamma = number_of(smallest(algorithm.gamma), question.agent)
    steps, rho = algorithm.local_steps, number_of(algorithm.rho, question.agent)
    hidden = algorithm.state == "hidden"
    use = _use(algorithm, problem, question, 2 * gamma, hidden)
    use = replace(use, notes=(*use.notes, *_proximal_steps(problem.h)))
    if hidden:
        return _hidden(algorithm, problem, question, use)
    # A letter carries noise 2 noise_std/(rho + gamma_t).
    a = gamma / (rho + gamma) if is_constant(algorithm.gamma) else 1.0  # a bound
    one_hit, all_hits = hits(a, steps)
    change = use.change * (one_hit * use.times if use.times else all_hits)
    release = _release(algorithm, problem, question, change)
    return _rounds(question, use, release, noise, "public-state sensitivity; ")


def _proximal_steps(h: Any) -> tuple[Assumption, ...]:
    """What the bound rests on where local steps end at proximal points of h."""
    together = keeps_together(h)
    if together is False:
        check.refuse(
            "a proximal point of prox.Sum that is approached in steps may move letters "
            "apart, so nothing bounds them; give FedSPD an h with a formula, such as "
            "prox.L1, or use FedAvg with a Noisy oracle, whose coordinator knows h"
        )
    convex = f"h={type(h).__name__} is convex, and its proximal point exact"
    return () if together else (believed(convex),)


def hits(a: float, steps: int) -> tuple[float, float]:
    """How far one hit, and one in every step, move the mean of so many iterates.

    In units of the change over rho + gamma, with a = gamma/(rho + gamma): a hit at step
    r moves it by (1 + a + ... + a^(Q-r-1))/Q. Added up term by term: near a = 1 the
    closed form loses all its digits, and gamma/rho is for a coordinator to choose.

    >>> hits(1.0, 3)
    (1.0, 2.0)
    """
    powers = a ** np.arange(steps)
    left = steps - np.arange(steps)
    return float(np.sum(powers)) / steps, float(np.sum(left * powers)) / steps


def _release(
    algorithm: Any, problem: Problem, question: Question, change: float
) -> Release:
    """The letter, in units of a gradient."""
    oracle = clipped_oracle(algorithm, question.agent)
    return Release(
        has_integers(algorithm),
        change,
        problem.dim,
        rows_rounded(oracle, int(problem.counts[question.agent])),
        question.scope.relation,
        # One step of DP-FedAvg is taken from zero; letters of FedSPD hold x0.
        carried=algorithm.local_steps > 1 or not isinstance(algorithm, DPFedAvg),
    )


def _rounds(
    question: Question, use: Use, release: Release, noise: float, before: str = ""
) -> Guarantee:
    """Rounds that start equal given all letters: each is one release."""
    one = _one(question, use, release, noise)
    return over_rounds(one.noting(before=before), question)


def _one(question: Question, use: Use, release: Release, noise: float) -> Guarantee:
    """The release of one round."""
    loose = "; local steps may expand: 2 C in every step" if use.expands else ""
    hidden = release.hidden_by(noise)
    one = question.releases(hidden, release.change, sampling=use.sampling)
    return release.noted(one, noise).noting(*use.notes, after=loose)


def _hidden(
    algorithm: FedSPD, problem: Problem, question: Question, use: Use
) -> Guarantee:
    """The trajectory's sensitivity, and the printed theorem beside it."""
    if has_integers(algorithm):
        check.refuse(
            "nothing bounds what integers hide of a hidden state; use state='public', "
            "or noise_kind='float'"
        )
    agent, rounds = question.agent, question.rounds
    total = rounds if question.total is None else question.total
    gammas = _gammas(algorithm, agent, total)
    if rounds == total and question.participation == 1.0:
        lows = highs = gammas
    else:
        # Which rounds is not known: any gamma of the run.
        lows = np.full(rounds, gammas.min(initial=np.inf))
        highs = np.full(rounds, gammas.max(initial=0))
    mu = 0.0
    if rounds:
        mu = hidden_state_norm(
            low=lows,
            high=highs,
            rho=number_of(algorithm.rho, agent),
            inner_steps=algorithm.local_steps,
            kick=use.change * (use.times or 1),
            every_step=use.times is None,
            noise_std=number_of(algorithm.noise_std, agent),
        )
    norm = clipped_oracle(algorithm, agent).norm
    return Guarantee(
        curve=GaussianCurve(mu),
        scope=question.scope,
        theorem="hidden-state trajectory sensitivity, Gaussian composition; WARNING: "
        "a hidden state remembers records without noise, no amplification applies",
        assumptions=(
            enforced(f"every record's gradient has norm at most {norm:g}"),
            *use.notes,
            believed("local models x_i are not published"),
        ),
        paper_claim=_printed(algorithm, problem, question),
    )


def _gammas(algorithm: FedSPD, agent: int, rounds: int) -> np.ndarray:
    """The client's gamma in every round."""
    if is_constant(algorithm.gamma):
        return np.full(rounds, number_of(algorithm.gamma, agent))
    over = algorithm.gamma.over(rounds)
    return over[:, agent] if over.ndim == 2 else over


def _printed(
    algorithm: FedSPD, problem: Problem, question: Question
) -> PaperClaim | None:
    """The printed theorem, which is about records drawn into batches."""
    agent, steps = question.agent, algorithm.local_steps
    oracle, samples = clipped_oracle(algorithm, agent), int(problem.counts[agent])
    size, sampling = oracle.drawn(samples)
    if question.scope.unit == Unit.CLIENT or sampling == "all":
        return None
    rate = min(size * steps / samples, 1.0)  # q_i of (22)
    if sampling == "with_replacement":
        rate = WithReplacement(size * steps, samples).rate
    return printed_claim(
        noise_std=number_of(algorithm.noise_std, agent),
        inner_steps=steps,
        gradient_bound=oracle.norm,
        rate=rate,
        participation=question.participation,
        rounds=max(question.rounds, 1),
    )


def _use(
    algorithm: Any,
    problem: Problem,
    question: Question,
    steepest: float,
    hidden: bool = False,
) -> Use:
    """How the record is used; steps do not expand up to a smoothness of `steepest`.

    A `hidden` state gains nothing from the draw of a record among many.
    """
    oracle = clipped_before_noise(algorithm, question.agent)
    norm, steps = oracle.norm, algorithm.local_steps
    samples = int(problem.counts[question.agent])
    size, sampling = oracle.drawn(samples)
    refuse_poisson(sampling)
    # Batches of a round that are disjoint are one draw.
    disjoint = sampling == "permutation" and size * steps <= samples
    drawn = WithoutReplacement(size * steps, samples) if disjoint else None
    _refuse_regulariser(problem, steepest)
    # Any two clipped gradients lie within 2 G of each other.
    any_two = Use(change=2 * norm, expands=True)
    if question.scope.unit == Unit.CLIENT:
        return any_two
    if not isinstance(problem.model, Linear | Logistic):
        return replace(any_two, sampling=drawn)
    notes = (no_longer_rows(problem),)
    if _may_expand(problem, steepest):
        return replace(any_two, sampling=drawn, notes=notes)
    factor = 2 * norm if question.scope.relation == Relation.REPLACE_ONE else norm
    use = Use(change=factor / size, notes=notes)
    if sampling in ("all", "without_replacement"):
        return use
    if sampling == "permutation":
        times = -(-steps // (samples // size))
        return replace(use, times=times, sampling=drawn)
    if sampling == "with_replacement" and not hidden:
        return replace(use, times=1, sampling=WithReplacement(size * steps, samples))
    # Anything may be in a batch any number of times.
    return replace(use, change=2 * norm)


def _refuse_regulariser(problem: Problem, steepest: float) -> None:
    regulariser = problem.population.regulariser
    if not isinstance(regulariser, SquaredL2) or regulariser.weight > steepest:
        check.refuse(
            "local steps may expand under this regulariser, so nothing bounds the "
            "letters; use l2= with a weight below the steps' limit "
            f"{steepest:g}, or shorter steps"
        )


def _may_expand(problem: Problem, steepest: float) -> bool:
    """Whether steps may expand for the loss of some neighbour, with one score a row."""
    model, weight = problem.model, problem.population.regulariser.weight
    assert isinstance(model, Linear | Logistic)
    high = model.curvature_bounds[1] * longest_row(problem) ** 2 + weight
    return not high <= steepest * (1 + 1e-12)
