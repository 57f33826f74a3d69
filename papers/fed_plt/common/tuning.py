"""Tuning, the same for every method: a grid, and a few instances kept for it.

The paper tunes every method "to achieve the best performance possible". Here a method
gets the candidates that `tacita.tune` would try, in units of the problem's curvature,
so that a place in the grid means the same on every instance. The places with the best
means over the tuning instances are the finalists. Where methods are compared, each
repetition runs all finalists and counts the best; elsewhere the first is kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

import tacita
from papers.common.kept import Kept, kept_or_made
from papers.fed_plt.common.measures import (
    ACCURACY,
    AT_COORDINATOR,
    AT_MEAN,
    contraction,
    reference,
    rounds_to,
)
from papers.fed_plt.common.problems import TUNING_SEEDS, Instance, Make
from papers.fed_plt.common.progress import watched
from tacita.algorithm.solvers import Accelerated, GradientDescent
from tacita.tuning.grids import GRIDS

#: Rounds of a probe; a longer one follows where no candidate arrived.
PROBES = (25, 100, 400)
#: Places of the grid that are tried again in every repetition of a comparison.
FINALISTS = 6
#: Rounds of a probe for a rate: with everyone active, and with half of the agents.
RATE_ROUNDS, RATE_ROUNDS_PARTIAL = 100, 250

#: Candidates for a problem and a number of local steps; only their numbers differ.
Grid = Callable[[tacita.Problem, int], list]
#: Scores of candidates on an instance, with a seed for what else is random.
Score = Callable[[Instance, list, int], np.ndarray]


class Choice(NamedTuple):
    """Places in a grid, and what was seen when they were chosen.

    Attributes:
        grid: Candidates for a problem.
        order: Their places, the best first.
        scores: Of every tuning instance (rows) and candidate: rounds, or rates.
        words: The candidates, their ranges and the chosen one, on the first instance.
    """

    grid: Callable[[tacita.Problem], list]
    order: np.ndarray
    scores: np.ndarray
    words: str

    def on(self, problem: tacita.Problem) -> Any:
        """The chosen algorithm for a problem."""
        return self.grid(problem)[self.place]

    def finalists(self, problem: tacita.Problem) -> list:
        """The best candidates for a problem."""
        candidates = self.grid(problem)
        return [candidates[place] for place in self.order[:FINALISTS]]

    @property
    def place(self) -> int:
        """The best place in the grid."""
        return int(self.order[0])

    @property
    def likely_rounds(self) -> int:
        """Rounds in which some finalist arrives on most instances."""
        return math.ceil(np.max(np.minimum(self.best_each, PROBES[-1]))) + 1

    @property
    def best_each(self) -> np.ndarray:
        """What the best candidate of each tuning instance scored there."""
        return self.scores.min(axis=1)

    @property
    def kept(self) -> np.ndarray:
        """What the choice scored on every tuning instance."""
        return self.scores[:, self.place]


def choose(
    grid: Grid,
    local_steps: int,
    make: Make,
    words: str,
    score: Score | None = None,
    seeds: Sequence[int] = TUNING_SEEDS,
    kept: Kept | None = None,
) -> Choice:
    """Find the place in the grid with the least mean score over tuning instances.

    Scores that are `kept` already are not computed again.
    """

    def for_problem(problem: tacita.Problem) -> list:
        return grid(problem, local_steps)

    rate = score or rounds_score()

    def of_seed(seed: int) -> np.ndarray:
        instance = make(seed)
        return rate(instance, for_problem(instance.problem), seed)

    rows = []
    for seed in watched(seeds, f"tuning {words}"):
        name = f"tuning {words}, instance {seed}"
        rows.append(kept_or_made(kept, name, partial(of_seed, seed)))
    scores = np.array(rows)
    # A candidate that did not arrive everywhere comes after those that did.
    known = np.where(np.isfinite(scores), scores, 100 * PROBES[-1])
    order = np.argsort(known.mean(axis=0), kind="stable")
    candidates = for_problem(make(seeds[0]).problem)
    return Choice(for_problem, order, scores, _describe(candidates, int(order[0])))


def rounds_score(measured: str = AT_MEAN, participation: float | int = 1.0) -> Score:
    """Score candidates by rounds to the accuracy, parts of a round included."""

    def score(instance: Instance, candidates: list, seed: int) -> np.ndarray:
        scores = np.full(len(candidates), math.inf)
        for rounds in PROBES:
            run = tacita.sweep(
                instance.problem,
                candidates,
                rounds,
                seed=seed,
                participation=participation,
                start=instance.start,
                record=(measured,),
                stop={measured: ACCURACY},
                progress=False,
            )
            scores = np.array([_crossing(v) for v in run.metrics[measured]])
            if np.isfinite(scores).any():
                break
        return scores

    return score


def rate_score(participation: float | int = 1.0) -> Score:
    """Score candidates by the rate of ||X - x*||."""
    everyone = participation == 1.0
    rounds = RATE_ROUNDS if everyone else RATE_ROUNDS_PARTIAL

    def score(instance: Instance, candidates: list, seed: int) -> np.ndarray:
        run = tacita.sweep(
            instance.problem,
            candidates,
            rounds,
            seed=seed,
            participation=participation,
            start=instance.start,
            record=("error",),
            reference=reference(instance.problem),
            progress=False,
        )
        return np.array([contraction(errors) for errors in run.metrics["error"]])

    return score


def _crossing(values: np.ndarray) -> float:
    """Where a straight line between the logarithms meets the accuracy, in rounds."""
    k = rounds_to(values)
    if not math.isfinite(k):
        return math.inf
    if k == 1:
        return 1.0
    before, after = np.log(np.maximum(values[int(k) - 2 : int(k)], 1e-300))
    return k - 1 + float((before - math.log(ACCURACY)) / (before - after))


def fed_plt(problem: tacita.Problem, rho: float, local_steps: int) -> tacita.FedPLT:
    """Fed-PLT with the step of theory for all agents, 2/(L + mu + 2/rho).

    L is the largest eigenvalue of any agent's Hessian bound, mu the smallest.
    """
    low, high = problem.moduli.smallest, problem.moduli.largest
    solver = GradientDescent(
        step_size=2 / (low + high + 2 / rho), local_steps=local_steps
    )
    return tacita.FedPLT(rho=rho, solver=solver)


def penalty_range(problem: tacita.Problem) -> np.ndarray:
    """48 penalties from a fifth of 1/sqrt(mu L), the best for exact answers, to five.

    >>> problem = tacita.problem.synthetic.logistic(agents=2, samples=9)
    >>> len(penalty_range(problem))
    48
    """
    best = 1 / math.sqrt(problem.moduli.smallest * problem.moduli.largest)
    return best * np.geomspace(0.2, 5.0, 48)


def penalties(problem: tacita.Problem, local_steps: int) -> list:
    """Fed-PLT with the step of theory and 48 rho."""
    return [fed_plt(problem, float(rho), local_steps) for rho in penalty_range(problem)]


def accelerated_fed_plt(problem: tacita.Problem, local_steps: int) -> list:
    """Fed-PLT with accelerated local steps and 48 rho."""
    solver = Accelerated(local_steps=local_steps)
    return [
        _ready(problem, tacita.FedPLT(rho=float(rho), solver=solver))
        for rho in penalty_range(problem)
    ]


def accelerated_five_gcs(problem: tacita.Problem, local_steps: int) -> list:
    """The candidates of 5GCS with accelerated local steps."""
    solver = Accelerated(local_steps=local_steps)
    return [
        _ready(
            problem,
            tacita.FiveGCS(
                gamma=one.gamma,
                tau=one.tau,
                strong_convexity=one.strong_convexity,
                solver=solver,
            ),
        )
        for one in GRIDS[tacita.FiveGCS](problem, local_steps)
    ]


def _ready(problem: tacita.Problem, algorithm: Any) -> Any:
    return algorithm.resolve(problem)


class Method(NamedTuple):
    """How a method is tuned, measured and charged."""

    grid: Grid
    measured: str = AT_MEAN
    exchanges: int = 1


#: In the order of the paper's tables. 5GCS takes one gradient more for its dual, which
#: the paper does not charge and this table therefore does not either.
METHODS = {
    "FedPD": Method(GRIDS[tacita.FedPD]),
    "FedLin": Method(GRIDS[tacita.FedLin], exchanges=2),
    "TAMUNA": Method(GRIDS[tacita.TAMUNA], AT_COORDINATOR),
    "LED": Method(GRIDS[tacita.LED]),
    "5GCS": Method(GRIDS[tacita.FiveGCS], AT_COORDINATOR),
    "Fed-PLT": Method(GRIDS[tacita.FedPLT]),
}


def _describe(candidates: list, place: int) -> str:
    """How many candidates, the range of each number, and the chosen one."""
    paths = [path for path, _ in jax.tree_util.tree_leaves_with_path(candidates[0])]
    leaves = [jax.tree.leaves(one) for one in candidates]
    told = []
    for number, path in enumerate(paths):
        values = np.array([np.mean(one[number]) for one in leaves])
        if np.ptp(values) > 0:
            name = str(getattr(path[-1], "name", path[-1])).strip(".")
            chosen = f"{values[place]:.3g}"
            told.append(f"{name} {chosen} of {values.min():.3g}..{values.max():.3g}")
    return f"{', '.join(told)} ({len(candidates)} candidates)"
