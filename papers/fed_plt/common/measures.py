"""What the tables print: rounds to an accuracy, their time, and rates."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

import tacita
from papers.common.kept import Kept, kept_or_made
from papers.fed_plt.common.problems import Instance, Make
from papers.fed_plt.common.progress import watched
from tacita.theory.fed_plt import round_cost

#: Rounds are counted until ||sum_i grad f_i(x)||^2 is this small.
ACCURACY = 1e-5
#: The paper's x is the mean of the agents' models.
AT_MEAN = "mean_grad_norm_sq"
#: With silent agents that mean holds stale models: TAMUNA and 5GCS, whose agents start
#: every round from the coordinator's model, are measured there.
AT_COORDINATOR = "grad_norm_sq"
#: Rounds after which a run counts as not arrived.
MOST_ROUNDS = 500
#: Below this share of the first error, rounding may show in a rate.
_FLOOR = 1e-9


class Case(NamedTuple):
    """One entry of a table.

    Attributes:
        build: The algorithm for a problem, or several, of which the best counts.
        measured: What must fall to the accuracy.
        participation: As in `tacita.simulate`.
        rounds: How many at most; of several algorithms, how many to try first.
    """

    build: Callable[[tacita.Problem], Any]
    measured: str = AT_MEAN
    participation: float | int = 1.0
    rounds: int = MOST_ROUNDS


def rounds_to(values: np.ndarray, accuracy: float = ACCURACY) -> float:
    """First round, counted from 1, with a value that small; NaN where there is none."""
    reached = np.flatnonzero(np.asarray(values) <= accuracy)
    return float(reached[0]) + 1 if len(reached) else math.nan


def count_rounds(instance: Instance, case: Case, repetition: int) -> float:
    """Rounds that a case needs on an instance, or NaN."""
    built = case.build(instance.problem)
    if isinstance(built, list):
        return _fewest_rounds(instance, built, case, repetition)
    run = tacita.simulate(
        instance.problem,
        built,
        case.rounds,
        seed=repetition,
        participation=case.participation,
        start=instance.start,
        record=(case.measured,),
        stop={case.measured: ACCURACY},
        progress=False,
    )
    return rounds_to(run.metrics[case.measured])


def _fewest_rounds(
    instance: Instance, algorithms: list, case: Case, repetition: int
) -> float:
    """Rounds of the first of several algorithms to arrive, run side by side."""
    for rounds in (case.rounds, 5 * case.rounds, MOST_ROUNDS):
        run = tacita.sweep(
            instance.problem,
            algorithms,
            rounds,
            seed=repetition,
            participation=case.participation,
            start=instance.start,
            record=(case.measured,),
            record_every=1,
            progress=False,
        )
        counts = [rounds_to(values) for values in run.metrics[case.measured]]
        if not np.all(np.isnan(counts)):
            return float(np.nanmin(counts))
    return math.nan


def contraction(errors: np.ndarray) -> float:
    """Geometric mean factor per round over the last two thirds of a run.

    The paper prints convergence rates and does not define them. Errors near rounding
    are left out; a run that diverges has the factor infinity.
    """
    errors = np.asarray(errors, np.float64)
    if not np.all(np.isfinite(errors)):
        return math.inf
    small = np.flatnonzero(errors <= _FLOOR * errors[0])
    kept = errors[: small[0] + 1] if len(small) else errors
    first = len(kept) // 3
    return float((kept[-1] / kept[first]) ** (1 / max(len(kept) - 1 - first, 1)))


def reference(problem: tacita.Problem) -> np.ndarray:
    """The optimum, once for every agent: the metric "error" is then ||X - x*||."""
    return np.tile(problem.solve(), (problem.n_agents, 1))


def measure_rate(instance: Instance, case: Case, repetition: int) -> float:
    """Rate of ||X - x*||, X all agents' models, of a case on an instance."""
    built = case.build(instance.problem)
    several = isinstance(built, list)
    run = (tacita.sweep if several else tacita.simulate)(
        instance.problem,
        built,
        case.rounds,
        seed=repetition,
        participation=case.participation,
        start=instance.start,
        record=("error",),
        reference=reference(instance.problem),
        progress=False,
    )
    return min(contraction(errors) for errors in np.atleast_2d(run.metrics["error"]))


def _measured(
    measure: Callable[[Instance, Case, int], float],
    drawn: Callable[[], Instance],
    case: Case,
    repetition: int,
) -> float:
    return measure(drawn(), case, repetition)


def repeat(
    make: Make,
    cases: Mapping[Any, Case],
    repetitions: int,
    words: str,
    measure: Callable[[Instance, Case, int], float] = count_rounds,
    kept: Kept | None = None,
) -> dict[Any, np.ndarray]:
    """Measure every case on every repetition: data and starting point drawn anew.

    Shapes agree between repetitions, so each case is compiled once. What is `kept`
    already is not measured again.
    """
    found: dict[Any, list[float]] = {key: [] for key in cases}
    for repetition in watched(range(1, repetitions + 1), words):
        # Made when the first case needs it, and once for all cases.
        instance = functools.cache(functools.partial(make, repetition))
        for key, case in cases.items():
            found[key].append(
                kept_or_made(
                    kept,
                    f"{words}, {key}, repetition {repetition}",
                    functools.partial(_measured, measure, instance, case, repetition),
                )
            )
    return {key: np.array(values) for key, values in found.items()}


def median(rounds: np.ndarray) -> float:
    """The middle count; a run that did not arrive counts as longer than any other."""
    return float(np.median(np.where(np.isnan(rounds), math.inf, rounds)))


def time_of(
    rounds: Any,
    local_steps: int,
    t_grad: float,
    t_comm: float,
    agents: float = 100,
    exchanges: int = 1,
) -> float:
    """The paper's computing time of (a mean number of) rounds, in its own units."""
    each = round_cost(local_steps, t_grad, t_comm, agents, exchanges=exchanges)
    return float(np.nanmean(rounds) * each)
