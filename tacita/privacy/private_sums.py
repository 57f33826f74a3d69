"""From a budget to a secure sum: grid and noise set for all agents together."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tacita import check
from tacita.aggregation import SecureSum, Summed
from tacita.aggregation.secure.plan import Grid, fitted
from tacita.participation import schedule_for
from tacita.privacy import spend
from tacita.privacy.accounting.calibrate import calibrate_noise
from tacita.privacy.accounting.compose import account
from tacita.privacy.accounting.guarantee import Guarantee
from tacita.privacy.clipped import Promise
from tacita.privacy.letters.question import Increment, Question
from tacita.privacy.letters.secure_sum import (
    honest_noises,
    increment_of,
    most_curious,
    rounding_of_increment,
    weight_of,
)
from tacita.privacy.scope import Observer, Scope
from tacita.problem.problem import Problem
from tacita.trees import replace

#: Room above the largest entry of a clipped letter, which is rounded.
_ROOM = 1 + 2.0**-20
#: By how much noise grows where rounding took a budget a little too far.
_MORE = 1.002
#: How closely noise is set; draws of records take longer to account.
_TOLERANCE, _TOLERANCE_SAMPLED = 1e-6, 1e-3


def private_sum(
    problem: Problem,
    algorithm: Any,
    rule: SecureSum,
    *,
    epsilon: float,
    delta: float,
    observer: str,
    rounds: int,
    participation: Any,
    unit: str,
    relation: str,
    liars: int = 0,
) -> Summed:
    """The algorithm in a secure sum whose noise is set for a budget.

    Against the coordinator the noise is set for whoever learns most of the sums that
    it opens (`most_curious`). Noise that is set already is checked, and refused if it
    is too little.
    """
    heard, rule = _agreed(problem, rule, participation)
    sums = Summed(algorithm=algorithm, aggregation=rule)
    sums.refuse_problem(problem)
    who = spend.known_observer(sums, observer)
    if who == Observer.COORDINATOR:
        who = most_curious(rule)
    scope = Scope(who, unit, relation)
    promise = Promise(epsilon=epsilon, delta=delta, scope=scope)
    oracle = replace(algorithm.oracle, promise=promise)
    turns = spend.planned(problem, rounds, participation, liars=liars)
    if rule.multiples:
        made = Summed(algorithm=replace(algorithm, oracle=oracle), aggregation=rule)
        _require_enough(spend.largest(made, problem, turns, scope, delta)[1], promise)
        return made
    asked = Question(scope=scope, agent=0, rounds=rounds).seen_as(problem)
    plan = _Plan(problem, algorithm, asked.scope, rounds)
    largest = plan.largest(rule.largest)
    multiplier = plan.multiplier(epsilon, delta)
    while True:
        honest = honest_noises(rule, who, liars)
        grid = plan.grid(multiplier, heard, honest, largest)
        made = Summed(
            algorithm=replace(algorithm, oracle=oracle),
            aggregation=replace(rule, largest=largest, **grid._asdict()),
        )
        spent = spend.largest(made, problem, turns, scope, delta)[1]
        if spent.epsilon(delta) <= epsilon:
            return made
        multiplier *= _MORE


def _require_enough(spent: Guarantee, promise: Promise) -> None:
    """Refuse noise that was agreed on and does not keep the budget."""
    epsilon, scope = spent.epsilon(promise.delta), promise.scope
    if epsilon > promise.epsilon:
        check.refuse(
            f"the noise of the secure sum gives epsilon={epsilon:.6g} against the "
            f"{scope.observer} for one {scope.unit} (delta={promise.delta:g}; "
            f"{spent.theorem}), above the {promise.epsilon:g} promised; leave step and "
            "multiples out to have them set"
        )


def _agreed(
    problem: Problem, rule: SecureSum, participation: Any
) -> tuple[int, SecureSum]:
    """How many agents a round has, at most; and the rule with its least number."""
    who = schedule_for(participation, problem.n_agents)
    heard = who.size if who.kind == "cohort" else problem.n_agents
    if rule.least is None:
        if who.kind == "bernoulli":
            check.refuse(
                "with a probability of taking part nobody knows how many letters a sum "
                "has; give SecureSum(least=...), below which a round is void"
            )
        rule = replace(rule, least=heard)
    rule.check(heard)
    return heard, rule


@dataclass(frozen=True)
class _Plan:
    """What the noise depends on, for every kind of agent."""

    problem: Problem
    algorithm: Any
    scope: Scope
    rounds: int

    @property
    def _moved(self) -> list[tuple[float, Increment]]:
        """Weights and increments; agents with equally many rows are alike."""
        _, first = np.unique(np.asarray(self.problem.counts), return_index=True)
        found = []
        for agent in first.tolist():
            question = Question(scope=self.scope, agent=agent, rounds=self.rounds)
            weight = weight_of(self.algorithm, self.problem, agent)
            moved = increment_of(self.algorithm, self.problem, question)
            found.append((weight, moved))
        return found

    @property
    def change(self) -> float:
        """The largest change of the sum by one unit."""
        return max(weight * moved.change for weight, moved in self._moved)

    def largest(self, given: float | None) -> float:
        """The bound on entries: what clipped letters keep, if none was given."""
        needed = _ROOM * max(weight * moved.entry for weight, moved in self._moved)
        if given is not None and given < needed:
            check.refuse(
                f"largest={given:g} is below {needed:.6g}, what an entry of a clipped "
                "and weighted letter may be; leave largest out"
            )
        return needed if given is None else float(given)

    def multiplier(self, epsilon: float, delta: float) -> float:
        """Noise over change that the agent who spends most needs."""
        parts = [(w * moved.change, moved.sampling) for w, moved in self._moved]
        sampled = any(sampling is not None for _, sampling in parts)

        def spent(noise: float) -> Guarantee:
            one = partial(account, **self.scope.words, rounds=self.rounds)
            found = [
                one(
                    noise_std=noise * self.change, sensitivity=change, sampling=sampling
                )
                for change, sampling in parts
            ]
            return max(found, key=lambda each: each.epsilon(delta))

        tolerance = _TOLERANCE_SAMPLED if sampled else _TOLERANCE
        return calibrate_noise(spent, epsilon=epsilon, delta=delta, tolerance=tolerance)

    def grid(self, multiplier: float, agents: int, honest: int, largest: float) -> Grid:
        """The grid and everybody's noise."""
        entries = self.problem.dim
        increments = [moved for _, moved in self._moved]
        slack = max(
            rounding_of_increment(moved, entries, self.scope) for moved in increments
        )
        parts = max(moved.parts for moved in increments)
        about = (entries, agents, honest, largest, slack, parts)
        return fitted(multiplier, self.change, *about)
