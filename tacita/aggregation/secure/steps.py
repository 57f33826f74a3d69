"""What a party does next: first what it writes down, then what it sends.

The machines of this package know no disk and no network. Whatever they are told, they
return a `Step`. Its writes must be on the disk, in their order, before `release` hands
out its letters. What was written is all that a machine remembers: made anew of it after
a crash, anywhere in between, it is the same machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tacita.check import refuse


class Row(NamedTuple):
    """A ledger row: of this kind and number there is one, for ever.

    Attributes:
        kind: "answer" costs what an answer of this exchange costs; "roster" and "set"
            cost nothing, and are there so that an old checkpoint cannot forget them.
        number: The exchange, or the attempt of a roster.
        digest: What was answered, accepted or agreed to. The same again is no news;
            another one must be refused, and the step with it.
    """

    kind: str
    number: int
    digest: bytes


class Keep(NamedTuple):
    """Write a file whole; it takes the place of an older one of that name."""

    name: str
    content: bytes


class Drop(NamedTuple):
    """Delete a file, so that nobody can ask for it later."""

    name: str


Write = Row | Keep | Drop


class Answer(NamedTuple):
    """An agent's masked letter.

    Attributes:
        context: What it was masked under: a coordinator that has forgotten what it
            asked must not take it for the answer to something else.
        words: Unsigned words.
        opened: What an `opening` of the whole roster would give, where that is the only
            set which can be opened; else nothing.
    """

    context: bytes
    words: np.ndarray
    opened: tuple[bytes, ...] = ()


class Send(NamedTuple):
    """A letter to a party.

    Attributes:
        to: Its name.
        kind: One of `letters.KINDS`, or "answer".
        number: The exchange that it belongs to, or the attempt of a set-up letter.
        content: Its bytes, or an answer.
    """

    to: str
    kind: str
    number: int
    content: bytes | Answer


@dataclass(frozen=True)
class Sum:
    """An exchange came to its end.

    Attributes:
        exchange: Which.
        chosen: The agents whose letters are in it.
        total: The sum of their letters, as unsigned words.
        false_holders: Agents that gave shares which did not fit.
    """

    exchange: int
    chosen: tuple[str, ...]
    total: np.ndarray
    false_holders: tuple[str, ...] = ()


@dataclass(frozen=True)
class Void:
    """An exchange came to nothing. What agents spent on it is spent.

    Attributes:
        exchange: Which.
        reason: In words.
        liars: Agents that dealt shares which do not fit what they published.
    """

    exchange: int
    reason: str
    liars: tuple[str, ...] = ()


Outcome = Sum | Void


@dataclass(frozen=True)
class Step:
    """What to write, and what to send once that is written.

    Attributes:
        writes: To be written in this order.
        sends: Letters; take them from `release`.
        outcome: How an exchange ended, if it did.
    """

    writes: tuple[Write, ...] = ()
    sends: tuple[Send, ...] = ()
    outcome: Outcome | None = None


class Memory:
    """What a party has written down; a machine remembers nothing else.

    Args:
        rows: Its ledger rows of this run.
        kept: Its files of this run.
    """

    def __init__(
        self, rows: Iterable[Row] = (), kept: Mapping[str, bytes] | None = None
    ) -> None:
        self.rows: dict[tuple[str, int], bytes] = {}
        self.kept = dict(kept or {})
        self._largest: dict[str, int] = {}
        self.apply(tuple(rows))

    def note(self, row: Row) -> list[Row]:
        """The row, if it is news; another one in its place is refused."""
        known = self.rows.get((row.kind, row.number))
        if known is not None and known != row.digest:
            refuse(f"another {row.kind} {row.number} is in the ledger already")
        return [] if known else [row]

    def largest(self, kind: str) -> int:
        """The largest number of a row of this kind; -1 if there is none."""
        return self._largest.get(kind, -1)

    def apply(self, writes: Sequence[Write]) -> None:
        """Remember what is on the disk now."""
        for write in writes:
            if isinstance(write, Row):
                self.note(write)
                self.rows[write.kind, write.number] = write.digest
                self._largest[write.kind] = max(self.largest(write.kind), write.number)
            elif isinstance(write, Keep):
                self.kept[write.name] = write.content
            else:
                self.kept.pop(write.name, None)


class Machine:
    """What agents and coordinator have in common: a step is issued, then released.

    Args:
        memory: What the party has written down.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._issued: Step | None = None

    def _issue(self, step: Step) -> Step:
        self._issued = step
        return step

    def release(self, step: Step) -> tuple[Send, ...]:
        """The letters of a step whose writes are on the disk.

        A step was right when it was issued: one that another has overtaken is refused.
        """
        if step.writes:
            if step is not self._issued:
                refuse("a step was overtaken by another; release one before the next")
            self._memory.apply(step.writes)
            self._refresh()
        return step.sends

    def _refresh(self) -> None:
        """Take in what is on the disk now."""
        raise NotImplementedError
