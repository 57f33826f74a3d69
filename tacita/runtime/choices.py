"""What a user may choose of a run, checked before anything is compiled."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from tacita import check
from tacita.aggregation import ASKING, ON_GRAPHS, Aggregation, FLTrust, Mean, Summed
from tacita.aggregation.robust_rule import RobustRule
from tacita.aggregation.secure.summed import summed
from tacita.algorithm.base import Delivery, GraphAlgorithm
from tacita.algorithm.joining import Rules
from tacita.participation import Schedule, schedule_for
from tacita.privacy.letters import is_private
from tacita.problem.problem import Problem
from tacita.problem.stream import stream_of
from tacita.robust import Attack
from tacita.runtime import arrivals, measure, transit


def problem_of(problem: Any) -> Problem:
    """Refuse what is no problem."""
    if not isinstance(problem, Problem):
        check.refuse(
            "expected a problem, made with tacita.from_arrays(...) for example, got "
            f"problem={problem!r}"
        )
    return problem


def start_of(problem: Problem, start: Any) -> Any:
    """The starting point, (d,) or (N, d); default the problem's own."""
    return _point(problem, problem.start if start is None else start, "start")


def reference_of(problem: Problem, reference: Any) -> Any:
    """The point that "error" measures the distance to, or None."""
    return None if reference is None else _point(problem, reference, "reference")


def _point(problem: Problem, value: Any, name: str) -> Any:
    try:
        # Rounding a reference to the data's type would move the point itself.
        kind = float if name == "reference" else problem.dtype
        point = np.asarray(value, dtype=kind)
    except (TypeError, ValueError):
        check.refuse(f"expected {name} an array of numbers, got {name}={value!r}")
    check.finite(**{name: point})
    if point.shape not in ((problem.dim,), (problem.n_agents, problem.dim)):
        check.refuse(
            f"expected {name} of shape ({problem.dim},) or "
            f"({problem.n_agents}, {problem.dim}), got {point.shape}"
        )
    return jnp.asarray(point)


def summed_by(
    problem: Problem, algorithm: Any, participation: Any, aggregation: Any
) -> Any:
    """The algorithm, as a secure sum joins its letters if one is asked for.

    Refused where a round has too few agents, or too many, for the sum.
    """
    made = summed(algorithm, aggregation)
    if isinstance(made, Summed):
        who = schedule_for(participation, problem.n_agents)
        rule = made.aggregation
        if who.kind == "bernoulli" and rule.least is None:
            check.refuse(
                "with a probability of taking part nobody knows how many letters a sum "
                "has; give SecureSum(least=...), below which a round is void"
            )
        rule.check(who.size if who.kind == "cohort" else problem.n_agents)
    return made


def require_rows(problem: Problem, algorithm: Any, rounds: int) -> None:
    """Refuse a run that is longer than the streams of its agents."""
    stream = stream_of(algorithm.oracle)
    if stream is not None:
        algorithm.refuse_second_draws()
        stream.require_rounds(problem, rounds, sum(algorithm.gradients()))


def schedule_of(
    problem: Problem, algorithm: Any, participation: Any, lanes: bool = False
) -> Schedule:
    """Who takes part; refused where the algorithm needs everybody, or more."""
    who = schedule_for(participation, problem.n_agents, lanes)
    if who.kind != "all" and not algorithm.partial:
        check.refuse(
            f"{algorithm.needs_everybody()}; use participation=1.0 or an algorithm "
            "with partial participation"
        )
    if who.kind == "cohort" and who.size < algorithm.least_active:
        check.refuse(
            f"{type(algorithm).__name__} never converges with {who.size} active agent "
            f"a round; use participation >= {algorithm.least_active}"
        )
    return who


def require_asynchronous(algorithm: Any, asynchronous: Any) -> None:
    """Refuse what does not say how a run of the algorithm is out of step."""
    if asynchronous is None:
        return
    on_graph = isinstance(algorithm, GraphAlgorithm)
    (transit if on_graph else arrivals).require(asynchronous, algorithm)


def aggregation_of(
    problem: Problem,
    algorithm: Any,
    aggregation: Aggregation | None,
    who: Schedule | None = None,
) -> Aggregation:
    """How a coordinator, or a node on a graph, joins letters; or a refusal."""
    if isinstance(algorithm, Summed):
        most = problem.n_agents
        if who is not None and who.kind == "cohort":
            most = who.size
        return algorithm.aggregation.at_work(most)
    if aggregation is None:
        return Mean()
    if isinstance(aggregation, type) or not callable(aggregation):
        check.refuse(
            "expected aggregation a rule such as tacita.aggregation.Mean(), got "
            f"aggregation={aggregation!r}"
        )
    if isinstance(algorithm, GraphAlgorithm):
        _require_neighbours(problem, algorithm, aggregation)
        _require_counts(algorithm, aggregation)
        return aggregation
    name = type(algorithm).__name__
    last = aggregation
    while isinstance(last, ASKING):
        last = last.rule
    if isinstance(last, ON_GRAPHS):
        check.refuse(
            f"{type(last).__name__} starts from a node's own letter; it goes "
            f"with algorithms on a graph such as FedGD, not with {name}"
        )
    algorithm.joining.refuse(name, aggregation)
    _require_counts(algorithm, aggregation)
    aggregation.check(problem.n_agents)
    if who is not None and who.kind == "cohort" and algorithm.averages == "active":
        aggregation.check(who.size)
        if isinstance(aggregation, FLTrust):
            check.refuse(
                f"{aggregation!r} needs the root's letter in every round, and "
                f"participation={who.size} draws who is asked; let everybody take part"
            )
    return aggregation


