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
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tacita import check
from tacita.privacy import inputs
from tacita.privacy.accounting.guarantee import Guarantee
from tacita.privacy.ledger.accounts import Accounts
from tacita.privacy.ledger.rows import BudgetExceeded, Row
from tacita.privacy.ledger.spending import Cost, cost_of
from tacita.privacy.ledger.store import Store
from tacita.privacy.ledger.totals import people_of
from tacita.privacy.scope import Relation, Unit, people, word


@dataclass(frozen=True)
class Charge:
    """The answer to one charge: the row, and whether it was spent just now."""

    row: Row
    new: bool


class Ledger(Accounts):
    """A durable account of releases, per agent and person who may see them.

    Observers count as one person unless the budget says that they are separate.

    Args:
        path: The file; made if it is missing (unless `read_only`).
        read_only: Look at a ledger as it is at this moment, broken or not; others may
            go on writing to it.
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
        super().__init__(Store(path, read_only=read_only, patience=patience))

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

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
        Setting the same budget again writes nothing. Unit and relation may change as
        long as nothing was charged.

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
        with self.together():
            self.require_addable(agent, wanted["unit"], wanted["relation"])
            now = self.budget(agent)
            if now is None or any(getattr(now, k) != v for k, v in wanted.items()):
                self._store.append(kind="budget", **wanted)

    def require_addable(self, agent: str, unit: str, relation: str) -> None:
        """Refuse releases that do not add up with those of the agent that are here."""
        now = self.budget(agent)
        if now is None or (now.unit, now.relation) == (unit, relation):
            return
        if not self._store.releases(agent):
            return  # a budget of which nothing was spent binds nobody to its unit
        check.refuse(
            f"agent={agent!r} is accounted per {now.unit}, {now.relation}; use "
            "another agent name for another unit or relation"
        )

    def together(self) -> AbstractContextManager:
        """All that is charged inside is written at once, or nothing of it."""
        return self._store.transaction(self._totals.clear)

    def afterwards(self, action: Callable[[], None]) -> None:
        """Do something once all that is charged is written, and never if it is not."""
        self._store.afterwards(action)

    def charge(
        self,
        guarantees: Guarantee | Sequence[Guarantee],
        *,
        agent: str,
        run: str,
        round: int,
        content: bytes | None,
        phase: str = "letter",
        whole_round: bool = False,
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
            whole_round: The guarantees are of all letters of the round together, so
                the first of them pays, and those of other phases cost nothing more.
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
        told = {"content": digest, "checkpoint": checkpoint}
        with self.together():
            return tuple(
                self._charge_one(one, identity, told, whole_round) for one in several
            )

    def note(
        self,
        *,
        agent: str,
        run: str,
        round: int,
        phase: str,
        content: bytes,
        checkpoint: int | None = None,
    ) -> bool:
        """Write down, at no cost, a word that must not be given otherwise.

        Args:
            agent: Who gives it.
            run: The run's name; with agent, round and phase the identity of the note.
            round: Which of its kind.
            phase: Its kind.
            content: What it says (only its SHA-256 is stored).
            checkpoint: Number of the checkpoint that it builds on, if any.

        Returns:
            Whether it is news; the same word again writes nothing.

        Raises:
            TacitaError: Another word was given before.
        """
        digest = hashlib.sha256(content).hexdigest()
        identity = {"agent": agent, "run": run, "round": round, "phase": phase}
        with self.together():
            known = self._store.note(agent, None, run, round, phase)
            if known is None:
                told = {"content": digest, "checkpoint": checkpoint}
                self._store.append(kind="note", **identity, **told)
                return True
        if known.content != digest:
            check.refuse(
                f"row {known.id} holds another {phase} {round} of agent={agent!r} in "
                f"run={run!r}, which stands"
            )
        return False

    def _charge_one(
        self,
        guarantee: Guarantee,
        identity: dict[str, Any],
        letter: dict[str, Any],
        whole_round: bool,
    ) -> Charge:
        agent, cost = identity["agent"], guarantee.scope.words
        observer = cost.pop("observer")
        price, content = cost_of(guarantee.curve), letter["content"]
        if whole_round and self._paid(identity, observer):
            price = Cost()
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
            **self._reasons(agent, observer, guarantee),
            checkpoint=letter["checkpoint"],
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

    def _reasons(
        self, agent: str, observer: str, guarantee: Guarantee
    ) -> dict[str, str | None]:
        """Theorem and assumptions; the latter once, for they are long."""
        assumed = json.dumps([asdict(one) for one in guarantee.assumptions])
        mine = (observer, guarantee.theorem, assumed)
        told = (
            (row.observer, row.theorem, row.assumptions)
            for row in self._store.reasons(agent)
        )
        known = mine in told
        return {
            "theorem": guarantee.theorem,
            "assumptions": None if known else assumed,
        }

    def _known(self, identity: dict[str, Any], observer: str) -> Row | None:
        agent, *rest = identity.values()
        return self._store.release(agent, observer, *rest)

    def _paid(self, identity: dict[str, Any], observer: str) -> bool:
        """Whether another letter of the round was written down before this one."""
        agent, run, number, phase = identity.values()
        first = self._store.first(agent, observer, run, number)
        return first is not None and first.phase != phase
