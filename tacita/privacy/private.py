"""From a budget to an algorithm: clipping and noise set, or a refusal that helps."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np

from tacita import check
from tacita.aggregation import Choice, SecureSum, Summed
from tacita.algorithm.base import Algorithm
from tacita.algorithm.wrapper import Wrapper
from tacita.integer_noise import refuse_single
from tacita.privacy import inputs
from tacita.privacy.accounting.calibrate import affordable_rounds, calibrate_noise
from tacita.privacy.accounting.guarantee import Guarantee
from tacita.privacy.adaptive import AdaptiveClipping
from tacita.privacy.blind import looks_at_rows
from tacita.privacy.clipped import Clipped, Promise, schedule_of, without_noise
from tacita.privacy.letters import Letters, letters_of
from tacita.privacy.letters.on_grid import noise_kind_of, of_kind
from tacita.privacy.noise_schedule import NoiseSchedule
from tacita.privacy.noisy import Noisy
from tacita.privacy.private_sums import private_sum
from tacita.privacy.scope import Scope, Unit
from tacita.privacy.spend import Turns, known_observer, largest, planned
from tacita.privacy.statement import relation_of
from tacita.problem.oracles import Full
from tacita.problem.problem import Problem
from tacita.problem.quantised import Quantised, inside, unquantised
from tacita.trees import replace

A = TypeVar("A", bound=Algorithm)

#: The part of a round's budget (in mu^2) that adaptive clipping spends on the norm.
_SHARE_OF_BUDGET = 0.1
#: How much more noise than needed may be set; batches take longer to account.
_TOLERANCE, _TOLERANCE_SAMPLED = 1e-6, 1e-3


def private(
    problem: Problem,
    algorithm: A,
    *,
    epsilon: float,
    delta: float,
    observer: str,
    rounds: int,
    participation: Any = 1.0,
    unit: str = "record",
    relation: str | None = None,
    norm: float | None = None,
    quantile: float | None = None,
    largest_noise: float | None = None,
    schedule: NoiseSchedule | str | None = None,
    aggregation: Choice = None,
    in_step: bool = False,
    most_delay: int | None = None,
    liars: int = 0,
    noise_kind: str | None = None,
) -> A:
    """The same algorithm with clipping and noise set for a budget, or a refusal.

    Every agent's guarantee after `rounds` rounds is within (epsilon, delta) against
    this observer; agents with fewer records get more noise. Numbers that theory sets
    are set too. The run's `privacy` then reports what each observer may have learnt.

    Args:
        problem: What is solved.
        algorithm: Any that asks its oracle for a known number of gradients in a round
            (the noise is then its oracle's, `tacita.Noisy`), or that adds noise to its
            letters itself: `FedSPD`, `DPFedAvg`, `DPNorm`.
        epsilon: The budget.
        delta: The probability of exceeding it; well below one over the records.
        observer: Against whom; there is no default, for the noise depends on it.
        rounds: Rounds to plan for.
        participation: As in `tacita.simulate`. With probabilities the bound holds over
            the draw of who takes part.
        unit: What is protected: one `record`, or all of a `client`.
        relation: `replace_one` or `add_remove`; the default follows the sampling.
        norm: What records' gradients are clipped to; default that of the algorithm's
            oracle, or 1. Do not choose it by looking at private data.
        quantile: Let the norm follow this quantile of the gradient norms.
        largest_noise: Refuse more noise than this in a gradient, and say what would
            fit.
        schedule: How the noise of gradients is spread over the rounds: "uniform";
            "prefix", less of it early, which makes the models of the run less noisy on
            the whole; "momentum", the same with the algorithm's own momentum and
            average; or a `NoiseSchedule`. The budget is spent early then: see
            docs/explanation-noise-schedule.md. Default: that of the algorithm's oracle.
        aggregation: As in `tacita.simulate`; only a mean covers a letter with the
            noise of the others. With a `tacita.SecureSum`, or "secure", the noise is
            that of the sum, spread over the agents, and what is returned has the sum
            in it; a budget against the coordinator then holds against its colluders
            too, or, where nobody colludes, against another agent.
        in_step: On a graph, whether every letter will arrive in its round, as in
            `tacita.simulate` without `asynchronous=`. `GossipSGD` needs less noise then
            against who sees the last models only.
        most_delay: That of `tacita.Asynchronous`, in which everybody is active once in
            so many events, whatever `participation` draws.
        liars: How many agents are assumed to lie: their noise hides nobody.
        noise_kind: "float" for floating-point Gaussians, or "integers", exact ones on a
            grid, as federations use by default; then every noisy gradient, or letter,
            counts in full, whoever looks. Default: that of the algorithm.

    >>> import tacita
    >>> problem = tacita.problem.synthetic.logistic(agents=5, features=3, samples=100)
    >>> safe = private(problem, tacita.FedAvg(step_size=0.5), epsilon=1.0, delta=1e-5,
    ...                observer="coordinator", rounds=50)
    >>> run = tacita.simulate(problem, safe, rounds=50)
    >>> row = run.privacy.row("coordinator")
    >>> round(row.epsilon, 4), row.unit, row.relation
    (1.0, 'record', 'replace_one')
    """
    epsilon, delta = inputs.positive(epsilon=epsilon), inputs.inside_unit(delta=delta)
    rounds, liars = inputs.whole(rounds=rounds), check.count(0, liars=liars)
    if isinstance(algorithm, Summed):
        algorithm, aggregation = (
            algorithm.algorithm,
            aggregation or algorithm.aggregation,
        )
    ready = _clipped(problem, algorithm, norm)
    kind = noise_kind or noise_kind_of(algorithm)
    if relation is None:
        relation = letters_of(ready).relation
    rule = SecureSum() if aggregation == "secure" else aggregation
    if isinstance(rule, SecureSum):
        _refuse_for_sums(
            quantile=quantile,
            largest_noise=largest_noise,
            schedule=schedule,
            noise_kind=noise_kind,
        )
        if isinstance(ready.oracle, Quantised):
            check.refuse(
                "a secure sum rounds letters to its own grid, and tacita.Quantised "
                "before it changes what one record moves; leave it out"
            )
        return private_sum(
            problem,
            ready,
            rule,
            epsilon=epsilon,
            delta=delta,
            observer=observer,
            rounds=rounds,
            participation=participation,
            unit=unit,
            relation=relation,
            liars=liars,
        )  # pyright: ignore[reportReturnType]
    _refuse_kind(problem, kind, quantile)
    plan = _Plan(
        problem=problem,
        algorithm=ready,
        turns=partial(
            planned,
            problem,
            participation=participation,
            aggregation=rule,
            in_step=in_step,
            most_delay=_delay(most_delay),
            liars=liars,
        ),
        scope=Scope(known_observer(ready, observer), unit, relation),
        delta=delta,
        quantile=quantile,
        schedule=_schedule(algorithm, schedule, rounds),
        noise_kind=kind,
    )
    multiplier = calibrate_noise(
        lambda z: plan.guarantee(z, rounds),
        epsilon=epsilon,
        delta=delta,
        tolerance=plan.tolerance,
    )
    if largest_noise is not None:
        plan.refuse_more_than(largest_noise, multiplier, epsilon, rounds)
    return plan.with_noise(multiplier, epsilon)


def _refuse_kind(problem: Problem, kind: str, quantile: float | None) -> None:
    check.one_of(("float", "integers"), noise_kind=kind)
    refuse_single(kind, problem.dtype)
    if kind == "integers" and quantile is not None:
        check.refuse(
            "the share of records that are clipped has floating-point noise; leave "
            "quantile out, or use noise_kind='float'"
        )


def _delay(most: int | None) -> int | None:
    return None if most is None else check.count(0, most_delay=most)


def _refuse_for_sums(**given: Any) -> None:
    for name, value in given.items():
        if value is not None:
            check.refuse(
                f"{name} is for noise in single letters or gradients, and a secure sum "
                f"has its own; leave {name} out"
            )


def rounds_within(
    problem: Problem,
    algorithm: Any,
    *,
    epsilon: float,
    delta: float,
    observer: str,
    participation: Any = 1.0,
    unit: str = "record",
    aggregation: Choice = None,
    most_delay: int | None = None,
    liars: int = 0,
) -> int:
    """How many rounds a budget lasts at the noise that the algorithm has.

    Arguments are those of `private`.

    >>> import tacita
    >>> problem = tacita.problem.synthetic.logistic(agents=5, features=3, samples=100)
    >>> noisy = tacita.Noisy(std=0.2, oracle=tacita.Clipped(norm=1.0))
    >>> noisy = tacita.FedAvg(step_size=0.5, oracle=noisy)
    >>> rounds_within(problem, noisy, epsilon=1.0, delta=1e-5, observer="coordinator")
    7
    """
    ready = algorithm.resolve(problem)
    who = known_observer(ready, observer)
    scope = Scope(who, unit, relation_of(ready))

    def build(rounds: int) -> Guarantee:
        turns = planned(
            problem,
            rounds,
            participation,
            aggregation,
            most_delay=_delay(most_delay),
            liars=check.count(0, liars=liars),
        )
        return largest(ready, problem, turns, scope, delta)[1]

    return affordable_rounds(build, epsilon=epsilon, delta=delta)


def _clipped(problem: Problem, algorithm: Any, norm: float | None) -> Any:
    """The algorithm with clipped gradients and with all numbers set by theory."""
    if not isinstance(algorithm, Algorithm):
        check.refuse(
            f"expected an algorithm such as tacita.FedAvg(...), got {algorithm!r}"
        )
    if isinstance(algorithm, Wrapper):
        inner = type(algorithm.algorithm).__name__
        check.refuse(
            f"noise is set for the algorithm inside of {type(algorithm).__name__}: "
            f"give tacita.private the {inner}, and put the rest around what it returns"
        )
    oracle = without_noise(algorithm.oracle)
    if isinstance(oracle, Clipped):
        oracle = oracle if norm is None else replace(oracle, norm=norm)
    else:
        oracle = Clipped(norm=1.0 if norm is None else norm, oracle=oracle)
    algorithm = _with_clipping(algorithm, oracle)
    algorithm.refuse_problem(problem)
    oracle.check(problem)
    ready = algorithm.resolve(problem)
    looked = oracle.looked or looks_at_rows(algorithm, problem)
    return _with_clipping(ready, replace(oracle, looked=looked))


def _with_clipping(algorithm: Any, clipped: Clipped) -> Any:
    """The algorithm with these gradients and no noise in them, rounded as before."""
    return replace(algorithm, oracle=inside(algorithm.oracle, lambda _: clipped))


def _schedule(
    algorithm: Any, asked: NoiseSchedule | str | None, rounds: int
) -> NoiseSchedule | None:
    """The schedule that a word stands for; None for constant noise."""
    if asked is None:
        return schedule_of(algorithm.oracle)
    if isinstance(asked, NoiseSchedule):
        return asked
    check.one_of(("uniform", "prefix", "momentum"), schedule=asked)
    if asked == "momentum" and not hasattr(algorithm, "momentum"):
        check.refuse(
            f"{type(algorithm).__name__} has no momentum; use schedule='prefix'"
        )
    if asked == "uniform":
        return None
    if asked == "prefix":
        return NoiseSchedule.prefix(rounds)
    kept = {"momentum": algorithm.momentum, "average": algorithm.average}
    return NoiseSchedule.prefix(rounds, **kept)


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """All that is settled before the noise is."""

    problem: Problem
    algorithm: Any
    turns: Callable[[int], Turns]
    scope: Scope
    delta: float
    quantile: float | None
    schedule: NoiseSchedule | None
    noise_kind: str

    @property
    def _clipped(self) -> Clipped:
        return unquantised(self.algorithm.oracle)

    @property
    def tolerance(self) -> float:
        sampled = not isinstance(self._clipped.oracle, Full)
        slow = sampled and self.scope.unit == Unit.RECORD
        return _TOLERANCE_SAMPLED if slow else _TOLERANCE

    @cached_property
    def changes(self) -> np.ndarray:
        """By how much one unit can change a gradient of each agent, or its letters."""
        # What is rounded after the noise changes as much before it.
        plain = replace(self.algorithm, oracle=self._clipped)
        return letters_of(plain).needed(self.problem, self.scope)

    def guarantee(self, multiplier: float, rounds: int) -> Guarantee:
        """What the agent that spends most is guaranteed at this noise."""
        made, turns = self.with_noise(multiplier), self.turns(rounds)
        return largest(made, self.problem, turns, self.scope, self.delta)[1]

    def with_noise(self, multiplier: float, epsilon: float | None = None) -> Any:
        """The algorithm with `multiplier` times the sensitivity as noise."""
        promise = None
        if epsilon is not None:
            promise = Promise(epsilon=epsilon, delta=self.delta, scope=self.scope)
        oracle = replace(self._clipped, promise=promise)
        clipped = letters_of(_with_clipping(self.algorithm, oracle))
        if self.quantile is None:
            return self._noised(clipped, multiplier * self.changes)
        # Gradient and share cost (1 - s) and s of the round's 1/multiplier^2.
        grow, spend = 1 / math.sqrt(1 - _SHARE_OF_BUDGET), math.sqrt(_SHARE_OF_BUDGET)
        client = self.scope.unit == Unit.CLIENT
        share = 1.0 if client else 1 / self.problem.counts
        return AdaptiveClipping(
            algorithm=self._noised(clipped, multiplier * grow * self.changes),
            share_noise_std=self._rounded(multiplier / spend * share),
            quantile=self.quantile,
        )

    def _noised(self, clipped: Letters, noise: Any) -> Any:
        made = of_kind(clipped.with_noise(self._rounded(noise)), self.noise_kind)
        if self.schedule is None:
            return made
        if not isinstance(unquantised(made.oracle), Noisy):
            check.refuse(
                f"{type(made).__name__} adds noise to its letters, and a schedule is "
                "for noise in gradients; leave schedule out"
            )
        change = partial(replace, schedule=self.schedule)
        return replace(made, oracle=inside(made.oracle, change))

    def _rounded(self, noise: Any) -> Any:
        """One number if all are equal, else the problem's type, never rounded down."""
        if np.ndim(noise) == 0 or np.all(noise == noise[0]):
            return float(np.max(noise))
        typed = noise.astype(self.problem.dtype)
        return np.where(
            typed < noise, np.nextafter(typed, np.inf, dtype=typed.dtype), typed
        )

    def refuse_more_than(
        self, most: float, multiplier: float, epsilon: float, rounds: int
    ) -> None:
        """Refuse more noise than wanted, and name what would fit."""
        most = inputs.positive(largest_noise=most)
        needed = multiplier * float(self.changes.max())
        if needed <= most:
            return
        fits = most / float(self.changes.max())
        lasts = affordable_rounds(
            lambda k: self.guarantee(fits, k), epsilon=epsilon, delta=self.delta
        )
        costs = self.guarantee(fits, rounds).epsilon(self.delta)
        shorter = f"{lasts} rounds" if lasts else "not even one round"
        check.refuse(
            f"epsilon={epsilon:g} against the {self.scope.observer} over {rounds} "
            f"rounds needs noise {needed:.4g} in a gradient, more than largest_noise="
            f"{most:g}; with that noise the budget lasts {shorter}, or {rounds} rounds "
            f"cost epsilon={costs:.4g} at delta={self.delta:g}"
        )
