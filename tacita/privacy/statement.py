"""The privacy report of a run, and the forecast of a plan.

Rows are observers times units; an agent that spends most stands for all.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import numpy as np

from tacita import check
from tacita.aggregation import Aggregation, Choice, Summed
from tacita.aggregation.secure.summed import summed
from tacita.privacy import inputs
from tacita.privacy.accounting.guarantee import Assumption, Guarantee, believed
from tacita.privacy.blind import looks_at_rows
from tacita.privacy.clipped import promise_of
from tacita.privacy.letters import guarantee, letters_of
from tacita.privacy.letters.on_grid import has_integers
from tacita.privacy.letters.question import ARRIVALS_DRAWN, ARRIVALS_SEEN
from tacita.privacy.scope import Relation, Scope, Unit
from tacita.privacy.spend import Turns, largest, observers, of_one, planned, stand_ins
from tacita.problem.problem import Problem
from tacita.robust import ATTACKS
from tacita.trace import SEED_ASKED_FOR, PrivacyReport, PrivacyRow, Run

#: What epsilons are told at where nobody named a delta.
DEFAULT_DELTA = 1e-5
#: Where the noise of simulations comes from.
_SIMULATED = (
    "floating-point Gaussians of JAX's generator, which is for simulations: their last "
    "digits are not covered by any theorem above"
)
_SIMULATED_INTEGERS = (
    "exact integers on a grid, drawn by JAX's generator, which is for simulations; a "
    "federation draws them by ChaCha20 with secret keys"
)
_SIMULATED_SUM = (
    "exact integers on a grid; in this simulation those of the whole sum are drawn at "
    "once by JAX's generator, in a deployment every agent draws its own by ChaCha20"
)
#: Whom metrics of simulations are for.
_SIMULATED_METRICS = (
    "losses and other metrics of the run are computed from rows without noise: they "
    "are for whoever runs the simulation, not for the observers above"
)
#: What a run rests on whose starting point somebody gave.
_STARTED = believed(
    "the start that was given says nothing of these rows, or what it says is counted "
    "besides"
)
#: Points of a curve, at most, where the runtime did not count.
_POINTS = 60
#: The same where every point takes seconds: over a secret draw of who takes part.
_SECRET_POINTS = 12
#: Agents whose curves are kept: those that were active most.
_CURVES = 20


def report(
    run: Run,
    problem: Problem,
    algorithm: Any,
    *,
    delta: float | None = None,
    aggregation: Choice = None,
    history: tuple[np.ndarray, np.ndarray] | None = None,
    looked: bool = False,
) -> PrivacyReport:
    """What each observer of a finished run may have learnt, at most.

    Every agent is accounted for the rounds in which it was active; of several seeds
    the one in which it was active most counts.

    Args:
        run: What `tacita.simulate` returned; not of a sweep.
        problem: What was solved.
        algorithm: How.
        delta: The delta of all epsilons; default that of the promise, or 1e-5.
        aggregation: The run's, if it was not the mean.
        history: Some rounds, and in how many rounds every agent was active up to each,
            as the runtime counted them. Without it an agent counts as active from the
            first round on, as often as it was in all, which bounds what it spent.
        looked: Whether numbers that the algorithm has were set from the rows before.
    """
    algorithm = summed(algorithm, aggregation)
    looked = looked or looks_at_rows(algorithm, problem)
    ready = algorithm.resolve(problem)
    told = run.config.get("resolved", run.config)["run"]
    if "configs" in told:
        check.refuse("a sweep has no one report; simulate the configuration you want")
    rule = told.get("aggregation") or {"name": "Mean"}
    joined = rule["name"] != "Mean" and not isinstance(algorithm, Summed)
    if joined and aggregation is None:
        check.refuse(
            f"the letters of this run were joined by {rule['name']}; say so with "
            "aggregation="
        )
    history = _early_turns(run, problem.n_agents) if history is None else history
    known = {"looked": looked, "seeded": run.info.get("seed") == SEED_ASKED_FOR}
    turns, known["aggregation"] = history[1][-1], aggregation
    counted = counted_turns(ready, problem, run.rounds, told, turns, **known)
    made = _report(ready, problem, counted, run.rounds, delta)
    curves = _curves(ready, problem, counted, history, made)
    return dataclasses.replace(made, curves=curves, metrics=_SIMULATED_METRICS)


def counted_turns(
    algorithm: Any,
    problem: Problem,
    rounds: int,
    told: Mapping[str, Any],
    turns: np.ndarray,
    **known: Any,
) -> Turns:
    """How often agents took part in rounds that were done.

    Args:
        algorithm: How.
        problem: What is solved.
        rounds: How many were done.
        told: What the run says of itself: participation, delays, liars.
        turns: In how many of them every agent was active, of every seed.
        **known: `aggregation`, `looked` and `seeded`, as in `planned`.
    """
    known["in_step"] = told.get("asynchronous") is None
    known["liars"] = _liars(told.get("attack"), problem.n_agents)
    known["assumed"] = _arrivals(told.get("asynchronous"))
    known["assumed"] += _seeds(np.size(turns) // problem.n_agents)
    known["assumed"] += (_STARTED,) if "start" in told else ()
    counted = planned(problem, rounds, told.get("participation", 1.0), **known)
    secret = letters_of(algorithm).secret_turns
    return counted if secret else counted.as_they_went(turns)


def forecast(
    problem: Problem,
    algorithm: Any,
    *,
    rounds: int,
    participation: Any = 1.0,
    delta: float | None = None,
    aggregation: Choice = None,
    in_step: bool = False,
    most_delay: int | None = None,
    liars: int = 0,
    agent: int | None = None,
    assumed: tuple[Assumption, ...] = (),
) -> PrivacyReport:
    """What a run would cost: which epsilon, for whom, at the noise that is set.

    With participation below 1 the bounds hold over the draw of who takes part.
    `in_step`, `most_delay` and `liars` are as in `tacita.private`. With `agent`, its
    number, it tells what that one spends; else what the agent does that spends most.
    What the plan rests on besides is `assumed`.
    """
    rounds = inputs.whole(rounds=rounds)
    algorithm = summed(algorithm, aggregation)
    looked = looks_at_rows(algorithm, problem)
    known = {"looked": looked, "in_step": in_step, "liars": liars, "assumed": assumed}
    known["most_delay"] = most_delay
    turns = planned(problem, rounds, participation, aggregation, **known)
    ready = algorithm.resolve(problem)
    made = _report(ready, problem, turns, rounds, delta, agent)
    return dataclasses.replace(made, planned=True)


def _liars(attack: dict[str, Any] | None, n: int) -> int:
    """Agents whose noise hides nobody; all, where liars answer single letters."""
    if attack is None:
        return 0
    sees = {one.__name__: one.sees_letters for one in ATTACKS}
    return n if sees.get(attack["name"], True) else len(attack["agents"])


def _arrivals(asynchronous: dict[str, Any] | None) -> tuple[Assumption, ...]:
    """What a run rests on whose coordinator waited for nobody."""
    kinds = {"Pace": (ARRIVALS_DRAWN,), "Arrivals": (ARRIVALS_SEEN,)}
    return kinds.get((asynchronous or {}).get("name", ""), ())


def _seeds(lanes: int) -> tuple[Assumption, ...]:
    """What a run of several seeds rests on, each of which is a run on the same rows."""
    if lanes == 1:
        return ()
    told = f"of the {lanes} seeds an observer sees the run of one: together they cost "
    return (believed(told + "more"),)


def _early_turns(run: Run, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Turns by round, of a run of which at most their number in the end is known.

    A run of very many agents keeps none: everybody may have been always active.
    """
    last = max(run.rounds, 1)
    grid = np.unique(np.linspace(1, last, min(last, _POINTS)).round().astype(int))
    turns = np.asarray(run.info.get("turns", np.full(n, last)))
    return grid, np.minimum(grid[:, None], turns.reshape(-1, n).max(axis=0))


