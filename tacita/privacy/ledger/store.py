"""The file under a ledger: lines appended and synced, read back only as a whole chain.

Everything that a ledger tells is computed from rows that were checked one by one, from
the first to the end that is kept beside the file (`end.py`).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from tacita import check
from tacita.disk import sync_file, sync_folder, try_lock, unlock, write_all
from tacita.privacy.accounting.renyi import ORDERS
from tacita.privacy.ledger.end import End, path_of, read_end, write_end
from tacita.privacy.ledger.index import RowIndex
from tacita.privacy.ledger.rows import (
    EARLIER,
    GENESIS,
    HEADER,
    BrokenLedger,
    Row,
    read_line,
)

#: Seconds in which whoever makes a ledger has written its first row.
_MAKING = 1.0


class Store(RowIndex):
    """The rows of a ledger's file, and how more are appended."""

    def __init__(self, path: str | Path, *, read_only: bool, patience: float) -> None:
        self.path, self.read_only = Path(path), read_only
        self._patience, self._inside = patience, False
        self._later: list[Callable[[], None]] = []
        self._forget()
        #: What is wrong with the first row that does not fit, of a ledger that is only
        #: looked at.
        self._fault: str | None = None
        end = path_of(self.path)
        if read_only and not self.path.exists():
            check.refuse(f"no ledger at {self.path}")
        if self.path.is_file() and not end.exists():
            with open(self.path, "rb") as file:
                self._refuse_earlier(file.read(len(HEADER)))
            self._break(f"its end, {end.name}, is missing; {_RESTORE}")
        flags = os.O_RDONLY if read_only else os.O_RDWR | os.O_CREAT
        try:
            self._end_file = os.open(end, flags, 0o600)
            try:
                self._file = os.open(self.path, flags, 0o600)
            except OSError:
                os.close(self._end_file)
                raise
        except OSError as error:
            self._break(f"it cannot be opened: {error.strerror}")
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def _prepare(self) -> None:
        if self.read_only:
            self._await_maker()
            self._read_on()
            if not (self.rows or self._fault):
                self._break("it was begun and has no row yet; start its agent")
            return
        for file in (self._file, self._end_file):
            with suppress(OSError):  # somebody else's file; it holds no rows of data
                os.fchmod(file, 0o600)
        with self.transaction():
            if not self.rows:
                self.append(kind="ledger", loss=json.dumps(ORDERS))
                sync_folder(self.path.absolute().parent)
        if json.loads(self.rows[0].loss or "") != list(ORDERS):
            check.refuse(
                f"{self.path} was written with other Renyi orders than this version "
                "of Tacita uses; read it with that version, or start a new ledger"
            )

    def _await_maker(self) -> None:
        """Wait a moment for whoever makes the files: at first they are empty."""
        end = time.monotonic() + _MAKING
        files = (self._file, self._end_file)
        while not any(os.fstat(file).st_size for file in files):
            if time.monotonic() > end:
                return
            time.sleep(0.002)

    def close(self) -> None:
        """Close the file."""
        for file in (self._file, self._end_file):
            if file >= 0:
                os.close(file)
        self._file = self._end_file = -1

    @contextmanager
    def transaction(self, on_failure: Callable[[], None] = lambda: None) -> Iterator:
        """All rows appended inside are on disk when this ends, or none is.

        Inside another one it is a part of that.
        """
        if self._inside:
            yield
            return
        if self.read_only:
            check.refuse(f"{self.path} was opened read-only")
        if self._file < 0:
            self._break("it is closed, so nothing may leave")
        if not try_lock(self._end_file, self._patience):
            self._break("another program is writing, so nothing may leave; try again")
        try:
            # Nobody else writes from here on: what is read cannot go stale between the
            # check of a budget and the row that spends it.
            self._catch_up()
            self._finish_crashed()
            before, self._inside = len(self.rows), True
            try:
                yield
                self._commit(before)
            except BaseException:
                self.take_back(before)
                on_failure()
                raise
        except OSError as error:
            self._break(f"it cannot be written, so nothing may leave: {error.strerror}")
        finally:
            self._inside = False
            later, self._later = self._later, []
            self._lines.clear()
            unlock(self._end_file)
        for action in later:
            action()

    def afterwards(self, action: Callable[[], None]) -> None:
        """Do something once all that was appended is on disk, and never if it is not.

        At once, outside of a transaction.
        """
        if self._inside:
            self._later.append(action)
        else:
            action()

    def append(self, **fields: Any) -> Row:
        """Add one row to the chain; call inside `transaction`."""
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        number, previous = len(self.rows) + 1, self._head()
        row, line = Row(id=number, time=now, previous=previous, **fields).sealed()
        self._lines.append(line)
        self.add(row)
        return row

    def _finish_crashed(self) -> None:
        """Rows that a crash left without their end get it, before they count."""
        end = read_end(self._end_file) or End(0, GENESIS)
        if end.rows < len(self.rows):
            sync_file(self._file)
            write_end(self._end_file, End(len(self.rows), self._head()))

    def _commit(self, before: int) -> None:
        if len(self.rows) == before:
            return
        content = (b"" if self._length else HEADER) + b"".join(self._lines)
        # What a crash left behind the last whole row is written over.
        os.ftruncate(self._file, self._length)
        try:
            write_all(self._file, content, self._length)
            sync_file(self._file)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._file, self._length)
            raise
        write_end(self._end_file, End(len(self.rows), self._head()))
        self._length += len(content)

    def _read_on(self) -> None:
        """Catch up as of one moment: while nobody is in the middle of writing."""
        if not try_lock(self._end_file, self._patience, shared=True):
            self._break("another program is writing; try again")
        try:
            self._catch_up()
        finally:
            unlock(self._end_file)

    def _catch_up(self) -> None:
        """Read and check what was written since the last time; call with a lock."""
        end = read_end(self._end_file)
        size = os.fstat(self._file).st_size
        if end is None:
            if size or self.read_only:
                self._wrong(f"its end, {path_of(self.path).name}, is damaged")
                return
            end = End(0, GENESIS)
            write_end(self._end_file, end)
        if size < self._length:
            self._forget()  # somebody cut it; what is left has to fit the end
        self._read(os.pread(self._file, size - self._length, self._length), end)

    def _read(self, content: bytes, end: End) -> None:
        lines = content.splitlines(keepends=True)
        if self._length == 0 and lines:
            if lines[0] == HEADER:
                self._length = len(lines.pop(0))
            elif end.rows:
                self._refuse_earlier(lines[0])
                self._wrong("its first line was changed")
                return
            else:
                lines = []  # a crash while the file was made
        for line in lines:
            row, number = read_line(line), len(self.rows) + 1
            fault = _fault(row, number, self._head())
            if row is None or fault is not None:
                if number <= end.rows:
                    self._wrong(fault or f"row {number} was changed")
                return  # written after the end: its letter never left
            self.add(row)
            self._length += len(line)
        if len(self.rows) < end.rows:
            found, all_rows = len(self.rows), end.rows
            self._wrong(f"row {found + 1} is missing ({all_rows} rows were written)")
        elif end.rows and self.rows[end.rows - 1].digest != end.head:
            self._wrong(f"row {end.rows} is not the one that was written last")

    def _refuse_earlier(self, begin: bytes) -> None:
        if begin.startswith(EARLIER):
            check.refuse(
                f"{self.path} is a ledger of an earlier format, this version of Tacita "
                "reads format 4; read it with the version that wrote it, and start a "
                "new ledger with what is left of the budget"
            )

    def _wrong(self, fault: str) -> None:
        self._fault = fault
        if not self.read_only:
            self.whole()

    def whole(self) -> None:
        """Refuse a ledger that is not whole, naming its first fault."""
        if self._file < 0:
            self._break("it is closed")
        # Who only looks sees one moment: all that it is told fits together.
        if self._fault is None and not (self._inside or self.read_only):
            self._read_on()
        if self._fault is not None:
            self._break(f"{self._fault}; {_RESTORE}")

    def _break(self, what: str) -> NoReturn:
        raise BrokenLedger(f"{self.path} is no usable ledger: {what}")

    def content(self) -> bytes:
        """The file up to its last whole row."""
        self.whole()
        return os.pread(self._file, self._length, 0)

    def _forget(self) -> None:
        self.clear()
        self._length = 0
        self._lines: list[bytes] = []

    def _head(self) -> str:
        return self.rows[-1].digest if self.rows else GENESIS


#: What to do with a ledger that is not whole.
_RESTORE = "put a backup in its place with: tacita ledger restore"


def _fault(row: Row | None, number: int, previous: str) -> str | None:
    """What is wrong with a row in this place."""
    if row is None:
        return f"row {number} was changed"
    if row.id != number:
        return f"row {number} is missing (found row {row.id})"
    if row.previous != previous:
        return f"row {number} does not follow the row before it"
    return None
