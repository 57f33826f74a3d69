"""What the live page shows, as plain data: the page's script knows these kinds only."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tacita.check import printable

#: Characters of one text on the page, at most.
_MOST_WORDS = 2_000


@dataclass(frozen=True, kw_only=True)
class Head:
    """The top of the page.

    Attributes:
        title: What is watched.
        role: What that is: a simulation, an agent, ...
        lede: A sentence about it.
        state: How it is, in a word or two.
        tone: "good", "done", "wait" or "bad".
        done: Rounds done.
        of: Rounds in all; 0 where there are none.
        warnings: What a person should know first.
    """

    title: str
    role: str
    lede: str = ""
    state: str
    tone: str
    done: int = 0
    of: int = 0
    warnings: Sequence[str] = ()


@dataclass(frozen=True)
class Cards:
    """The few numbers that a reader looks for first."""

    pairs: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Table:
    """A table; its first column names the rows."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


@dataclass(frozen=True)
class Pairs:
    """Names and what they stand for."""

    title: str
    pairs: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Line:
    """One line of a curve; a value that cannot be drawn is a gap."""

    label: str
    values: Sequence[float]


@dataclass(frozen=True)
class Curve:
    """Lines over rounds; `from_zero` draws nothing as the paper's lower edge."""

    name: str
    rounds: Sequence[int]
    lines: Sequence[Line]
    log: bool = False
    from_zero: bool = False


@dataclass(frozen=True)
class Curves:
    """Several curves side by side."""

    title: str
    curves: Sequence[Curve]
    note: str = ""


@dataclass(frozen=True)
class Waiting:
    """A run that was offered.

    Attributes:
        run: Its whole digest.
        name: What it is called.
        decision: "waits", "accepted" or "declined".
        terms: What it would release, and what that rests on, in one sentence.
        facts: The same in parts, and what it asks for.
    """

    run: str
    name: str
    decision: str
    terms: str
    facts: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Offers:
    """Runs that were offered, with buttons where they wait for a person."""

    title: str
    offers: Sequence[Waiting]


Part = Head | Cards | Table | Pairs | Curves | Offers
#: Parts by name, in the order in which the page shows them.
View = Mapping[str, Part]


class Source(Protocol):
    """Who looks at a folder."""

    def look(self) -> View:
        """What is there now; cheap, and without disturbing whoever writes there."""
        ...


class Desk(Source, Protocol):
    """A source where a person decides on offers."""

    def decide(self, run: str, accept: bool) -> str:
        """Write a person's word on a run down, named by its whole digest; one line."""
        ...


def plain(value: Any) -> Any:
    """Data for JSON: others' words without marks that control, numbers finite or None.

    >>> plain(Table("t", ["a"], [["x" + chr(8238)]]))["rows"], plain(float("nan"))
    ([['x?']], None)
    """
    if isinstance(value, str):
        # Nearly all words are: asking costs less than cleaning.
        if value.isprintable() and len(value) <= _MOST_WORDS:
            return value
        return printable(value, _MOST_WORDS)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, int | None):
        return value
    fields = {name: plain(one) for name, one in vars(value).items()}
    return {"kind": type(value).__name__.lower(), **fields}
