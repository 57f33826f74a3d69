"""The ledger: what was spent, written before a letter leaves.

One SQLite file (write-ahead log, `synchronous=FULL`), one row per release and
observer. `charge` returns only after the row is on disk, so a crash may waste budget
but never under-count it. A charge that would pass the budget is refused, and so is a
second letter under an identity already used; the same letter again costs nothing.

Rows form a hash chain: each holds the digest of the row before it. `verify` names the
first row that does not fit. Somebody who may write the file can also rebuild the whole
chain: keep `head()` elsewhere (a log, a colleague) and give it to `verify`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tacita import check
from tacita.privacy import inputs
from tacita.privacy.accounting.curve import Curve, compose
from tacita.privacy.accounting.guarantee import Guarantee
from tacita.privacy.ledger.database import BudgetExceeded, Row, Store
from tacita.privacy.ledger.spending import Total, cost_of
from tacita.privacy.scope import Relation, Scope, Unit


@dataclass(frozen=True)
class Charge:
    """The answer to one charge: the row, and whether it was spent just now."""

    row: Row
    new: bool


class Ledger:
    """A durable account of releases, per agent and observer.

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
    ...         ledger.allow(agent="clinic", observer="coordinator", epsilon=1.0,
    ...                      delta=1e-5)
    ...         first = ledger.charge(letter, agent="clinic", run="r1", round=0,
    ...                               content=b"letter")
    ...         again = ledger.charge(letter, agent="clinic", run="r1", round=0,
    ...                               content=b"letter")
    ...         round(ledger.spent(1e-5)["clinic", "coordinator"], 6)
    ...         first[0].new, again[0].new
    0.725522
    (True, False)
    """

    def __init__(
        self, path: str | Path, *, read_only: bool = False, patience: float = 30.0
    ) -> None:
        self._store = Store(path, read_only=read_only, patience=patience)
        self._totals: dict[tuple[str, str], Total] = {}

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
        observer: str,
        epsilon: float,
        delta: float,
        unit: str = Unit.RECORD,
        relation: str = Relation.REPLACE_ONE,
    ) -> None:
        """Set the budget of an agent against an observer; the latest one holds.

        Setting the same budget again writes nothing.
        """
        wanted = {
            "agent": inputs.name(agent=agent),
            "epsilon": inputs.positive(epsilon=epsilon),
            "delta": inputs.inside_unit(delta=delta),
            **Scope(observer, unit, relation).words,
        }
        with self._store.transaction(self._totals.clear):
            now = self.budget(agent, observer)
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
            return tuple(self._charge_one(one, identity, digest) for one in several)

    def _charge_one(
        self, guarantee: Guarantee, identity: dict[str, Any], content: str | None
    ) -> Charge:
        agent, cost = identity["agent"], guarantee.scope.words
        observer = cost.pop("observer")
        cost |= {"content": content, **cost_of(guarantee.curve)}
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
        budget = self._matching_budget(agent, guarantee)
        total = self._total(agent, observer)
        row = self._store.append(
            kind="release",
            observer=observer,
            theorem=guarantee.theorem,
            **identity,
            **cost,
        )
        total.add(row)
        spent = total.curve().epsilon(budget.delta or 0.0)
        # Written so that a spend which is not a number is refused too; raising rolls
        # the row back.
        if content is not None and not spent <= (budget.epsilon or 0.0):
            raise BudgetExceeded(
                f"agent {agent!r} would spend epsilon={spent:.6g} of {budget.epsilon} "
                f"(delta={budget.delta}) against the {observer}; stop this agent, or "
                "allow it more"
            )
        return Charge(row, new=True)

    def _known(self, identity: dict[str, Any], observer: str) -> Row | None:
        where = " AND ".join(f"{field} = ?" for field in identity)
        found = self._store.find(
            f"kind = 'release' AND {where} AND observer = ?",
            (*identity.values(), observer),
        )
        return next(found, None)

    def _matching_budget(self, agent: str, guarantee: Guarantee) -> Row:
        released = guarantee.scope.words
        budget = self.budget(agent, released["observer"])
        if budget is None:
            check.refuse(
                f"no budget for agent={agent!r} against observer="
                f"{released['observer']!r}; set one with Ledger.allow first"
            )
        allowed = {"unit": budget.unit, "relation": budget.relation}
        for field, wanted in allowed.items():
            if wanted != released[field]:
                check.refuse(
                    f"the budget of agent={agent!r} is per {field}={wanted!r}, the "
                    f"release is {released[field]!r}; they do not add up"
                )
        return budget

    def _total(self, agent: str, observer: str) -> Total:
        total = self._totals.setdefault((agent, observer), Total())
        newer = self._store.find(
            "kind = 'release' AND agent = ? AND observer = ? AND id > ? ORDER BY id",
            (agent, observer, total.through),
        )
        for row in newer:
            total.add(row)
        return total

    def budget(self, agent: str, observer: str) -> Row | None:
        """The budget in force, as the row that set it; None if none was set."""
        found = self._store.find(
            "kind = 'budget' AND agent = ? AND observer = ? ORDER BY id DESC LIMIT 1",
            (agent, observer),
        )
        return next(found, None)

    def rows(self) -> list[Row]:
        """All rows in order: the opening row, budgets and releases."""
        return list(self._store.find("TRUE ORDER BY id"))

    def curve(self, agent: str, observer: str) -> Curve:
        """The composed privacy curve of all releases to an observer."""
        return self._total(agent, observer).curve()

    def spent(self, delta: float) -> dict[tuple[str, str], float]:
        """The epsilon spent at delta, for every (agent, observer) in the ledger."""
        delta = inputs.inside_unit(delta=delta)
        pairs = self._store.pairs()
        return {pair: self.curve(*pair).epsilon(delta) for pair in pairs}

    def after(
        self, guarantee: Guarantee, *, agent: str, run: str, times: int, delta: float
    ) -> float:
        """The epsilon spent against the guarantee's observer once a run is over.

        Args:
            guarantee: What every release of the run costs.
            agent: Whose data it is.
            run: The run's name; its releases that are charged already count once.
            times: How many releases the whole run has.
            delta: At which delta.
        """
        observer = guarantee.scope.observer.value
        left = times - self.releases(agent, observer, run)
        total = self.curve(agent, observer)
        if left > 0:
            stored = Total()
            stored.add_cost(**cost_of(guarantee.curve), times=left)
            total = compose(total, stored.curve())
        return total.epsilon(inputs.inside_unit(delta=delta))

    def releases(self, agent: str, observer: str, run: str) -> int:
        """How many releases of a run to an observer are charged."""
        where = "kind = 'release' AND agent = ? AND observer = ? AND run = ?"
        return sum(1 for _ in self._store.find(where, (agent, observer, run)))

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