def attach(
    problem: Problem,
    algorithm: Any,
    run: Run,
    aggregation: Aggregation,
    history: tuple[np.ndarray, np.ndarray],
    looked: bool,
) -> Run:
    """A simulated run with its report in it; see `report`."""
    known = {"aggregation": aggregation, "history": history, "looked": looked}
    made = report(run, problem, algorithm, **known)
    noise = _SIMULATED_INTEGERS if has_integers(algorithm) else _SIMULATED
    if isinstance(algorithm, Summed):
        noise = _SIMULATED_SUM
    return dataclasses.replace(run, privacy=dataclasses.replace(made, noise=noise))


def _report(
    algorithm: Any,
    problem: Problem,
    turns: Turns,
    rounds: int,
    delta: float | None,
    agent: int | None = None,
) -> PrivacyReport:
    promise = promise_of(algorithm.oracle)
    delta = delta_of(algorithm, delta)
    if agent is not None and not 0 <= agent < problem.n_agents:
        check.refuse(f"expected agent in 0..{problem.n_agents - 1}, got agent={agent}")
    who = largest if agent is None else partial(of_one, agent)
    rows = tuple(
        row_of(who, algorithm, problem, turns, Scope(observer, unit, relation), delta)
        for relation in [relation_of(algorithm)]
        for observer in observers(algorithm)
        for unit in Unit
    )
    return PrivacyReport(
        algorithm=_name(algorithm),
        rounds=rounds,
        rows=rows,
        promise=promise and promise.as_dict(),
    )


