"""What an audit simulates: canaries, runs on either side of them, attacks to try."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tacita import check
from tacita.aggregation import Aggregation
from tacita.audits.canary import (
    Canary,
    mean_gradient,
    neighbours,
    quiet_canary,
    spread_canaries,
    worst_canary,
)
from tacita.audits.scores import ATTACKS, sees_letters
from tacita.audits.transcript import Seen, watch, world_of
from tacita.privacy.clipped import clipping_of
from tacita.privacy.letters import letters_of
from tacita.privacy.scope import Relation, Scope
from tacita.problem.oracles import Full
from tacita.problem.problem import Problem
from tacita.runtime.world import World

#: Places and directions of the record, where letters are scored; the pilot's share.
GROUPS, PILOT = 32, 4
#: The same where a classifier must learn each of them.
_LEARNED = 2


class Group(NamedTuple):
    """Runs on either side of one canary."""

    worlds: tuple[World, World]
    views: tuple[tuple[Seen, np.ndarray], tuple[Seen, np.ndarray]]


@dataclass(frozen=True)
class Plan:
    """What an audit simulates.

    Attributes:
        problem: The data around the canaries.
        algorithm: Ready to run.
        scope: Who looks at what.
        rounds: Of each run.
        lanes: Runs on either side of each canary.
        participation: As in `tacita.simulate`.
        agent: Whose record it is.
        canaries: By kind.
        attacks: What may be tried.
        rng: For seeds.
        aggregation: As in `tacita.simulate`.
    """

    problem: Problem
    algorithm: Any
    scope: Scope
    rounds: int
    lanes: int
    participation: Any
    agent: int
    canaries: dict[str, list[Canary]]
    attacks: tuple[str, ...]
    rng: np.random.Generator
    aggregation: Aggregation | None = None

    @classmethod
    def of(
        cls,
        problem: Problem,
        algorithm: Any,
        scope: Scope,
        rounds: int,
        runs: int,
        participation: Any,
        agent: int,
        canary: Canary | None,
        attacks: Sequence[str] | None,
        rng: np.random.Generator,
        aggregation: Aggregation | None = None,
    ) -> Plan:
        """Choose canaries and attacks, or take those that were given."""
        chosen = _choose(algorithm, scope, attacks)
        groups = _LEARNED if chosen == ("learned",) else GROUPS
        groups = max(1, min(groups, runs // 12))
        where = (problem, algorithm, scope.relation, agent)
        if canary is not None:
            canaries, groups = {"given": [canary]}, 1
        else:
            canaries = {"clipped": spread_canaries(*where, worst_canary, groups, rng)}
            if chosen != ("learned",):
                canaries |= _more_kinds(where, rounds, groups, rng)
        lanes = -(-runs // groups)
        about = (scope, rounds, lanes, participation, agent)
        return cls(problem, algorithm, *about, canaries, chosen, rng, aggregation)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Of canaries."""
        return tuple(self.canaries)

    def simulate(self, canary: Canary) -> Group:
        """Fresh runs on either side."""
        pair = neighbours(self.problem, canary)
        made = (
            self.algorithm,
            self.participation,
            self.scope.observer,
            self.aggregation,
        )
        worlds = tuple(world_of(data, *made) for data in pair)
        seeds = self.rng.integers(0, 2**62, (2, self.lanes), dtype=np.uint64)
        views = tuple(
            watch(
                data,
                self.algorithm,
                self.rounds,
                own,
                self.agent,
                self.participation,
                self.scope.observer,
                self.aggregation,
            )
            for data, own in zip(pair, seeds, strict=True)
        )
        return Group(worlds, views)  # pyright: ignore[reportArgumentType]

    def pilot(self, kind: str) -> list[Group]:
        """Runs to learn from: of some canaries, or of all that must be learned."""
        step = 1 if self.attacks == ("learned",) else PILOT
        return [self.simulate(one) for one in self.canaries[kind][::step]]


def _more_kinds(
    where: tuple[Problem, Any, Relation, int],
    rounds: int,
    groups: int,
    rng: np.random.Generator,
) -> dict[str, list[Canary]]:
    """Records for faults that clipped ones in random directions do not show."""
    problem, algorithm, relation, agent = where
    found = {}
    against = mean_gradient(problem, agent)
    if np.any(against):
        # Among fixed batches a row displaces others: one that is unlike them shows.
        opposed = spread_canaries(*where, worst_canary, groups, rng, against)
        found["opposed"] = opposed
    if rounds > 1:
        found["turning"] = spread_canaries(*where, quiet_canary, groups, rng)
    if relation != Relation.ADD_REMOVE:
        emptied = (problem, algorithm, Relation.ADD_REMOVE, agent)
        few = max(1, groups // PILOT)
        found["emptied"] = spread_canaries(*emptied, worst_canary, few, rng)
    return found


def _choose(
    algorithm: Any, scope: Scope, attacks: Sequence[str] | None
) -> tuple[str, ...]:
    letters = letters_of(algorithm)
    known = letters.public_state or letters.replayed
    informed = sees_letters(algorithm, scope.observer) and known
    clipped = clipping_of(algorithm.oracle)
    batches = clipped is not None and not isinstance(clipped.oracle, Full)
    # A replayed state is known for whole gradients only.
    mixed = informed and batches and letters.public_state
    if attacks is None:
        if not informed:
            return ("learned",)
        return ("matched", "batches") if mixed else ("matched",)
    for one in attacks:
        check.one_of(ATTACKS, attack=one)
        if one == "batches" and not mixed:
            check.refuse(
                "attack='batches' needs an observer of letters, and batches in them"
            )
        if one == "matched" and not informed:
            check.refuse(
                f"attack={one!r} needs an observer of letters who can compute what "
                "they would be without noise; use attacks=['learned']"
            )
    if not attacks:
        check.refuse("attacks is empty; leave it out or name one")
    return tuple(attacks)
