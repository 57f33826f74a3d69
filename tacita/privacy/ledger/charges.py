"""The ledger: what was spent, written before a letter leaves.

One line per release and observer, appended to a file; where it ends is kept in a second
one. `charge` returns only after both are on the disk, so a crash may waste budget but
never under-count it. A charge that would pass the budget is refused, and so is a
second letter under an identity already used; the same letter again costs nothing.
Rows describe releases; what they add up to, per person, is computed (`spending`).

Rows form a hash chain: each holds the digest of the row before it. All rows are checked
when a ledger is opened, and a damaged one is refused, naming the first row that does
not fit. Somebody who may write the files can also rebuild the whole chain: keep
`head()` elsewhere (a log, a colleague) and give it to `verify`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacita import check
from tacita.privacy import inputs
from tacita.privacy.accounting.curve import Curve
from tacita.privacy.accounting.guarantee import Guarantee
from tacita.privacy.ledger.rows import BrokenLedger, BudgetExceeded, Row
from tacita.privacy.ledger.spending import cost_of
from tacita.privacy.ledger.store import Store
from tacita.privacy.ledger.totals import Totals, people_of
from tacita.privacy.scope import Observer, Person, Relation, Unit, people, word


@dataclass(frozen=True)
class Charge:
    """The answer to one charge: the row, and whether it was spent just now."""

    row: Row
    new: bool


class Ledger:
    """A durable account of releases, per agent and person who may see them.

    Observers count as one person unless the budget says that they are separate.

    Args:
        path: The file; made if it is missing (unless `read_only`).
        read_only: Look at a ledger without being able to charge it, broken or not.
        patience: Seconds to wait for another process that is writing.

    >>> import tempfile
    >>> from tacita.privacy.accounting.mechanisms import gaussian_guarantee
    >>> letter = gaussian_guarantee(observer="coordinator", unit="record",
    ...     relation="replace_one", noise_std=5.0, sensitivity=1.0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Ledger(f"{folder}/ledger.db") as ledger:
    ...         ledger.allow(agent="clinic", epsilon=1.0, delta=1e-5)
    ...         first = ledger.charge(letter, agent="clinic", run="r1", round=0,
    ...                               content=b"letter")
    ...         again = ledger.charge(letter, agent="clinic", run="r1", round=0,
    ...                               content=b"letter")
    ...         round(ledger.spent(1e-5)["clinic", "everybody"], 6)
    ...         first[0].new, again[0].new
    0.725522
    (True, False)
    """

    def __init__(
        self, path: str | Path, *, read_only: bool = False, patience: float = 30.0
    ) -> None:
        self._store = Store(path, read_only=read_only, patience=patience)
        self._totals = Totals(self._store)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def path(self) -> Path:
        """Where the ledger is kept."""
        return self._store.path

    def close(self) -> None:
        """Close the file; a closed ledger refuses every charge."""
        self._store.close()

    def allow(
        self,
        *,
        agent: str,
        epsilon: float,
        delta: float,
        unit: str = Unit.RECORD,
        relation: str = Relation.REPLACE_ONE,
        separate: Sequence[Sequence[str]] | None = None,
    ) -> None:
        """Set the budget of an agent; the latest one holds.

        It holds against every person who may see the agent's letters, over all runs.
        Setting the same budget again writes nothing.

        Args:
            agent: Whose data it is.
            epsilon: The most that a person may learn.
            delta: The probability of exceeding it.
            unit: What is protected.
            relation: How neighbouring data differ.
            separate: Groups of observers who never compare notes, such as
                `[["coordinator"], ["neighbour"]]`; whoever is in none of them counts
                with each. By default all observers may be one person.
        """
        people(separate)
        wanted = {
            "agent": inputs.name(agent=agent),
            "epsilon": inputs.positive(epsilon=epsilon),
            "delta": inputs.inside_unit(delta=delta),
            "unit": word(Unit, unit).value,
            "relation": word(Relation, relation).value,
            "separate": None if separate is None else json.dumps(separate),
        }
        with self._store.transaction(self._totals.clear):
            now = self.budget(agent)
            if now is not None and (now.unit, now.relation) != (unit, relation):
                check.refuse(
                    f"agent={agent!r} is accounted per {now.unit}, {now.relation}; use "
                    "another agent name for another unit or relation"
                )
            if now is None or any(getattr(now, k) != v for k, v in wanted.items()):
                self._store.append(kind="budget", **wanted)

    def charge(
        self,
        guarantees: Guarantee | Sequence[Guarantee],
        *,
        agent: str,
        run: str,
        round: int,
        content: bytes | None,
        phase: str = "letter",
        checkpoint: int | None = None,
    ) -> tuple[Charge, ...]:
        """Write one release down; when this returns, the letter may leave.

        Args:
            guarantees: What the letter costs against each observer who will see it:
                all of them are charged, or none.
            agent: Whose data it is.
            run: The run's name; with agent, observer, round and phase the identity of
                the release.
            round: The round, from 0.
            content: The letter's bytes (only their SHA-256 is stored); None for a
                letter that may have left, of which no more is known. That one costs
                nothing where its identity is charged, and counts beyond any budget.
            phase: Which letter of the round.
            checkpoint: Number of the checkpoint that the letter builds on, if any.

        Raises:
            BudgetExceeded: A budget would be passed; nothing was written.
            TacitaError: No budget was set, or another letter was charged under this
                identity: two different noisy letters of one round are two releases.
        """
        several = (guarantees,) if isinstance(guarantees, Guarantee) else guarantees
        if not several:
            check.refuse("expected at least one guarantee to charge, got none")
        if not isinstance(content, bytes | bytearray | memoryview | None):
            check.refuse(f"expected content bytes, got {type(content).__name__}")
        identity = {
            "agent": inputs.name(agent=agent),
            "run": inputs.name(run=run),
            "round": inputs.whole(0, round=round),
            "phase": inputs.name(phase=phase),
        }
        digest = None if content is None else hashlib.sha256(content).hexdigest()
        with self._store.transaction(self._totals.clear):
            return tuple(
                self._charge_one(one, identity, digest, checkpoint) for one in several
            )

    def _charge_one(
        self,
        guarantee: Guarantee,
        identity: dict[str, Any],
        content: str | None,
        checkpoint: int | None,
    ) -> Charge:
        agent, cost = identity["agent"], guarantee.scope.words
        observer = cost.pop("observer")
        price = cost_of(guarantee.curve)
        cost |= {"content": content, **price._asdict()}
        known = self._known(identity, observer)
        if known is not None:
            if None in (content, known.content):
                return Charge(known, new=False)
            if any(getattr(known, field) != value for field, value in cost.items()):
                check.refuse(
                    f"row {known.id} already charges another letter of agent={agent!r} "
                    f"to observer={observer!r} in run={identity['run']!r}, "
                    f"round={identity['round']}; resend that one, or use a new phase"
                )
            return Charge(known, new=False)
        budget = self._totals.budget_for(agent, guarantee.scope)
        watching = [
            self._totals.seen(agent, person)
            for person in people_of(budget)
            if observer in person.observers
        ]
        row = self._store.append(
            kind="release",
            observer=observer,
            theorem=guarantee.theorem,
            checkpoint=checkpoint,
            **identity,
            **cost,
        )
        for seen in watching:
            seen.add(row)
            spent = None if content is None else seen.overspent(price, budget)
            if spent is not None:  # raising rolls the row back
                raise BudgetExceeded(
                    f"agent {agent!r} would spend epsilon={spent:.6g} of "
                    f"{budget.epsilon} (delta={budget.delta}) against {seen.person}, "
                    f"with a letter to the {observer}; stop this agent, or allow it "
                    "more"
                )
        return Charge(row, new=True)

    def _known(self, identity: dict[str, Any], observer: str) -> Row | None:
        agent, *rest = identity.values()
        return self._store.release(agent, observer, *rest)

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
