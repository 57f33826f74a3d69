"""The ledger: what was spent, written before a letter leaves.

One SQLite file (write-ahead log, `synchronous=FULL`), one row per release and
observer. `charge` returns only after the row is on disk, so a crash may waste budget
but never under-count it. A charge that would pass the budget is refused, and so is a
second letter under an identity already used; the same letter again costs nothing.
Rows describe releases; what they add up to, per person, is computed (`spending`).

Rows form a hash chain: each holds the digest of the row before it. `verify` names the
first row that does not fit. Somebody who may write the file can also rebuild the whole
chain: keep `head()` elsewhere (a log, a colleague) and give it to `verify`.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacita import check
from tacita.privacy import inputs
from tacita.privacy.accounting.curve import Curve
from tacita.privacy.accounting.guarantee import Guarantee
from tacita.privacy.ledger.database import BudgetExceeded, Row, Store
from tacita.privacy.ledger.spending import Cost, cost_of
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
        content: bytes,
        phase: str = "letter",
        whole_round: bool = False,
    ) -> tuple[Charge, ...]:
        """Write one release down; when this returns, the letter may leave.

        Args:
            guarantees: What the letter costs against each observer who will see it:
                all of them are charged, or none.
            agent: Whose data it is.
            run: The run's name; with agent, observer, round and phase the identity of
                the release.
            round: The round, from 0.
            content: The letter's bytes (only their SHA-256 is stored).
            phase: Which letter of the round.
            whole_round: The guarantees are of all letters of the round together, so
                the first of them pays, and those of other phases cost nothing more.

        Raises:
            BudgetExceeded: A budget would be passed; nothing was written.
            TacitaError: No budget was set, or another letter was charged under this
                identity: two different noisy letters of one round are two releases.
        """
        several = (guarantees,) if isinstance(guarantees, Guarantee) else guarantees
        if not several:
            check.refuse("expected at least one guarantee to charge, got none")
        if not isinstance(content, bytes | bytearray | memoryview):
            check.refuse(f"expected content bytes, got {type(content).__name__}")
        identity = {
            "agent": inputs.name(agent=agent),
            "run": inputs.name(run=run),
            "round": inputs.whole(0, round=round),
            "phase": inputs.name(phase=phase),
        }
        digest = hashlib.sha256(content).hexdigest()
        with self._store.transaction(self._totals.clear):
            return tuple(
                self._charge_one(one, identity, digest, whole_round) for one in several
            )

    def _charge_one(
        self,
        guarantee: Guarantee,
        identity: dict[str, Any],
        content: str,
        whole_round: bool,
    ) -> Charge:
        agent, cost = identity["agent"], guarantee.scope.words
        observer = cost.pop("observer")
        price = cost_of(guarantee.curve)
        if whole_round and self._paid(identity, observer):
            price = Cost()
        cost |= {"content": content, **price._asdict()}
        known = self._known(identity, observer)
        if known is not None:
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
            **identity,
            **cost,
        )
        for seen in watching:
            seen.add(row)
            spent = seen.overspent(price, budget)
            if spent is not None:  # raising rolls the row back
                raise BudgetExceeded(
                    f"agent {agent!r} would spend epsilon={spent:.6g} of "
                    f"{budget.epsilon} (delta={budget.delta}) against {seen.person}, "
                    f"with a letter to the {observer}; stop this agent, or allow it "
                    "more"
                )
        return Charge(row, new=True)

    def _known(self, identity: dict[str, Any], observer: str) -> Row | None:
        where = " AND ".join(f"{field} = ?" for field in identity)
        found = self._store.find(
            f"kind = 'release' AND {where} AND observer = ?",
            (*identity.values(), observer),
        )
        return next(found, None)

    def _paid(self, identity: dict[str, Any], observer: str) -> bool:
        """Whether another letter of the round was written down before this one."""
        where = "kind = 'release' AND agent = ? AND run = ? AND round = ?"
        who = (identity["agent"], identity["run"], identity["round"])
        found = self._store.find(
            f"{where} AND observer = ? ORDER BY id", (*who, observer)
        )
        first = next(found, None)
        return first is not None and first.phase != identity["phase"]

    def budget(self, agent: str) -> Row | None:
        """The budget in force, as the row that set it; None if none was set."""
        return self._totals.budget(agent)

    def rows(self) -> list[Row]:
        """All rows in order: the opening row, budgets and releases."""
        return list(self._store.find("TRUE ORDER BY id"))

    def accounts(self) -> Iterator[tuple[str, Row | None, Person]]:
        """Every agent with its budget, and each person whom that counts as one."""
        for agent in self._store.agents():
            budget = self.budget(agent)
            for person in people_of(budget):
                yield agent, budget, person

    def curve(self, agent: str, person: Person | None = None) -> Curve:
        """The composed privacy curve of all that a person saw; default: everybody."""
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
        rounds: Mapping[int, Guarantee],
        *,
        agent: str,
        run: str,
        delta: float,
        separate: Sequence[Sequence[str]] | None = None,
    ) -> float:
        """The epsilon spent once a run is over, against whoever sees its releases.

        Args:
            rounds: What every round of the run costs, against one observer.
            agent: Whose data it is.
            run: The run's name; its rounds that are charged already count once.
            delta: At which delta.
            separate: Observers who never compare notes, as in `allow`.
        """
        delta = inputs.inside_unit(delta=delta)
        (observer,) = {one.scope.observer for one in rounds.values()}
        charged = self.rounds(agent, observer.value, run)
        left = Counter(one.curve for k, one in rounds.items() if k not in charged)
        found = []
        for person in people(separate):
            if observer in person.observers:
                total = self._totals.seen(agent, person).total
                for curve, times in left.items():
                    total = total.plus(cost_of(curve), times)
                found.append(total.curve().epsilon(delta))
        return max(found)

    def rounds(self, agent: str, observer: str, run: str) -> set[int]:
        """The rounds of a run that are charged against an observer."""
        where = "kind = 'release' AND agent = ? AND observer = ? AND run = ?"
        found = self._store.find(where, (agent, observer, run))
        return {row.round for row in found if row.round is not None}

    def head(self) -> str:
        """The digest of the last row: it vouches for every row before it."""
        return next(self._store.find("TRUE ORDER BY id DESC LIMIT 1")).digest

    def verify(self, head: str | None = None) -> int:
        """Check the chain; returns the number of rows.

        Args:
            head: A digest kept elsewhere; it must still be one of the rows.

        Raises:
            BrokenLedger: Naming the first row that does not fit.
        """
        return self._store.verify(head)
