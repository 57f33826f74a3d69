"""The rows of a ledger, found by what they are about."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from tacita.privacy.ledger.rows import Row


class RowIndex:
    """Rows in order. Abstract: a store derives from it, which keeps them in a file."""

    def clear(self) -> None:
        """Forget all rows."""
        self.rows: list[Row] = []
        self._releases: dict[tuple, Row] = {}
        self._firsts: dict[tuple, Row] = {}
        self._notes: dict[tuple, Row] = {}
        self._by_agent: dict[str, list[Row]] = defaultdict(list)
        self._reasons: dict[str, list[Row]] = defaultdict(list)
        self._budgets: dict[str, list[Row]] = defaultdict(list)

    def add(self, row: Row) -> None:
        """Add a row behind the others."""
        self.rows.append(row)
        if row.kind == "budget":
            self._budgets[row.agent or ""].append(row)
        elif row.kind == "release":
            self._releases[row.identity] = row
            self._firsts.setdefault(row.identity[:-1], row)
            self._by_agent[row.agent or ""].append(row)
            if row.assumptions is not None:
                self._reasons[row.agent or ""].append(row)
        elif row.kind == "note":
            self._notes[row.identity] = row

    def take_back(self, before: int) -> None:
        """Forget all rows but so many."""
        for row in reversed(self.rows[before:]):
            if row.kind == "budget":
                self._budgets[row.agent or ""].pop()
            elif row.kind == "release":
                del self._releases[row.identity]
                if self._firsts[row.identity[:-1]] is row:
                    del self._firsts[row.identity[:-1]]
                self._by_agent[row.agent or ""].pop()
                if row.assumptions is not None:
                    self._reasons[row.agent or ""].pop()
            elif row.kind == "note":
                del self._notes[row.identity]
        del self.rows[before:]

    def release(self, *identity: Any) -> Row | None:
        """The release of (agent, observer, run, round, phase)."""
        return self._releases.get(identity)

    def note(self, *identity: Any) -> Row | None:
        """The note of (agent, None, run, round, phase)."""
        return self._notes.get(identity)

    def notes(self, agent: str, run: str) -> list[Row]:
        """All notes of an agent in a run."""
        mine = self._notes.values()
        return [row for row in mine if (row.agent, row.run) == (agent, run)]

    def first(self, *of_round: Any) -> Row | None:
        """The first release of (agent, observer, run, round)."""
        return self._firsts.get(of_round)

    def releases(self, agent: str, after: int = 0) -> Sequence[Row]:
        """Releases of an agent, those after a row only."""
        mine = self._by_agent.get(agent, [])
        return mine[bisect_right(mine, after, key=lambda row: row.id) :]

    def reasons(self, agent: str) -> Sequence[Row]:
        """Releases of an agent that say under which assumptions they were charged."""
        return self._reasons.get(agent, [])

    def budget(self, agent: str) -> Row | None:
        """The budget in force."""
        set_so_far = self._budgets.get(agent)
        return set_so_far[-1] if set_so_far else None

    def agents(self) -> list[str]:
        """Every agent with a budget or a release."""
        return sorted(a for a in {*self._budgets, *self._by_agent} if self._knows(a))

    def _knows(self, agent: str) -> bool:
        return bool(self._budgets.get(agent) or self._by_agent.get(agent))
