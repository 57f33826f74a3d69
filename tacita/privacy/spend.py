"""Who spends most: guarantees of all agents of a run or of a plan."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import numpy as np

from tacita import check
from tacita.aggregation import Mean, Summed
from tacita.algorithm.base import GraphAlgorithm
from tacita.participation import schedule_for
from tacita.privacy.accounting.guarantee import Guarantee
from tacita.privacy.clipped import clipping_of
from tacita.privacy.letters import Question, guarantee, letters_of
from tacita.privacy.letters.question import alike
from tacita.privacy.scope import Observer, Scope, word
from tacita.problem.oracles import Full
from tacita.problem.problem import Problem

#: With more kinds of agents than this, batches are accounted at the smallest agent's
#: rate. That covers everybody, and accounting of batches takes long.
_MANY_RATES = 4


@dataclass(frozen=True)
class Turns:
    """How often agents take part.

    Attributes:
        rounds: Per seed and agent: rounds it was active, or all rounds of a plan.
        chance: Per agent: 1 for a run that happened, else its probability.
        question: Makes a question about one agent, from what is left to say.
    """

    rounds: np.ndarray
    chance: np.ndarray
    question: Callable[..., Question]

    def as_they_went(self, turns: Any) -> Turns:
        """What a run shows: how often each agent was active, in each of its seeds."""
        n = len(self.chance)
        counted = np.asarray(turns, dtype=int).reshape(-1, n)
        return replace(self, rounds=counted, chance=np.ones(n))


def planned(
    problem: Problem,
    rounds: int,
    participation: Any,
    aggregation: Any = None,
    most_delay: float | None = None,
    **known: Any,
) -> Turns:
    """What a plan can say of participation: a probability per agent.

    With `most_delay` everybody is active at first, and once in so many rounds at least.
    What else is `known`, `looked`, `seeded`, `in_step` and `liars`, goes into every
    question.
    """
    n = problem.n_agents
    who = schedule_for(participation, n)
    active = {"all": n, "cohort": who.size}.get(who.kind)
    chance = who.chance if active is None else active / n
    chances = np.broadcast_to(np.asarray(chance, dtype=float), (n,))
    join = aggregation or Mean()
    whole = {"active": active, "total": rounds, "aggregation": join}
    if most_delay is not None:
        # ceil(rounds/B): between two that are forced lie B - 1 silent ones.
        whole["forced"] = math.ceil(rounds / max(float(most_delay), 1.0))
    question = partial(Question, **whole, **known)
    return Turns(np.full((1, n), rounds), chances, question)


def stand_ins(algorithm: Any, problem: Problem) -> np.ndarray:
    """For every agent, the number of one that is accounted in its place.

    It is alike in all that a guarantee depends on, rounds aside, or spends more: of
    batches, with letters that weigh alike, the one with the fewest rows does.
    """
    n, counts = problem.n_agents, np.asarray(problem.counts)
    own = [leaf for leaf in jax.tree.leaves(algorithm) if np.shape(leaf) == (n,)]
    own += letters_of(algorithm).facts(problem) or []
    first, kind = alike(counts, *own)
    clipped = clipping_of(algorithm.oracle)
    sampled = clipped is not None and not isinstance(clipped.oracle, Full)
    by_rows = algorithm.weights == "samples"
    if sampled and not own and not by_rows and len(first) > _MANY_RATES:
        return np.full(n, np.argmin(counts))
    return first[kind]


def largest(
    algorithm: Any, problem: Problem, turns: Turns, scope: Scope, delta: float
) -> tuple[int, Guarantee]:
    """The agent that spends most against an observer, and its guarantee."""
    accounted = stand_ins(algorithm, problem)
    first, kind = alike(accounted, turns.chance)
    found = []
    for k, agent in enumerate(first):
        active = turns.rounds[:, kind == k]
        for rounds in _most(active):
            question = turns.question(
                scope=scope,
                agent=int(accounted[agent]),
                rounds=rounds,
                participation=float(turns.chance[agent]),
            )
            busy = np.flatnonzero(kind == k)[np.any(active == rounds, axis=0).argmax()]
            found.append((int(busy), guarantee(algorithm, problem, question)))
    return _dearest(found, delta)


def of_one(
    agent: int,
    algorithm: Any,
    problem: Problem,
    turns: Turns,
    scope: Scope,
    delta: float,
) -> tuple[int, Guarantee]:
    """One agent, by its number, and its guarantee; see `largest`."""
    found = []
    for rounds in _most(turns.rounds[:, agent]):
        question = turns.question(
            scope=scope,
            agent=agent,
            rounds=rounds,
            participation=float(turns.chance[agent]),
        )
        found.append((agent, guarantee(algorithm, problem, question)))
    return _dearest(found, delta)


def _most(rounds: np.ndarray) -> list[int]:
    """The largest of these numbers of rounds, and the one below it.

    More rounds cost more, but that who was active in all of them may have a theorem
    that does not hold for who missed one.
    """
    most = np.unique(rounds)[-2:].tolist()
    return most[-1:] if most[0] == 0 else most  # who was never active tells nothing


def _dearest(found: list[tuple[int, Guarantee]], delta: float) -> tuple[int, Guarantee]:
    """The agent that spends most, and its guarantee."""
    # Gaussian curves are ordered by mu alone, which needs no root finding.
    if all(one.mu is not None for _, one in found):
        return max(found, key=lambda pair: pair[1].mu or 0.0)
    return max(found, key=lambda pair: pair[1].epsilon(delta))


def observers(algorithm: Any) -> tuple[Observer, ...]:
    """Who may look at a run of this algorithm.

    On a graph there is no coordinator; agents collude with one against secure sums.
    """
    absent = {Observer.COLLUDERS}
    if isinstance(algorithm, GraphAlgorithm):
        absent.add(Observer.COORDINATOR)
    if isinstance(algorithm, Summed) and algorithm.aggregation.colluding:
        absent.remove(Observer.COLLUDERS)
    return tuple(who for who in Observer if who not in absent)


def known_observer(algorithm: Any, observer: Any) -> Observer:
    """The observer of this name, if this algorithm has one."""
    asked, known = word(Observer, observer), observers(algorithm)
    if asked not in known:
        check.refuse(
            f"{type(algorithm).__name__} has no {asked}; who may look is "
            f"{', '.join(known)}"
        )
    return asked
