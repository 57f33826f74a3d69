"""From a budget to an algorithm: clipping and noise set, or a refusal that helps."""

from __future__ import annotations

import math
from typing import Any, TypeVar

import numpy as np

from tacit import check
from tacit.algorithm.base import Algorithm
from tacit.privacy import inputs
from tacit.privacy.adaptive import AdaptiveClipping
from tacit.privacy.calibrate import affordable_rounds, calibrate_noise
from tacit.privacy.clip import Clipped, Promise
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.letters import natural_relation, number_of, with_noise
from tacit.privacy.report import relation_of
from tacit.privacy.spend import largest, observers, planned
from tacit.problem.oracle import Full
from tacit.problem.problem import Problem
from tacit.trees import replace

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
        algorithm: `ServerGD`, `FedAvg` or `FedPLT`.
        epsilon: The budget.
        delta: The probability of exceeding it; well below one over the records.
        observer: Against whom; there is no default, for the noise depends on it.
        rounds: Rounds to plan for.
        participation: As in `tacit.simulate`. With probabilities the bound holds over
            the draw of who takes part.
        unit: What is protected: one `record`, or all of a `client`.
        relation: `replace_one` or `add_remove`; the default follows the sampling.
        norm: What records' gradients are clipped to; default that of the algorithm's
            oracle, or 1. Do not choose it by looking at private data.
        quantile: Let the norm follow this quantile of the gradient norms.
        largest_noise: Refuse more noise than this in a gradient, and say what would
            fit.

    >>> import tacit
    >>> problem = tacit.problem.synthetic.logistic(agents=5, features=3, samples=100)
    >>> safe = private(problem, tacit.FedAvg(step_size=0.5), epsilon=1.0, delta=1e-5,
    ...                observer="coordinator", rounds=50)
    >>> run = tacit.simulate(problem, safe, rounds=50)
    >>> row = run.privacy.row("coordinator")
    >>> round(row.epsilon, 4), row.unit, row.relation
    (1.0, 'record', 'replace_one')
    """
    epsilon, delta = inputs.positive(epsilon=epsilon), inputs.inside_unit(delta=delta)
    inputs.observer(observer)
    inputs.unit(unit)
    rounds = inputs.whole(rounds=rounds)
    _require_observer(algorithm, observer)
    ready = _clip(algorithm, norm).resolve(problem)
    if relation is None:
        relation = natural_relation(ready)
    inputs.relation(relation)
    ready.refuse_problem(problem)
    ready.oracle.check(problem)
    turns = planned(problem, rounds, participation)
    asked = {"observer": observer, "unit": unit, "relation": relation}

    def build(multiplier: float) -> Guarantee:
        made = _with_multiplier(problem, ready, multiplier, asked, quantile)
        return largest(made, problem, turns, **asked, delta=delta)[1]

    sampled = not isinstance(ready.oracle.oracle, Full) and unit == "record"
    multiplier = calibrate_noise(
        build,
        epsilon=epsilon,
        delta=delta,
        tolerance=_TOLERANCE_SAMPLED if sampled else _TOLERANCE,
    )
    if largest_noise is not None:
        _refuse_too_noisy(
            problem, ready, multiplier, largest_noise, asked, build,
            epsilon=epsilon, delta=delta, rounds=rounds, participation=participation,
        )  # fmt: skip
    promise = Promise(epsilon=epsilon, delta=delta, **asked)
    return _with_multiplier(problem, ready, multiplier, asked, quantile, promise)
