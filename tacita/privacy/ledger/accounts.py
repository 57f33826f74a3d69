"""What a ledger tells: budgets, what was spent against whom, whether it is whole.

Every answer comes from rows that were checked when they were read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tacita.privacy import inputs
from tacita.privacy.accounting.curve import Curve
from tacita.privacy.accounting.guarantee import Guarantee
from tacita.privacy.ledger.rows import BrokenLedger, Row
from tacita.privacy.ledger.spending import cost_of
from tacita.privacy.ledger.store import Store
from tacita.privacy.ledger.totals import Totals, people_of
from tacita.privacy.scope import Observer, Person, people, word
from tacita.trace.epsilon_words import NOTHING_YET


class Accounts:
    """The accounts of a ledger. Abstract: a `Ledger` can be charged too."""

    def __init__(self, store: Store) -> None:
        self._store, self._totals = store, Totals(store)

    @property
    def path(self) -> Path:
        """Where the ledger is kept."""
        return self._store.path

    def budget(self, agent: str) -> Row | None:
        """The budget in force, as the row that set it; None if none was set."""
        return self._totals.budget(agent)

    def rows(self) -> list[Row]:
        """All rows in order: the opening row, budgets and releases.

        Of a broken ledger those before the first fault.
        """
        return list(self._store.rows)

    def accounts(self) -> Iterator[tuple[str, Row | None, Person]]:
        """Every agent with its budget, and each person whom that counts as one."""
        self._store.whole()
        for agent in self._store.agents():
            budget = self.budget(agent)
            for person in people_of(budget):
                yield agent, budget, person

    def curve(self, agent: str, person: Person | None = None) -> Curve:
        """The composed privacy curve of all that a person saw; default: everybody."""
        self._store.whole()
        who = people()[0] if person is None else person
        return self._totals.seen(agent, who).total.curve()

    def spent(self, delta: float) -> dict[tuple[str, str], float]:
        """The epsilon spent at delta, for every agent and person in the ledger."""
        delta = inputs.inside_unit(delta=delta)
        return {
            (agent, str(person)): self.curve(agent, person).epsilon(delta)
            for agent, _, person in self.accounts()
        }

    def learnt(self, agent: str, observer: str, delta: float) -> float:
        """The most that a person knows of an agent who may be this observer."""
        delta = inputs.inside_unit(delta=delta)
        return max(
            self.curve(agent, person).epsilon(delta)
            for person in self.people(agent, observer)
        )

    def people(self, agent: str, observer: str) -> list[Person]:
        """Whom the agent's budget counts as one, and who may be this observer."""
        who = word(Observer, observer)
        return [p for p in people_of(self.budget(agent)) if who in p.observers]

    def basis(self, agent: str, *people: Person) -> dict[str, Any]:
        """What the epsilons of an agent rest on: `theorem` and `assumptions`.

        Args:
            agent: Whose.
            people: Against whom; everybody if nobody is named.
        """
        self._store.whole()
        told = [
            row
            for row in self._store.reasons(agent)
            if not people or any(row.observer in one.observers for one in people)
        ]
        theorems = dict.fromkeys(row.theorem or "" for row in told)
        assumed = (one for row in told for one in json.loads(row.assumptions or "[]"))
        each = {(one["status"], one["statement"]): one for one in assumed}
        return {
            "theorem": "; ".join(theorems) or NOTHING_YET,
            "assumptions": list(each.values()),
        }

    def after(
        self,
        left: Callable[[set[int]], Guarantee | None],
        *,
        observer: str,
        agent: str,
        run: str,
        delta: float,
    ) -> float:
        """The epsilon spent once a run is over, against everybody together.

        Args:
            left: From the rounds of the run that are charged already, which count once,
                to what all others cost together; None where none is left.
            observer: Against whom the run is charged.
            agent: Whose data it is.
            run: The run's name.
            delta: At which delta.
        """
        delta = inputs.inside_unit(delta=delta)
        cost = left(self.rounds(agent, word(Observer, observer).value, run))
        total = self._totals.seen(agent, people()[0]).total
        if cost is not None:
            total = total.plus(cost_of(cost.curve))
        return total.curve().epsilon(delta)

    def rounds(self, agent: str, observer: str, run: str) -> set[int]:
        """The rounds of a run that are charged against an observer."""
        self._store.whole()
        mine = self._store.releases(agent)
        return {
            row.round or 0 for row in mine if (row.observer, row.run) == (observer, run)
        }

    def unknown(self, agent: str, *, run: str, round: int, phase: str) -> bool:
        """Whether a letter is charged of which no more is known than that it may be."""
        self._store.whole()
        known = (self._store.release(agent, who, run, round, phase) for who in Observer)
        return any(row is not None and row.content is None for row in known)

    def built_on(self, agent: str, run: str) -> int:
        """The newest checkpoint that a letter of a run was made from; 0 for none."""
        self._store.whole()
        mine = [row for row in self._store.releases(agent) if row.run == run]
        mine += self._store.notes(agent, run)
        return max((row.checkpoint or 0 for row in mine), default=0)

    @property
    def end(self) -> tuple[int, str]:
        """The number of rows, and the digest of the last."""
        return len(self._store.rows), self.head()

    def holds(self, rows: int, head: str) -> bool:
        """Whether it had this end once, and was only added to since."""
        self._store.whole()
        known = self._store.rows
        return 0 < rows <= len(known) and known[rows - 1].digest == head

    def content(self) -> bytes:
        """The lines of all rows, for a backup."""
        return self._store.content()

    def head(self) -> str:
        """The digest of the last row: it vouches for every row before it."""
        self._store.whole()
        return self._store.rows[-1].digest

    def verify(self, head: str | None = None) -> int:
        """Check all rows; returns how many there are.

        Args:
            head: A digest kept elsewhere; it must still be one of the rows.

        Raises:
            BrokenLedger: Naming the first row that does not fit.
        """
        self._store.whole()
        rows = self._store.rows
        if head is not None and all(row.digest != head for row in rows):
            raise BrokenLedger(
                f"{self.path}: no row has the digest {head}; rows after it were cut or "
                "rewritten"
            )
        return len(rows)
