"""The privacy report of a run, as plain data: what it says, not how it is computed.

One row per observer and unit. An epsilon cannot be put into a row without its theorem
and assumptions; a row without an epsilon says why there is none. `tacita.privacy`
fills it in.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tacita import check, notebook

NONE = "-"
#: Above this an epsilon says little: e^20 is 5e8.
_MOST_USEFUL = 20.0
NOT_USEFUL = "no useful bound"
COLUMNS = (
    "observer",
    "unit",
    "epsilon",
    "theorem",
    "assumptions",
    "paper's claim",
    "audited",
)


@dataclass(frozen=True, kw_only=True)
class PrivacyRow:
    """What one observer can learn of one unit, at most.

    Attributes:
        observer: Who looks.
        unit: What is protected: a `record` or a `client`.
        relation: How neighbouring data differ.
        delta: The delta of every epsilon in this row.
        epsilon: The bound for the agent that spent most, or None if there is none.
        theorem: Why it holds; without an epsilon, why there is none.
        assumptions: Statements, each with its status: `enforced`, `believed`, or
            `violated` where the program knows that it does not hold.
        agent: The agent that spent most.
        mu: The bound as Gaussian differential privacy, where it is Gaussian.
        paper_claim: `source`, `status`, `reason`, `claimed_epsilon` of what a paper
            prints; never a guarantee. The status is `refuted`, `unproven`, or
            `implied` where the guarantee is smaller still.
        audited: `lower_bound`, `confidence`, `runs`, `refuted` of an audit.
    """

    observer: str
    unit: str
    relation: str
    delta: float
    epsilon: float | None
    theorem: str
    assumptions: tuple[dict[str, str], ...] = ()
    agent: str | None = None
    mu: float | None = None
    paper_claim: dict[str, Any] | None = None
    audited: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        for name in ("observer", "unit", "relation", "theorem"):
            if not getattr(self, name):
                check.refuse(f"a row of a privacy report needs its {name}")
        if self.epsilon is not None:
            check.not_negative(epsilon=self.epsilon)
            if not self.assumptions:
                check.refuse("an epsilon needs the assumptions it holds under")


@dataclass(frozen=True, kw_only=True)
class PrivacyReport:
    """All rows of a run, and how epsilon grew over its rounds.

    Attributes:
        algorithm: Its name.
        rounds: Rounds done, or planned.
        planned: Whether it speaks of a plan rather than of a run.
        rows: One per observer and unit.
        promise: The budget that the noise was set for, if it was: `epsilon`, `delta`,
            `observer`, `unit`, `relation`.
        noise: Where the noise of a run came from, in words; None of a plan.
        metrics: Whom its losses and other metrics are for, in words; None of a plan.
        curves: `observer`, `unit`, `relation`, `delta`, `theorem`, `budget` (or None),
            `rounds` (a list), `agents` (ids, the largest spenders first) and
            `epsilon`, one list per agent.
    """

    algorithm: str
    rounds: int
    planned: bool = False
    rows: tuple[PrivacyRow, ...]
    promise: dict[str, Any] | None = None
    noise: str | None = None
    metrics: str | None = None
    curves: dict[str, Any] | None = None

    def row(self, observer: str, unit: str = "record") -> PrivacyRow:
        """The row of an observer and a unit."""
        for row in self.rows:
            if (row.observer, row.unit) == (observer, unit):
                return row
        known = ", ".join(f"{row.observer}/{row.unit}" for row in self.rows)
        check.refuse(f"no row for {observer}/{unit}; there are {known}")

    def with_audit(self, observer: str, unit: str, audited: dict) -> PrivacyReport:
        """The same report with the result of an audit in one row."""
        target = self.row(observer, unit)
        rows = tuple(
            dataclasses.replace(row, audited=audited) if row is target else row
            for row in self.rows
        )
        return dataclasses.replace(self, rows=rows)

    def content(self) -> bytes:
        """The file `privacy.json`, to the byte: what is kept, and what is signed."""
        return json.dumps(self.as_dict(), indent=1, allow_nan=False).encode()

    def as_dict(self) -> dict[str, Any]:
        """Plain data, the content of `privacy.json`."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> PrivacyReport:
        """Read `privacy.json` back."""
        try:
            rows = tuple(
                PrivacyRow(**{**row, "assumptions": tuple(row["assumptions"])})
                for row in data["rows"]
            )
            return cls(**{**data, "rows": rows})
        except (KeyError, TypeError) as error:
            check.refuse(f"not a privacy report: {error}")

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Headings and cells; T1, E1, B1 refer to `notes`."""
        marks = self._marks()
        return COLUMNS, [_cells(row, marks) for row in self.rows]

    def notes(self) -> list[tuple[str, str]]:
        """The theorems and assumptions that the table refers to, each once."""
        marked = [(mark, words) for words, mark in self._marks().items()]
        for name in ("noise", "metrics"):
            if (words := getattr(self, name)) is not None:
                marked.append((name, words))
        return marked

    def _marks(self) -> dict[str, str]:
        """A mark for every theorem (T) and assumption, by its status (E, B, V)."""
        marks = _numbered("T", (row.theorem for row in self.rows))
        for status in ("enforced", "believed", "violated"):
            told = self._assumed(status)
            marks |= _numbered(status[0].upper(), told, f"{status}: ")
        return marks

    def violated(self) -> list[str]:
        """Assumptions that are known not to hold, each once: no epsilon is proved."""
        return list(dict.fromkeys(self._assumed("violated")))

    def _assumed(self, status: str) -> Iterator[str]:
        for row in self.rows:
            for one in row.assumptions:
                if one["status"] == status:
                    yield one["statement"]

    def _repr_html_(self) -> str:
        columns, cells = self.table()
        rows = [
            (observer, f"{unit} ({row.relation})", *rest)
            for row, (observer, unit, *rest) in zip(self.rows, cells, strict=True)
        ]
        told, *_ = str(self).split("\n")
        promised = [("promise", self._promised())] if self.promise else []
        return notebook.table(told, rows, columns) + notebook.notes(
            [*promised, *self.notes()]
        )

    def _promised(self) -> str:
        return (
            "noise set for epsilon = {epsilon:g} at delta = {delta:g} against the "
            "{observer} ({unit}, {relation})".format(**(self.promise or {}))
        )

    def __str__(self) -> str:
        from tacita.trace.verdict import verdict  # which stands on this file

        columns, rows = self.table()
        lines = [columns, *rows]
        widths = [max(len(line[k]) for line in lines) for k in range(len(columns))]
        verb = "planned for" if self.planned else "after"
        deltas = sorted({row.delta for row in self.rows})
        told = [
            f"privacy of {self.algorithm} {verb} {self.rounds} rounds, delta = "
            + ", ".join(f"{delta:g}" for delta in deltas)
        ]
        told.append(verdict(self).sentence)
        if self.promise:
            told.append(self._promised())
        told += [
            "  ".join(word.ljust(w) for word, w in zip(line, widths, strict=True))
            for line in lines
        ]
        told += [f"{mark}: {words}" for mark, words in self.notes()]
        return "\n".join(line.rstrip() for line in told)


def _numbered(letter: str, items: Iterable[str], prefix: str = "") -> dict[str, str]:
    distinct = dict.fromkeys(items)
    return {f"{prefix}{one}": f"{letter}{k}" for k, one in enumerate(distinct, 1)}


def _cells(row: PrivacyRow, marks: dict[str, str]) -> tuple[str, ...]:
    needs = [marks[f"{one['status']}: {one['statement']}"] for one in row.assumptions]
    claim, audited = row.paper_claim, row.audited
    found = NONE
    if audited:
        found = f">= {audited['lower_bound']:.3g} at {audited['confidence']:.0%}"
        found += ", refuted" if audited.get("refuted") else ""
    return (
        row.observer,
        row.unit,
        in_words(row.epsilon),
        marks[row.theorem],
        " ".join(needs) or NONE,
        f"{claim['claimed_epsilon']:.4g}, {claim['status']}" if claim else NONE,
        found,
    )


def beyond_use(epsilon: float | None) -> bool:
    """Whether an epsilon is so large that it bounds nothing worth the name."""
    return epsilon is not None and epsilon > _MOST_USEFUL


def in_words(epsilon: float | None) -> str:
    """An epsilon for people; one beyond use is told in brackets only.

    >>> in_words(1.5), in_words(35.25), in_words(None)
    ('1.5', 'no useful bound (35.25)', 'no bound')
    """
    if epsilon is None:
        return "no bound"
    return f"{NOT_USEFUL} ({epsilon:.4g})" if beyond_use(epsilon) else f"{epsilon:.4g}"
