"""What a ledger tells: budgets, what was spent against whom, whether it is whole.

Every answer comes from rows that were checked when they were read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tacita.privacy import inputs
from tacita.privacy.accounting.curve import Curve
from tacita.privacy.accounting.guarantee import Guarantee
from tacita.privacy.ledger.rows import BrokenLedger, Row
from tacita.privacy.ledger.spending import cost_of
from tacita.privacy.ledger.store import Store
from tacita.privacy.ledger.totals import Totals, people_of
from tacita.privacy.scope import Observer, Person, people, word


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
        delta, who = inputs.inside_unit(delta=delta), word(Observer, observer)
        return max(
            self.curve(agent, person).epsilon(delta)
            for person in people_of(self.budget(agent))
            if who in person.observers
        )

    def after(
        self,
        guarantee: Guarantee,
        *,
        agent: str,
        run: str,
        times: int,
        delta: float,
        separate: Sequence[Sequence[str]] | None = None,
    ) -> float:
        """The epsilon spent once a run is over, against whoever sees its releases.

        Args:
            guarantee: What every release of the run costs.
            agent: Whose data it is.
            run: The run's name; its releases that are charged already count once.
            times: How many releases the whole run has.
            delta: At which delta.
            separate: Observers who never compare notes, as in `allow`.
        """
        delta = inputs.inside_unit(delta=delta)
        observer = guarantee.scope.observer
        left = max(times - self.releases(agent, observer.value, run), 0)
        price = cost_of(guarantee.curve)
        return max(
            self._totals.seen(agent, person)
            .total.plus(price, left)
            .curve()
            .epsilon(delta)
            for person in people(separate)
            if observer in person.observers
        )

    def releases(self, agent: str, observer: str, run: str) -> int:
        """How many releases of a run to an observer are charged."""
        self._store.whole()
        mine = self._store.releases(agent)
        return sum(1 for row in mine if (row.observer, row.run) == (observer, run))

    def built_on(self, agent: str, run: str) -> int:
        """The newest checkpoint that a letter of a run was made from; 0 for none."""
        self._store.whole()
        mine = [row for row in self._store.releases(agent) if row.run == run]
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
