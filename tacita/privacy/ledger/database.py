"""The file under a ledger: durable, appended to, checked when it is opened."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tacita import check
from tacita.privacy.accounting.curve import ORDERS
from tacita.privacy.ledger.rows import (
    CREATE,
    GENESIS,
    INSERT,
    SELECT,
    BrokenLedger,
    Row,
    first_broken,
    seal,
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
        except sqlite3.Error as error:
            self._db.close()
            raise BrokenLedger(f"{self.path} is no usable ledger: {error}") from error
        except BaseException:
            self._db.close()
            raise

    def _prepare(self) -> None:
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
                self.append(kind="ledger", rdp=json.dumps(ORDERS))
        _sync_folder(self.path)
        self.verify()
        orders = self._db.execute("SELECT rdp FROM entry WHERE id = 1").fetchone()[0]
        if json.loads(orders) != list(ORDERS):
            check.refuse(
                f"{self.path} was written with other Renyi orders than this version "
                "of Tacita uses; read it with that version, or start a new ledger"
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
        row = seal(Row(id=number + 1, time=time, previous=previous, **fields))
        self._db.execute(INSERT, row.values())
        return row

    def find(self, where: str, values: tuple) -> Iterator[Row]:
        """Rows by a condition (a constant of this package, never user input)."""
        return map(Row.of, self._db.execute(f"{SELECT} WHERE {where}", values))

    def pairs(self) -> list[tuple[str, str]]:
        """Every (agent, observer) with a budget or a release."""
        return self._db.execute(
            "SELECT DISTINCT agent, observer FROM entry WHERE kind != 'ledger' "
            "ORDER BY agent, observer"
        ).fetchall()

    def verify(self, head: str | None = None) -> int:
        """Check the chain; returns the number of rows, raises `BrokenLedger`."""
        fault = first_broken(self._db, head)
        if fault is not None:
            raise BrokenLedger(f"{self.path}: {fault}")
        return int(self._db.execute("SELECT COUNT(*) FROM entry").fetchone()[0])


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
