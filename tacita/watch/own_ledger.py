"""What an agent's ledger says, for its own live page."""

from __future__ import annotations

from pathlib import Path

from tacita.privacy import Ledger
from tacita.privacy.ledger import BrokenLedger
from tacita.privacy.ledger.end import path_of
from tacita.report.numbers import real
from tacita.trace.epsilon_words import assumed, short
from tacita.watch.kept import Kept
from tacita.watch.view import Table

#: Where no budget says at which delta epsilons are told.
_DELTA = 1e-5
#: Seconds to wait for an agent that is writing.
_PATIENCE = 2.0
_COLUMNS = (
    "rows of",
    "against",
    "unit",
    "epsilon spent",
    "allowed",
    "left",
    "delta",
    "releases",
    "theorem",
    "it holds if",
)
_NOTE = (
    "Over all runs of these rows, as the ledger says. Against everybody: all observers "
    "count as one person unless the budget says who is separate."
)


class Budget:
    """The ledger in an agent's folder, read without holding its program up.

    Args:
        path: The ledger's file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept = Kept([path, path_of(path)], self._read)

    def table(self) -> Table | None:
        """What is spent, allowed and left; None where there is no ledger."""
        return self._kept()

    @property
    def fault(self) -> str | None:
        """Why the ledger cannot be read; None if all is well or there is none."""
        return self._kept.fault

    def _read(self) -> Table | None:
        if not self._path.exists():
            return None
        try:
            return self._opened()
        except BrokenLedger:
            # Its files may have been changed between two looks at them: only what is
            # broken twice is told.
            return self._opened()

    def _opened(self) -> Table:
        with Ledger(self._path, read_only=True, patience=_PATIENCE) as ledger:
            rows = list(_rows(ledger))
        return Table("Budget", _COLUMNS, rows, _NOTE)


def _rows(ledger: Ledger) -> list[tuple[str, ...]]:
    releases = [row for row in ledger.rows() if row.kind == "release"]
    found = []
    for agent, budget, person in ledger.accounts():
        mine = [
            row
            for row in releases
            if row.agent == agent and row.observer in person.observers
        ]
        about = budget or mine[0]
        delta = (budget.delta if budget else None) or _DELTA
        spent = ledger.curve(agent, person).epsilon(delta)
        allowed = budget.epsilon if budget else None
        basis = ledger.basis(agent, person)
        found.append(
            (
                agent,
                str(person),
                f"{about.unit} ({about.relation})".replace("_", " "),
                real(spent),
                "no limit" if allowed is None else real(allowed),
                "-" if allowed is None else real(max(0.0, allowed - spent)),
                short(delta),
                str(len(mine)),
                basis["theorem"],
                assumed(basis["assumptions"]) or "-",
            )
        )
    return found