def _require_counts(algorithm: Any, aggregation: Aggregation) -> None:
    """Refuse a rule that weighs letters by rows where they come without a count."""
    by_rows = isinstance(aggregation, RobustRule) and aggregation.by_samples
    if by_rows and algorithm.weights != "samples":
        name = type(algorithm).__name__
        check.refuse(
            f"{aggregation!r} weighs letters by rows, and to {name} all weigh alike; "
            f"leave weights='samples' out, or give it to {name} too if it takes that"
        )


def _require_neighbours(
    problem: Problem, algorithm: GraphAlgorithm, aggregation: Aggregation
) -> None:
    """Refuse a rule whose letters are duals, or of which a node gets too few."""
    if algorithm.joining.rules != Rules.ANY:
        check.refuse(
            f"letters of {type(algorithm).__name__} are no models, or differ from edge "
            "to edge; leave aggregation out, or use FedGD, FedSGD or FedRelax"
        )
    if isinstance(aggregation, FLTrust):
        check.refuse(
            "FLTrust trusts an agent with a coordinator's rows, and on a graph nobody "
            "coordinates; use NearestToOwn, ClippedGossip or Bridge, which trust a "
            "node's own letter"
        )
    assert problem.graph is not None
    fewest = int(np.min(np.asarray(problem.graph.neighbour_counts)))
    if fewest < aggregation.least:
        check.refuse(
            f"{aggregation!r} joins at least {aggregation.least} letters, and a node "
            f"has {fewest} neighbours only; take more edges or count on fewer liars"
        )


def attack_of(problem: Problem, algorithm: Any, attack: Attack | None) -> Attack | None:
    """Who lies; refused where the liars are no agents, or cannot lie that way."""
    if attack is None:
        return None
    if not isinstance(attack, Attack):
        check.refuse(
            "expected attack such as tacita.robust.SignFlip(agents=(8, 9)), got "
            f"attack={attack!r}"
        )
    attack.check(problem)
    if attack.on_edges and getattr(algorithm, "delivery", None) != Delivery.SUM:
        check.refuse(
            f"{type(attack).__name__} tells each neighbour something else; it goes "
            "with FedGD, FedSGD or FedRelax on a graph"
        )
    if attack.sees_letters and isinstance(algorithm, Summed):
        check.refuse(
            f"{type(attack).__name__} answers single letters, which a secure sum "
            "hides from liars too; use an attack that knows less, such as SignFlip"
        )
    return attack


def stop_index(record: tuple[Any, ...], stop: Any) -> int | None:
    """Position of the metric that stops the run, or None."""
    if stop is None:
        return None
    example = "for example stop={'grad_norm_sq': 1e-10}"
    if not isinstance(stop, Mapping) or len(stop) > 1:
        check.refuse(f"stop takes one metric, {example}, got stop={stop!r}")
    if not stop:
        return None
    ((metric, value),) = stop.items()
    names = [measure.name_of(item) for item in record]
    if metric not in names:
        check.refuse(f"stop={metric!r} is not recorded; add it to record={names}")
    if not check.is_number(value) or np.ndim(value) or not np.isfinite(value):
        check.refuse(f"stop takes a finite number, {example}, got stop={stop!r}")
    return names.index(metric)


def tolerance_of(stop: Mapping[str, Any] | None) -> float:
    """The number that the stopping metric is compared with.

    Always a float: an int beside it would compile the whole run again.
    """
    return float(next(iter(stop.values()))) if stop else 0.0


def folder_of(folder: str | os.PathLike[str] | None, resume: bool) -> Path | None:
    """The folder of a checkpoint, made if it is not there."""
    if folder is None:
        if resume:
            check.refuse(
                "resume=True needs the folder to resume from; add checkpoint=folder"
            )
        return None
    try:
        path = Path(folder)
    except TypeError:
        check.refuse(f"expected checkpoint the path of a folder, got {folder!r}")
    return check.folder(checkpoint=path)


def watch_of(algorithm: Any, watch: bool, lanes: bool) -> bool:
    """Whether letters are watched; refused where they are secret, or lie on a graph."""
    if not check.flag(watch=watch):
        return False
    if isinstance(algorithm, GraphAlgorithm) or lanes:
        check.refuse(
            "watch=True looks at the letters that a coordinator gets, of one seed; "
            "leave it out on a graph and with seeds="
        )
    if isinstance(algorithm, Summed):
        check.refuse(
            "watch=True looks at single letters, which a secure sum hides; leave it out"
        )
    if is_private(algorithm):
        check.refuse(
            "watch=True would tell readers of the run about single letters, which only "
            "the coordinator sees; leave it out of a private run"
        )
    return True


def hook_of(on_record: Any) -> None:
    """Refuse what cannot be called with a record."""
    if on_record is not None and not callable(on_record):
        check.refuse(
            "expected on_record a function of one record, such as print, got "
            f"on_record={on_record!r}"
        )
