"""From a plan of an audit to scores: a pilot chooses, fresh runs are scored."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from tacita.audits.plan import GROUPS, PILOT, Group, Plan
from tacita.audits.scores import (
    Whitening,
    all_numbers,
    by_run,
    expected_letters,
    imagined_batches,
    noise_of,
)
from tacita.audits.statistics import learned_score, promising
from tacita.audits.tradeoff import Allowed, mu_bound, standing
from tacita.audits.transcript import Seen
from tacita.privacy.letters import letters_of
from tacita.runtime.world import World

#: Of a pilot's choice: it is best of several.
_PILOT_ERROR = 1e-3
#: Standard deviations above a claim's curve that a pilot takes for a lead.
_PROMISING = 3.0


class Attack(NamedTuple):
    """A score, learned from a pilot, and the kind of canary it is for."""

    name: str
    kind: str
    learned: Any  # what the pilot taught

    @property
    def words(self) -> str:
        """For reports."""
        return f"{self.name}, {self.kind} records"


def best_attack(plan: Plan, allowed: Allowed | None) -> Attack:
    """The attack that exceeds most what is allowed, or tells most runs apart."""
    worth = _careful if allowed is None else partial(standing, allowed)
    found: list[tuple[float, float, Attack]] = []
    for kind in plan.kinds:
        if kind == "emptied":
            continue  # it tests the noise, and changes half as much
        groups = plan.pilot(kind)
        for name in plan.attacks:
            if name == "batches" and kind == "turning":
                continue
            attack = Attack(name, kind, _learn(plan, name, groups))
            scores = _scores(plan, attack, groups)
            values = _largest(worth, scores), _largest(_careful, scores)
            found.append((*values, attack))
    over = [one for one in found if one[0] > _PROMISING]
    if over:
        return max(over, key=lambda one: one[0])[2]
    return max(found, key=lambda one: one[1])[2]


def _largest(worth: Any, scores: tuple[np.ndarray, np.ndarray]) -> float:
    (event,) = promising(*scores, worth)
    hits, runs = event.counts(*scores)
    return float(worth(hits[0], runs[0], hits[1], runs[1]))


def _careful(hits: Any, runs: Any, others: Any, other_runs: Any) -> np.ndarray:
    return mu_bound(hits, runs, others, other_runs, error=_PILOT_ERROR)


def score_runs(plan: Plan, attack: Attack) -> tuple[np.ndarray, np.ndarray]:
    """Scores of fresh runs, on D and on D'."""
    parts = [
        _scores(plan, attack, [plan.simulate(one)], number)
        for number, one in enumerate(plan.canaries[attack.kind])
    ]
    here, there = zip(*parts, strict=True)
    return np.concatenate(here), np.concatenate(there)


def _learn(plan: Plan, name: str, groups: list[Group]) -> Any:
    """What the pilot teaches: how noise varies, or a classifier of each canary."""
    if name == "learned":
        seen = [
            [all_numbers(plan.algorithm, plan.scope.observer, v) for v in group.views]
            for group in groups
        ]
        return [learned_score(*pair) for pair in seen]
    if name == "batches":
        rests = [
            np.asarray(noise_of(plan.agent, world, plan.algorithm, view[0]))
            for group in groups
            for world, view in zip(group.worlds, group.views, strict=True)
        ]
    else:
        rests = [
            by_run(view[0].letter) - _means(plan, world, view[0])
            for group in groups
            for world, view in zip(group.worlds, group.views, strict=True)
        ]
    active = [np.asarray(v[0].active, float) for g in groups for v in g.views]
    noise, told = np.concatenate(rests), np.concatenate(active)
    if name == "batches":  # letter by letter: batches of different rounds are apart
        noise, told = noise.reshape(-1, 1, noise.shape[-1]), told.reshape(-1, 1)
        noise, told = noise[told[:, 0] > 0], told[told[:, 0] > 0]
    return Whitening(noise, told)


def _means(plan: Plan, world: World, seen: Seen) -> np.ndarray:
    return expected_letters(world, plan.algorithm, plan.agent, seen)


def _scores(
    plan: Plan, attack: Attack, groups: list[Group], first: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Scores of all runs of some groups, on D and on D'."""
    sides: tuple[list, list] = ([], [])
    for number, group in enumerate(groups, first):
        for side, view in zip(sides, group.views, strict=True):
            side.append(_score(plan, attack, group, number, view))
    return np.concatenate(sides[0]), np.concatenate(sides[1])


def _score(
    plan: Plan, attack: Attack, group: Group, number: int, view: Any
) -> np.ndarray:
    seen = view[0]
    if attack.name == "learned":
        numbers = all_numbers(plan.algorithm, plan.scope.observer, view)
        return attack.learned[number](numbers)
    if attack.name == "batches":
        key = jax.random.key(number)
        about = (group.worlds, plan.algorithm, plan.agent, seen)
        return imagined_batches(*about, attack.learned.inverse, key)
    on, off = (_means(plan, world, seen) for world in group.worlds)
    active = np.asarray(seen.active, float)
    return attack.learned.matched(by_run(seen.letter), active, on, off)


def noise_rests(plan: Plan) -> tuple[np.ndarray, np.ndarray] | None:
    """The noise of letters on D and D'; None where a letter has no one draw of it."""
    kind = plan.kinds[-1]  # the emptied ones, where there are any
    if not _one_draw_a_letter(plan):
        return None
    sides: tuple[list, list] = ([], [])
    for group in plan.pilot(kind)[: GROUPS // PILOT]:
        for side, world, view in zip(sides, group.worlds, group.views, strict=True):
            seen = view[0]
            rests = np.asarray(noise_of(plan.agent, world, plan.algorithm, seen))
            # Rounds in which the agent is silent carry none; of several edges one.
            whole = rests[np.all(seen.active, axis=1)]
            side.append(whole[..., : plan.problem.dim])
    here, there = (np.concatenate(side) for side in sides)
    return (here, there) if min(len(here), len(there)) >= 50 else None


def _one_draw_a_letter(plan: Plan) -> bool:
    algorithm = plan.algorithm
    letters = letters_of(algorithm)
    known = letters.public_state or letters.replayed
    if not known or letters.secret_turns or not np.any(np.asarray(letters.noise_std)):
        return False
    if algorithm.noise_std is not None:
        return True  # added to the letter itself
    asked = algorithm.gradients()
    return not isinstance(asked, str) and sum(asked) == 1
