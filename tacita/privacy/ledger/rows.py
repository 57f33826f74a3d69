"""The rows of a ledger: their columns, their digests, and the check of the chain."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from dataclasses import astuple, dataclass, fields, replace
from typing import Any

from tacita.check import TacitaError


class BudgetExceeded(TacitaError):
    """A release would pass the budget. Nothing was written; the letter must stay."""


class BrokenLedger(TacitaError):
    """The ledger was changed outside Tacita, or cannot be read or written."""


GENESIS = "0" * 64


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row. `kind` is `ledger` (the first), `budget` or `release`.

    The loss of a release is `mu_squared` (Gaussian part) and `rdp` (JSON: divergences
    at `curve.ORDERS`, then the pure epsilon); `content` is the letter's SHA-256.
    """

    id: int
    kind: str
    agent: str | None = None
    observer: str | None = None
    run: str | None = None
    round: int | None = None
    phase: str | None = None
    unit: str | None = None
    relation: str | None = None
    theorem: str | None = None
    epsilon: float | None = None
    delta: float | None = None
    mu_squared: float | None = None
    rdp: str | None = None
    content: str | None = None
    time: str = ""
    previous: str = ""
    digest: str = ""

    @classmethod
    def of(cls, values: tuple) -> Row:
        """A row from the values of `SELECT`."""
        return cls(**dict(zip(COLUMNS, values, strict=True)))

    def values(self) -> tuple:
        """The values for `INSERT`."""
        return astuple(self)


COLUMNS = tuple(field.name for field in fields(Row))
SELECT = f"SELECT {', '.join(COLUMNS)} FROM entry"
INSERT = (
    f"INSERT INTO entry ({', '.join(COLUMNS)}) "
    f"VALUES ({', '.join('?' for _ in COLUMNS)})"
)

# AUTOINCREMENT remembers the highest id ever given, so that cutting off the last rows
# shows; the unique index makes a double charge impossible, whatever the program does.
CREATE = (
    """
    CREATE TABLE IF NOT EXISTS entry (
        id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL,
        agent TEXT, observer TEXT, run TEXT, round INTEGER, phase TEXT,
        unit TEXT, relation TEXT, theorem TEXT, epsilon REAL, delta REAL,
        mu_squared REAL, rdp TEXT, content TEXT,
        time TEXT NOT NULL, previous TEXT NOT NULL, digest TEXT NOT NULL
    )
    """,
    """
    CREATE UNIQUE INDEX IF NOT EXISTS one_charge_per_release
    ON entry (agent, observer, run, round, phase) WHERE kind = 'release'
    """,
)


def _digest(row: Row) -> str:
    body = {name: getattr(row, name) for name in COLUMNS if name != "digest"}
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def seal(row: Row) -> Row:
    """The row with its digest, over all its columns and the digest before it."""
    return replace(row, digest=_digest(row))


def first_broken(database: sqlite3.Connection, head: str | None) -> str | None:
    """What is wrong with the first row that breaks the chain, or None."""
    previous, seen, number = GENESIS, head is None, 0
    try:
        for number, values in enumerate(database.execute(f"{SELECT} ORDER BY id"), 1):
            row = Row.of(values)
            if row.id != number:
                return f"row {number} is missing (found row {row.id})"
            if row.previous != previous:
                return f"row {number} does not follow the row before it"
            if row.digest != _digest(row):
                return f"row {number} was changed"
            previous = row.digest
            seen = seen or row.digest == head
        given = _highest_id(database)
    except sqlite3.DatabaseError as error:
        return f"row {number + 1} cannot be read: {error}"
    if given > number:
        return f"row {number + 1} is missing (rows up to {given} were written)"
    if number == 0:
        return "row 1 is missing (the ledger is empty)"
    if not seen:
        return f"no row has the digest {head}; rows after it were cut or rewritten"
    return None


def _highest_id(database: sqlite3.Connection) -> int:
    found: Any = database.execute(
        "SELECT seq FROM sqlite_sequence WHERE name = 'entry'"
    ).fetchone()
    return int(found[0]) if found else 0
