"""A run built for rows of zeros: what its description alone says of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacita.aggregation import Summed
from tacita.algorithm.base import Algorithm
from tacita.check import refuse
from tacita.federation.budget import plan_of
from tacita.federation.description import Description
from tacita.federation.invitation import Invitation
from tacita.federation.policy import Policy
from tacita.federation.setting import Setting, blank_setting
from tacita.federation.work import GraphWork
from tacita.privacy import Ledger, letters_of
from tacita.privacy.letters.on_grid import has_integers
from tacita.trees import in_double_precision


def require_allowed(run: Description, me: Invitation, policy: Policy) -> None:
    """Refuse a run that is against the policy, or not one of this federation's."""
    me.roster.require(run.starter, run.agents)
    require_still_allowed(run, me, policy)


def require_still_allowed(run: Description, me: Invitation, policy: Policy) -> None:
    """The same for a run that was begun: whom it may go on without, it says itself."""
    if me.name not in run.agents:
        refuse("this agent is not one of the run")
    objection = policy.objection(run)
    if objection:
        refuse(objection)


def rehearse(
    run: Description, me: Invitation, policy: Policy, ledger: Ledger, **allowance: Any
) -> Setting:
    """Build the run for rows of zeros, and see whether the ledger has room for it.

    Nothing is written: what is refused, or never begins, leaves no trace.
    """
    made = blank_setting(run)
    if run.privacy is not None:
        made = plan_of(made, me.name, ledger, **allowance).setting
    require_parts_allowed(made, me.name, policy)
    return made


def require_parts_allowed(setting: Setting, name: str, policy: Policy) -> None:
    """Refuse what only shows once the algorithm is built."""
    algorithm, private = setting.roles.algorithm, setting.run.privacy is not None
    # On a graph it is the agents who join letters.
    mine = (algorithm, setting.roles.aggregation if setting.roles.on_graph else None)
    objection = policy.objection_to_parts(
        local_steps=max(_local_steps(mine), default=1),
        numbers=max(letter.numbers for letter in outgoing(setting, name)),
        weighted=setting.weighted,
        relation=letters_of(algorithm).relation if private else None,
        exact=isinstance(algorithm, Summed) or has_integers(algorithm),
    )
    if objection:
        refuse(objection)


def _local_steps(record: Any) -> Iterator[float]:
    """All numbers of steps in an algorithm, its solvers' and its rule's among them.

    Of steps whose number is drawn, their mean.
    """
    drawn = record.drawn_steps() if isinstance(record, Algorithm) else None
    if drawn is not None:
        yield drawn
    if isinstance(record, list | tuple):
        for entry in record:
            yield from _local_steps(entry)
    if not dataclasses.is_dataclass(record):
        return
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if field.name in ("local_steps", "steps") and value is not None:
            yield float(np.max(value))
        yield from _local_steps(value)


@dataclass(frozen=True)
class Outgoing:
    """A letter that an agent sends in every round.

    Attributes:
        to: Who reads it.
        arrays: Type and shape of each array.
        numbers: How many numbers it holds.
    """

    to: str
    arrays: tuple[str, ...]
    numbers: int


@in_double_precision
def outgoing(setting: Setting, name: str) -> list[Outgoing]:
    """The letters that leave an agent in a round."""
    roles = setting.roles
    if not roles.on_graph:
        forms = [exchange.letter for exchange in roles.server.exchanges]
        word = None
        if isinstance(roles.algorithm, Summed):
            word = f"masked uint{roles.algorithm.aggregation.word}"
        return [_letter(roles.coordinator, form.leaves, word) for form in forms]
    assert roles.graph is not None
    me = list(roles.agents).index(name)
    work = GraphWork(roles.algorithm, roles.graph, me, roles.like, roles.start)
    return [_letter(roles.agents[j], work.letter.leaves) for j in work.neighbours]


def _letter(to: str, leaves: list[Any], word: str | None = None) -> Outgoing:
    arrays = tuple(f"{word or np.dtype(v.dtype)}{list(v.shape)}" for v in leaves)
    return Outgoing(to, arrays, sum(int(np.prod(v.shape)) for v in leaves))
