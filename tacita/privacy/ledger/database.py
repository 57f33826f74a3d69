"""The file under a ledger: durable, appended to, a chain that is checked when opened.

Every row holds the digest of the row before it.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tacita import check
from tacita.check import TacitaError
from tacita.privacy.accounting.renyi import ORDERS


class BudgetExceeded(TacitaError):
    """A release would pass the budget. Nothing was written; the letter must stay."""


class BrokenLedger(TacitaError):
    """The ledger was changed outside Tacita, or cannot be read or written."""


GENESIS = "0" * 64
#: Of the file. 1 knew Renyi divergences only; 2 describes releases, and who is one.
FORMAT = 2


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row. `kind` is `ledger` (the first), `budget` or `release`.

    The cost of a release is `mu_squared` (Gaussian part) and `loss` (the rest, in the
    words of `accounting.words`); `content` is the letter's SHA-256. A budget names in
    `separate` (JSON) the groups of observers who do not compare notes, if there are
    any.
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
    loss: str | None = None
    separate: str | None = None
    content: str | None = None
    time: str = ""
    previous: str = ""
    digest: str = ""

    @classmethod
    def of(cls, values: tuple) -> Row:
        """A row from the values of `SELECT`."""
        return cls(**dict(zip(COLUMNS, values, strict=True)))

    def own_digest(self) -> str:
        """Over all columns, the digest of the row before it among them."""
        body = {name: getattr(self, name) for name in COLUMNS if name != "digest"}
        return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


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
        mu_squared REAL, loss TEXT, separate TEXT, content TEXT,
        time TEXT NOT NULL, previous TEXT NOT NULL, digest TEXT NOT NULL
    )
    """,
    """
    CREATE UNIQUE INDEX IF NOT EXISTS one_charge_per_release
    ON entry (agent, observer, run, round, phase) WHERE kind = 'release'
    """,
)


