"""Choosing an algorithm's numbers: theory first, then a short probe, cost counted.

Every algorithm is tuned in the same way, with grids of the same size and the same
number of probe rounds, and what was tried is part of the result: a comparison in which
one side was tuned and the other was not is no comparison.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import time
from typing import Any, overload

import numpy as np

from tacita import check
from tacita.algorithm import ALGORITHMS
from tacita.algorithm.base import Algorithm
from tacita.algorithm.fed_plt import FedPLT
from tacita.participation import schedule_for
from tacita.problem.gtv.gtvmin import GTVMin
from tacita.problem.problem import Problem
from tacita.runtime.measure import RISING
from tacita.runtime.ready import prepare
from tacita.runtime.simulate import sweep
from tacita.theory import fed_plt as theory
from tacita.theory.fed_plt import round_cost
from tacita.tuning.alpha import AlphaTuning, tune_alpha
from tacita.tuning.grids import GRIDS
from tacita.tuning.learned_graph import GraphTuning, tune_graph

#: Where a probe ends, if nobody says; of gradients, in units of those at the start.
_ACCURACY = 1e-5

#: What is tuned, which is not chosen by name.
_FIRST = ("problem", "gtv", "algorithm")

#: Said of every tuning: no ledger knows of it.
_LOOKED = "chosen by looking at rows without noise, so not for a private run on them"


@dataclasses.dataclass(frozen=True)
class Trial:
    """One candidate of a probe.

    Attributes:
        algorithm: The candidate, all numbers set.
        rounds: Rounds until the metric was below the accuracy, or None if never.
        cost: Time of those rounds by the cost model, or infinity.
        last: The metric in the last probe round.
    """

    algorithm: Algorithm
    rounds: int | None
    cost: float
    last: float


@dataclasses.dataclass(frozen=True)
class Tuning:
    """The chosen algorithm, what is expected of it, and everything that was tried."""

    algorithm: Any
    rounds: int | None
    cost: float
    predicted: Any
    trials: tuple[Trial, ...]
    probe_rounds: int
    metric: str
    accuracy: float
    seconds: float

    def __str__(self) -> str:
        name = type(self.algorithm).__name__
        reached = sum(t.rounds is not None for t in self.trials)
        told = (
            f"{name}: {self.rounds} rounds to {self.metric} <= {self.accuracy:g}, cost "
            f"{self.cost:.4g}"
            if self.rounds is not None
            else f"{name}: {self.metric} <= {self.accuracy:g} was not reached"
        )
        probe = (
            f"{len(self.trials)} candidates, {self.probe_rounds} probe rounds each, "
            f"{reached} reached it, {self.seconds:.1f} s"
        )
        theory_told = (
            ""
            if self.predicted is None
            else f"; theory predicts a factor {self.predicted.rate:.3f} a round"
        )
        return f"{told}{theory_told} ({probe}); {_LOOKED}"


@overload
def tune(
    problem: GTVMin,
    *,
    alphas: Any = None,
    validation: float = 0.25,
    repeats: int = 3,
    seed: int = 0,
) -> AlphaTuning: ...


@overload
def tune(
    problem: Problem,
    *,
    discrepancy: str,
    method: str = "nearest",
    seed: int = 0,
    **choices: Any,
) -> GraphTuning: ...


@overload
def tune(
    problem: Problem, algorithm: str | type, *, seed: int = 0, **choices: Any
) -> Tuning: ...


def tune(
    problem: Problem | GTVMin,
    algorithm: str | type | None = None,
    *,
    seed: int = 0,
    **choices: Any,
) -> Any:
    """Choose an algorithm's numbers, the strength of GTVMin's coupling, or a graph.

    `tune(problem, discrepancy="wald", ...)` learns a graph and chooses its k and the
    strength together; it takes the arguments of `tune_graph`. `tune(problem, "FedPLT",
    ...)` takes the arguments of `tune_algorithm`,
    `tune(GTVMin(problem, 1.0), ...)` those of `tune_alpha`: alphas (a grid in units of
    the problem's curvature by default), validation (the share of every node's rows that
    is held out), repeats (random splits to average over).

    Args:
        problem: What is solved.
        algorithm: Its class, or its name: "fed-plt", "FedLin", ...; not for GTVMin.
        seed: Of the probe, or of the splits.
        **choices: See above.

    Example:
        >>> from tacita.problem import graph, synthetic
        >>> nodes = synthetic.linear(
        ...     6, features=2, samples=8, noise=1.0, graph=graph.ring(6)
        ... )
        >>> found = tune(GTVMin(nodes, alpha=1.0), alphas=[0.01, 100.0])
        >>> found.alpha  # one true model: couple strongly
        100.0
    """
    if isinstance(problem, GTVMin):
        if algorithm is not None:
            check.refuse("tune(GTVMin(...)) chooses alpha; it takes no algorithm")
        _require_known(tune_alpha, choices)
        return tune_alpha(problem, seed=seed, **choices)
    if algorithm is None and "discrepancy" in choices:
        return tune_graph(problem, seed=seed, **choices)
    if algorithm is None:
        check.refuse('name the algorithm to tune, for example tune(problem, "FedPLT")')
    _require_known(tune_algorithm, choices)
    return tune_algorithm(problem, algorithm, seed=seed, **choices)


def _require_known(function: Any, choices: dict[str, Any]) -> None:
    told = inspect.signature(function).parameters.values()
    known = [one.name for one in told if one.name not in _FIRST]
    for name in choices:
        if name not in known:
            check.refuse(f"unknown argument {name!r}; {check.nearest(name, known)}")


def tune_algorithm(
    problem: Problem,
    algorithm: str | type,
    *,
    t_grad: float = 1.0,
    t_comm: float = 10.0,
    local_steps: int | None = None,
    participation: Any = 1.0,
    accuracy: float | None = None,
    metric: str = "mean_grad_norm_sq",
    probe_rounds: int = 200,
    start: Any = None,
    seed: int = 0,
) -> Tuning:
    """Choose an algorithm's numbers for a problem and a machine.

    The cost of a round is (gradients * t_grad + exchanges * t_comm) per active agent.
    Candidates come from theory (`tacita.tuning.grids`); each is run for at most
    `probe_rounds` rounds, and the one that gets the metric below `accuracy` at the
    least cost is chosen; if none does, the one that comes closest.

    Args:
        problem: What is solved.
        algorithm: Its class, or its name: "fed-plt", "FedLin", ...
        t_grad: Time of one local gradient.
        t_comm: Time of one exchange with the coordinator.
        local_steps: Keep this number of local steps; None tries several.
        participation: As in `simulate`.
        accuracy: Of the metric; None takes 1e-5, of squared norms of gradients 1e-5 of
            what they are at the start.
        metric: What is measured: by default the squared norm of sum_i grad f_i at the
            mean of the agents' models.
        probe_rounds: Rounds that a candidate gets at most.
        start: As in `simulate`.
        seed: Of the probe.
    """
    began = time.perf_counter()
    check.positive(accuracy=accuracy)
    if metric in RISING:
        check.refuse(
            f"metric={metric!r} grows as a run gets better; tune by one that falls, "
            "for example metric='loss'"
        )
    kind = find(algorithm)
    if kind not in GRIDS:
        check.refuse(
            f"{kind.__name__} has no grid to tune on; set its numbers yourself, or "
            f"tune one of: {', '.join(k.__name__ for k in GRIDS)}"
        )
    predicted = _predict(problem, kind, t_grad, t_comm, participation)
    goal = _usual(problem, metric, start) if accuracy is None else accuracy
    trials: list[Trial] = []
    for steps in _step_counts(local_steps, predicted):
        trials += _probe(
            problem,
            GRIDS[kind](problem, steps),
            (t_grad, t_comm, steps),
            dict(participation=participation, start=start, seed=seed),
            (metric, goal, probe_rounds),
        )
    best = min(trials, key=lambda t: (t.cost, _finite(t.last)))
    return Tuning(
        algorithm=best.algorithm,
        rounds=best.rounds,
        cost=best.cost,
        predicted=predicted,
        trials=tuple(trials),
        probe_rounds=probe_rounds,
        metric=metric,
        accuracy=goal,
        seconds=time.perf_counter() - began,
    )


def _usual(problem: Problem, metric: str, start: Any) -> float:
    """An accuracy that is as far away in any unit of features and labels."""
    if metric not in ("grad_norm_sq", "mean_grad_norm_sq"):
        return _ACCURACY
    slope = problem.grad(problem.start if start is None else start)
    # At the optimum already there is no size to go by.
    return _ACCURACY * (float(np.sum(np.square(slope, dtype=float))) or 1.0)


def find(algorithm: str | type) -> type:
    """The class of that name; case, dashes and underscores do not matter.

    >>> find("fed-plt").__name__
    'FedPLT'
    """
    if isinstance(algorithm, type):
        return algorithm
    known = {_bare(kind.__name__): kind for kind in ALGORITHMS}
    known |= {"5gcs": known["fivegcs"]}
    if isinstance(algorithm, Algorithm):
        name = type(algorithm).__name__
        check.refuse(
            f"expected algorithm a class or a name, its numbers are chosen here, got "
            f"{algorithm!r}; take {name!r}"
        )
    if _bare(str(algorithm)) in known:
        return known[_bare(str(algorithm))]
    names = [kind.__name__ for kind in ALGORITHMS]
    check.refuse(f"unknown algorithm={algorithm!r}; {check.nearest(algorithm, names)}")


def _bare(name: str) -> str:
    return re.sub(r"[-_ ]", "", name).lower()


def _finite(value: float) -> float:
    return value if np.isfinite(value) else np.inf


def _predict(
    problem: Problem, kind: type, t_grad: float, t_comm: float, participation: Any
) -> Any:
    """What theory says of Fed-PLT: rho, step, local steps, rate; else nothing."""
    if kind is not FedPLT or problem.moduli.smallest <= 0:
        return None
    n = problem.n_agents
    share = schedule_for(participation, n).expected(n) / n
    return theory.plan(
        problem.moduli.strong_convexity,
        problem.moduli.smoothness,
        t_grad,
        t_comm,
        agents=n,
        participation=share,
    )


def _step_counts(local_steps: int | None, predicted: Any) -> list[int]:
    if local_steps is not None:
        return [check.count(local_steps=local_steps)]
    centre = 5 if predicted is None else predicted.local_steps
    return sorted({max(1, centre // 2), centre, 2 * centre})


def _probe(
    problem: Problem,
    candidates: list,
    costs: tuple[float, float, int],
    choices: dict[str, Any],
    goal: tuple[str, float, int],
) -> list[Trial]:
    """Run the candidates side by side and note when each reached the goal."""
    t_grad, t_comm, steps = costs
    metric, accuracy, rounds = goal
    ready = [prepare(problem, c) for c in candidates]
    run = sweep(
        problem,
        ready,
        rounds,
        record=(metric,),
        stop={metric: accuracy},
        progress=False,
        **choices,
    )
    n = problem.n_agents
    active = schedule_for(choices["participation"], n).expected(n)
    exchanges = candidates[0].exchanges
    per_round = float(round_cost(steps, t_grad, t_comm, active, exchanges=exchanges))
    trials = []
    for algorithm, values in zip(ready, run.metrics[metric], strict=True):
        reached = np.flatnonzero(values <= accuracy)
        count = int(reached[0]) + 1 if len(reached) else None
        cost = np.inf if count is None else count * per_round
        trials.append(Trial(algorithm, count, cost, float(values[-1])))
    return trials
