"""Running totals of all agents of a ledger, brought up to date when they are asked."""

from __future__ import annotations

import json

from tacita import check
from tacita.privacy.ledger.database import Row, Store
from tacita.privacy.ledger.spending import Seen
from tacita.privacy.scope import Person, Scope, people


class Totals:
    """What every person has seen of every agent, and what they may see."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._seen: dict[tuple[str, Person], Seen] = {}

    def clear(self) -> None:
        """Forget all sums, which may hold rows that were rolled back."""
        self._seen.clear()

    def seen(self, agent: str, person: Person) -> Seen:
        """What a person has seen of an agent by now."""
        seen = self._seen.setdefault((agent, person), Seen(person))
        newer = self._store.find(
            "kind = 'release' AND agent = ? AND id > ? ORDER BY id",
            (agent, seen.through),
        )
        for row in newer:
            seen.add(row)
        return seen

    def budget(self, agent: str) -> Row | None:
        """The budget in force, as the row that set it; None if none was set."""
        found = self._store.find(
            "kind = 'budget' AND agent = ? ORDER BY id DESC LIMIT 1", (agent,)
        )
        return next(found, None)

    def budget_for(self, agent: str, scope: Scope) -> Row:
        """The budget that a release of this scope is charged to, or a refusal."""
        budget = self.budget(agent)
        if budget is None:
            check.refuse(
                f"no budget for agent={agent!r}; set one with Ledger.allow first"
            )
        allowed = {"unit": budget.unit, "relation": budget.relation}
        for field, wanted in allowed.items():
            if wanted != scope.words[field]:
                check.refuse(
                    f"the budget of agent={agent!r} is per {field}={wanted!r}, the "
                    f"release is {scope.words[field]!r}; they do not add up"
                )
        return budget


def people_of(budget: Row | None) -> tuple[Person, ...]:
    """Whom a budget counts as one person; everybody where there is none."""
    told = None if budget is None else budget.separate
    return people(told and json.loads(told))
