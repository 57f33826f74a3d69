"""From a budget to an algorithm: clipping and noise set, or a refusal that helps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from tacita import check
from tacita.algorithm.base import Algorithm
from tacita.privacy import inputs
from tacita.privacy.accounting.calibrate import affordable_rounds, calibrate_noise
from tacita.privacy.accounting.guarantee import Guarantee
from tacita.privacy.adaptive import AdaptiveClipping
from tacita.privacy.clipped import Clipped, Promise
from tacita.privacy.letters import natural_relation, noise_needed, with_noise
from tacita.privacy.spend import largest, observers, planned
from tacita.privacy.statement import relation_of
from tacita.problem.oracles import Full
from tacita.problem.problem import Problem
from tacita.trees import replace

A = TypeVar("A", bound=Algorithm)

#: The part of a round's budget (in mu^2) that adaptive clipping spends on the norm.
_SHARE_OF_BUDGET = 0.1
#: How much more noise than needed may be set; batches take long to account.
_TOLERANCE, _TOLERANCE_SAMPLED = 1e-6, 5e-3


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
) -> A:
    """The same algorithm with clipping and noise set for a budget, or a refusal.

    Every agent's guarantee after `rounds` rounds is within (epsilon, delta) against
    this observer; agents with fewer records get more noise. Numbers that theory sets
    are set too. The run's `privacy` then reports what each observer may have learnt.

    Args:
        problem: What is solved.
        algorithm: `ServerGD`, `FedAvg`, `FedPLT`, `FedSPD`, `DPSGD`, `DPFedAvg` or
            `DPADMM`; on a graph `DPNorm`, `GossipSGD` or `GraphADMM`.
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
    rounds = inputs.whole(rounds=rounds)
    ready = _clipped(problem, algorithm, norm)
    _require_observer(ready, observer)
    plan = _Plan(
        problem=problem,
        algorithm=ready,
        participation=participation,
        observer=observer,
        unit=inputs.unit(unit),
        relation=natural_relation(ready)
        if relation is None
        else inputs.relation(relation),
        delta=delta,
        quantile=quantile,
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


def rounds_within(
    problem: Problem,
    algorithm: Any,
    *,
    epsilon: float,
    delta: float,
    observer: str,
    participation: Any = 1.0,
    unit: str = "record",
) -> int:
    """How many rounds a budget lasts at the noise that the algorithm has.

    >>> import tacita
    >>> problem = tacita.problem.synthetic.logistic(agents=5, features=3, samples=100)
    >>> noisy = tacita.FedAvg(step_size=0.5, noise_std=0.2,
    ...                      oracle=tacita.privacy.Clipped(norm=1.0))
    >>> rounds_within(problem, noisy, epsilon=1.0, delta=1e-5, observer="coordinator")
    7
    """
    ready = algorithm.resolve(problem)
    _require_observer(ready, observer)
    where = {"observer": observer, "unit": inputs.unit(unit)}

    def build(rounds: int) -> Guarantee:
        turns = planned(problem, rounds, participation)
        asked = {**where, "relation": relation_of(ready)}
        return largest(ready, problem, turns, **asked, delta=delta)[1]

    return affordable_rounds(build, epsilon=epsilon, delta=delta)


def _clipped(problem: Problem, algorithm: Any, norm: float | None) -> Any:
    """The algorithm with clipped gradients and with all numbers set by theory."""
    if not isinstance(algorithm, Algorithm):
        check.refuse(
            f"expected an algorithm such as tacita.FedAvg(...), got {algorithm!r}"
        )
    oracle = algorithm.oracle
    if isinstance(oracle, Clipped):
        oracle = oracle if norm is None else replace(oracle, norm=norm)
    else:
        oracle = Clipped(norm=1.0 if norm is None else norm, oracle=oracle)
    algorithm = replace(algorithm, oracle=oracle)
    algorithm.refuse_problem(problem)
    oracle.check(problem)
    return algorithm.resolve(problem)


def _require_observer(algorithm: Any, observer: str) -> None:
    known = observers(algorithm)
    if inputs.observer(observer) not in known:
        check.refuse(
            f"{type(algorithm).__name__} has no {observer}; who may look is "
            f"{', '.join(known)}"
        )


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """All that is settled before the noise is."""

    problem: Problem
    algorithm: Any
    participation: Any
    observer: str
    unit: str
    relation: str
    delta: float
    quantile: float | None

    @property
    def asked(self) -> dict[str, str]:
        names = ("observer", "unit", "relation")
        return {name: getattr(self, name) for name in names}

    @property
    def tolerance(self) -> float:
        sampled = not isinstance(self.algorithm.oracle.oracle, Full)
        return _TOLERANCE_SAMPLED if sampled and self.unit == "record" else _TOLERANCE

    def guarantee(self, multiplier: float, rounds: int) -> Guarantee:
        """What the agent that spends most is guaranteed at this noise."""
        turns = planned(self.problem, rounds, self.participation)
        made = self.with_noise(multiplier)
        return largest(made, self.problem, turns, **self.asked, delta=self.delta)[1]

    def changes(self) -> np.ndarray:
        """By how much one unit can change a gradient of each agent, or its letters."""
        needed = noise_needed(self.algorithm, self.problem, self.unit, self.relation)
        if needed is not None:
            return needed
        oracle = self.algorithm.oracle
        sizes, where = np.unique(self.problem.counts, return_inverse=True)
        # For a norm of 1; the norm itself may differ between agents.
        unit_changes = np.array(
            [
                oracle.sensitivity(self.relation, int(m), unit=self.unit, norm=1.0)
                for m in sizes
            ]
        )
        return unit_changes[where.ravel()] * np.asarray(oracle.norm)

    def with_noise(self, multiplier: float, epsilon: float | None = None) -> Any:
        """The algorithm with `multiplier` times the sensitivity as noise."""
        promise = None
        if epsilon is not None:
            promise = Promise(epsilon=epsilon, delta=self.delta, **self.asked)
        oracle = replace(self.algorithm.oracle, promise=promise)
        clipped = replace(self.algorithm, oracle=oracle)
        if self.quantile is None:
            return with_noise(clipped, self._rounded(multiplier * self.changes()))
        # Gradient and share cost (1 - s) and s of the round's 1/multiplier^2.
        grow, spend = 1 / math.sqrt(1 - _SHARE_OF_BUDGET), math.sqrt(_SHARE_OF_BUDGET)
        noise = self._rounded(multiplier * grow * self.changes())
        share = 1.0 if self.unit == "client" else 1 / self.problem.counts
        return AdaptiveClipping(
            algorithm=with_noise(clipped, noise),
            share_noise_std=self._rounded(multiplier / spend * share),
            quantile=self.quantile,
        )

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
        needed = multiplier * float(self.changes().max())
        if needed <= most:
            return
        fits = most / float(self.changes().max())
        lasts = affordable_rounds(
            lambda k: self.guarantee(fits, k), epsilon=epsilon, delta=self.delta
        )
        costs = self.guarantee(fits, rounds).epsilon(self.delta)
        shorter = f"{lasts} rounds" if lasts else "not even one round"
        check.refuse(
            f"epsilon={epsilon:g} against the {self.observer} over {rounds} rounds "
            f"needs noise {needed:.4g} in a gradient, more than largest_noise="
            f"{most:g}; with that noise the budget lasts {shorter}, or {rounds} rounds "
            f"cost epsilon={costs:.4g} at delta={self.delta:g}"
        )
