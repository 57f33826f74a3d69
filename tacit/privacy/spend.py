"""Who spends most: guarantees of all agents of a run or of a plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from tacit.algorithm.base import GraphAlgorithm
from tacit.privacy import fed_plt_letters  # noqa: F401 - registers Fed-PLT
from tacit.privacy.clip import Clipped
from tacit.privacy.guarantee import Guarantee
from tacit.privacy.letters import Question, guarantee
from tacit.problem.oracle import Full
from tacit.problem.problem import Problem
from tacit.runtime import schedule

#: With more kinds of agents than this, batches are accounted at the smallest agent's
#: rate: sampled releases take long to account, and a higher rate costs more.
_MANY_RATES = 4


@dataclass(frozen=True)
class Turns:
    """How often agents take part.

    Attributes:
        rounds: Per agent: rounds it was active, or all rounds of a plan.
        chance: Per agent: 1 for a run that happened, else its probability.
        active: Agents active in every round, or None if their number varies.
    """

    rounds: np.ndarray
    chance: np.ndarray
    active: int | None


def planned(problem: Problem, rounds: int, participation: Any) -> Turns:
    """What a plan can say of participation: a probability per agent."""
    n = problem.n_agents
    who = schedule.of(participation, n)
    chance = who.size / n if who.kind == "cohort" else who.chance
    return Turns(
        np.full(n, rounds),
        np.broadcast_to(np.asarray(chance, dtype=float), (n,)),
        always_active(participation, n),
    )


def realised(turns: Any, participation: Any, n: int) -> Turns:
    """What a run shows: how often each agent was active."""
    counted = np.asarray(turns, dtype=int).reshape(-1, n).max(axis=0)
    return Turns(counted, np.ones(n), always_active(participation, n))


def always_active(participation: Any, n: int) -> int | None:
    """Agents active in every round, or None if their number varies."""
    who = schedule.of(participation, n)
    return {"all": n, "cohort": who.size}.get(who.kind)


def kinds_of_agents(algorithm: Any, problem: Problem, turns: Turns) -> np.ndarray:
    """One agent of every kind: agents alike in all that a guarantee depends on."""
    n = problem.n_agents
    columns = [np.asarray(problem.counts), turns.rounds, turns.chance]
    for leaf in jax.tree.leaves(algorithm):
        if np.shape(leaf) == (n,):
            columns.append(np.asarray(leaf))
    table = np.stack([np.asarray(c, dtype=float) for c in columns], axis=1)
    _, first = np.unique(table, axis=0, return_index=True)
    oracle = algorithm.oracle
    sampled = isinstance(oracle, Clipped) and not isinstance(oracle.oracle, Full)
    if sampled and len(first) > _MANY_RATES:
        return _dominating(problem, turns, first)
    return first


def _dominating(problem: Problem, turns: Turns, kinds: np.ndarray) -> np.ndarray:
    """Agents of which one spends most: those that no other beats in all respects."""
    counts, keep = np.asarray(problem.counts), []
    for k in kinds:
        better = (
            (counts[kinds] <= counts[k])
            & (turns.rounds[kinds] >= turns.rounds[k])
            & (turns.chance[kinds] >= turns.chance[k])
        )
        strictly = (
            (counts[kinds] < counts[k])
            | (turns.rounds[kinds] > turns.rounds[k])
            | (turns.chance[kinds] > turns.chance[k])
        )
        if not np.any(better & strictly):
            keep.append(k)
    return np.asarray(keep)


def largest(
    algorithm: Any,
    problem: Problem,
    turns: Turns,
    *,
    observer: str,
    unit: str,
    relation: str,
    delta: float,
) -> tuple[int, Guarantee]:
    """The agent that spends most against an observer, and its guarantee."""
    found: list[tuple[float, int, Guarantee]] = []
    for agent in kinds_of_agents(algorithm, problem, turns):
        question = Question(
            observer=observer,
            unit=unit,
            relation=relation,
            agent=int(agent),
            rounds=int(turns.rounds[agent]),
            participation=float(turns.chance[agent]),
            active=turns.active,
        )
        one = guarantee(algorithm, problem, question)
        # Gaussian curves are ordered by mu alone, which needs no root finding.
        spent = one.epsilon(delta) if one.mu is None else one.mu
        found.append((spent, int(agent), one))
    return max(found, key=lambda entry: entry[0])[1:]


def observers(algorithm: Any) -> tuple[str, ...]:
    """Who may look at a run of this algorithm."""
    if isinstance(algorithm, GraphAlgorithm):
        return ("final_model", "neighbour", "eavesdropper")
    return ("final_model", "coordinator", "neighbour", "eavesdropper")