def _name(algorithm: Any) -> str:
    if isinstance(algorithm, Summed):
        return f"{_name(algorithm.algorithm)} in secure sums"
    return type(algorithm).__name__


def delta_of(algorithm: Any, delta: float | None) -> float:
    """The delta asked for, or that of the promise, or the usual one."""
    promise = promise_of(algorithm.oracle)
    if delta is None:
        delta = DEFAULT_DELTA if promise is None else float(promise.delta)
    return inputs.inside_unit(delta=delta)


def relation_of(algorithm: Any) -> Relation:
    """The relation of a promise, or the one that the sampling is accounted under."""
    promise = promise_of(algorithm.oracle)
    return letters_of(algorithm).relation if promise is None else promise.scope.relation


def row_of(
    who: Callable[..., tuple[int, Guarantee]],
    algorithm: Any,
    problem: Problem,
    turns: Turns,
    scope: Scope,
    delta: float,
) -> PrivacyRow:
    """What the agent that `who` names may have told, at most."""
    unbounded = partial(PrivacyRow, **scope.words, delta=delta, epsilon=None)
    try:
        agent, found = who(algorithm, problem, turns, scope, delta)
        told = found.as_dict(delta)
    except (ValueError, ArithmeticError) as refusal:
        # Refusals, and numbers beyond all bounds: a finished run is never lost to them.
        return unbounded(theorem=f"none: {refusal}")
    if not math.isfinite(told["epsilon"]):
        return unbounded(theorem=f"no finite bound: {found.theorem}")
    claim = told["paper_claim"]
    if claim and claim["claimed_epsilon"] >= told["epsilon"]:
        claim |= {"status": "implied", "reason": "the guarantee here is smaller"}
    return PrivacyRow(**told, agent=str(problem.ids[agent]))


def nearest_scope(algorithm: Any) -> Scope:
    """That of the promise, else of the observer who is closest to letters."""
    promise = promise_of(algorithm.oracle)
    near = Scope(observers(algorithm)[1], relation=relation_of(algorithm))
    return near if promise is None else promise.scope


def _curves(
    algorithm: Any, problem: Problem, turns: Turns, history: Any, made: PrivacyReport
) -> dict[str, Any] | None:
    """How epsilon grew: against the promised observer, else the closest to letters."""
    scope = nearest_scope(algorithm)
    row = made.row(scope.observer, scope.unit)
    if row.epsilon is None:
        return None
    accounted, n = stand_ins(algorithm, problem), problem.n_agents

    @cache
    def spent(agent: int, chance: float, active: int, number: int) -> float:
        """As if the run had ended with this round."""
        asked = {"scope": scope, "agent": agent, "rounds": active, "total": number}
        question = turns.question(**asked, participation=chance)
        return guarantee(algorithm, problem, question).epsilon(row.delta)

    rounds, counted = history[0], history[1].reshape(len(history[0]), -1, n)
    counted = counted.max(axis=1)  # of several seeds the one that was active most
    if letters_of(algorithm).secret_turns:
        # Who took part when is what the bound rests on: no curve may tell it.
        every = -(-len(rounds) // _SECRET_POINTS)
        rounds = rounds[::-every][::-1]
        counted = np.broadcast_to(rounds[:, None], (len(rounds), n))
    shown = np.argsort(-counted[-1], kind="stable")[:_CURVES]
    return {
        **scope.words,
        "delta": row.delta,
        "theorem": row.theorem,
        "budget": made.promise and made.promise["epsilon"],
        "rounds": rounds.tolist(),
        "agents": [str(problem.ids[i]) for i in shown],
        "epsilon": [
            [
                spent(
                    int(accounted[i]), float(turns.chance[i]), int(active), int(number)
                )
                for number, active in zip(rounds, counted[:, i], strict=True)
            ]
            for i in shown
        ],
    }