class Store:
    """One SQLite file of rows (write-ahead log, synced at every commit)."""

    def __init__(self, path: str | Path, *, read_only: bool, patience: float) -> None:
        self.path = Path(path)
        self.read_only = read_only
        if read_only and not self.path.exists():
            check.refuse(f"no ledger at {self.path}")
        mode = "ro" if read_only else "rwc"
        uri = f"{self.path.absolute().as_uri()}?mode={mode}"
        try:
            self._db = sqlite3.connect(
                uri, uri=True, timeout=patience, isolation_level=None
            )
        except sqlite3.Error as error:
            raise BrokenLedger(f"{self.path} cannot be opened: {error}") from error
        try:
            self._prepare()
        except BaseException as error:
            self._db.close()
            if isinstance(error, sqlite3.Error):
                message = f"{self.path} is no usable ledger: {error}"
                raise BrokenLedger(message) from error
            raise

    def _prepare(self) -> None:
        self._require_format()
        if self.read_only:
            self._db.execute("SELECT 1 FROM entry LIMIT 1")
            return
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=FULL")
        self._db.execute("PRAGMA fullfsync=ON")  # macOS: fsync alone may not reach disk
        with self.transaction():
            for statement in CREATE:
                self._db.execute(statement)
            if not self._db.execute("SELECT 1 FROM entry LIMIT 1").fetchone():
                self._db.execute(f"PRAGMA user_version={FORMAT}")
                self.append(kind="ledger", loss=json.dumps(ORDERS))
        _sync_folder(self.path)
        self.verify()
        orders = self._db.execute("SELECT loss FROM entry WHERE id = 1").fetchone()[0]
        if json.loads(orders) != list(ORDERS):
            check.refuse(
                f"{self.path} was written with other Renyi orders than this version "
                "of Tacita uses; read it with that version, or start a new ledger"
            )

    def _require_format(self) -> None:
        made = self._db.execute(
            "SELECT 1 FROM sqlite_master WHERE name = 'entry'"
        ).fetchone()
        (found,) = self._db.execute("PRAGMA user_version").fetchone()
        if made and found != FORMAT:
            check.refuse(
                f"{self.path} is a ledger of format {found or 1}, this version of "
                f"Tacita reads format {FORMAT}; read it with the version that wrote "
                "it, and start a new ledger with what is left of the budget"
            )

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @contextmanager
    def transaction(self, on_failure: Callable[[], None] = lambda: None) -> Iterator:
        """All rows appended inside are on disk when this ends, or none is."""
        if self.read_only:
            check.refuse(f"{self.path} was opened read-only")
        try:
            # IMMEDIATE takes the write lock first: what is read inside cannot go
            # stale between the check of a budget and the row that spends it.
            self._db.execute("BEGIN IMMEDIATE")
            yield
            self._db.execute("COMMIT")
        except BaseException as error:
            on_failure()
            if isinstance(error, sqlite3.Error):
                message = f"{self.path} cannot be written, so nothing may leave"
                raise BrokenLedger(f"{message}: {error}") from error
            raise
        finally:
            self._roll_back_if_open()

    def _roll_back_if_open(self) -> None:
        try:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
        except sqlite3.ProgrammingError:
            return  # closed: SQLite has rolled back already

    def append(self, **fields: Any) -> Row:
        """Add one row to the chain; call inside `transaction`."""
        last = self._db.execute(
            "SELECT id, digest FROM entry ORDER BY id DESC LIMIT 1"
        ).fetchone()
        number, previous = last or (0, GENESIS)
        time = datetime.now(UTC).isoformat(timespec="microseconds")
        row = Row(id=number + 1, time=time, previous=previous, **fields)
        row = replace(row, digest=row.own_digest())
        self._db.execute(INSERT, astuple(row))
        return row

    def find(self, where: str, values: tuple = ()) -> Iterator[Row]:
        """Rows by a condition (a constant of this package, never user input)."""
        return map(Row.of, self._db.execute(f"{SELECT} WHERE {where}", values))

    def agents(self) -> list[str]:
        """Every agent with a budget or a release."""
        found = self._db.execute(
            "SELECT DISTINCT agent FROM entry WHERE kind != 'ledger' ORDER BY agent"
        )
        return [agent for (agent,) in found]

    def verify(self, head: str | None = None) -> int:
        """Check the chain; returns the number of rows, raises `BrokenLedger`."""
        fault = self._first_broken(head)
        if fault is not None:
            raise BrokenLedger(f"{self.path}: {fault}")
        return int(self._db.execute("SELECT COUNT(*) FROM entry").fetchone()[0])

    def _first_broken(self, head: str | None) -> str | None:
        """What is wrong with the first row that breaks the chain, or None."""
        previous, seen, number = GENESIS, head is None, 0
        try:
            for number, row in enumerate(self.find("TRUE ORDER BY id"), 1):
                if row.id != number:
                    return f"row {number} is missing (found row {row.id})"
                if row.previous != previous:
                    return f"row {number} does not follow the row before it"
                if row.digest != row.own_digest():
                    return f"row {number} was changed"
                previous = row.digest
                seen = seen or row.digest == head
            given = self._highest_id()
        except sqlite3.DatabaseError as error:
            return f"row {number + 1} cannot be read: {error}"
        if given > number:
            return f"row {number + 1} is missing (rows up to {given} were written)"
        if number == 0:
            return "row 1 is missing (the ledger is empty)"
        if not seen:
            return f"no row has the digest {head}; rows after it were cut or rewritten"
        return None

    def _highest_id(self) -> int:
        found = self._db.execute(
            "SELECT seq FROM sqlite_sequence WHERE name = 'entry'"
        ).fetchone()
        return int(found[0]) if found else 0


def _sync_folder(path: Path) -> None:
    """Make the name of a new file durable, where folders can be synced."""
    try:
        folder = os.open(path.absolute().parent, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(folder)
    except OSError:
        return
    finally:
        os.close(folder)
