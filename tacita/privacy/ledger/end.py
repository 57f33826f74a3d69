"""Where a ledger ends, kept in a second file beside it.

The chain of rows shows every change but one: the last rows cut off. So the number of
rows and the last digest are kept elsewhere too, in two places that are written in turn:

    append the rows, sync; write their end, sync; only then may the letter leave

A crash in between leaves rows that the end does not know, perhaps the last of them
torn. Their letters never left: whole rows are kept (a little too much is counted), a
torn one is dropped. Rows before the end are never dropped: where one is missing or
damaged, the ledger is refused. A crash while the end is written leaves the place
before, which knows one release less; so does a damaged byte in it.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import NamedTuple

from tacita.disk import sync_file, write_all

SUFFIX = ".end"
#: Bytes from one place to the other: two sectors are not torn at once.
_APART = 512
_FORM = "{:012d} {} {}\n"
_LENGTH = len(_FORM.format(0, "0" * 64, "0" * 32))


class End(NamedTuple):
    """The number of rows, and the digest of the last."""

    rows: int
    head: str

    def line(self) -> bytes:
        """What is written down, with a digest of its own."""
        told = f"{self.rows} {self.head}".encode()
        digest = hashlib.sha256(told).hexdigest()[:32]
        return _FORM.format(self.rows, self.head, digest).encode()


def path_of(ledger: Path) -> Path:
    """Where a ledger's end is kept."""
    return ledger.with_name(ledger.name + SUFFIX)


def read_end(file: int) -> End | None:
    """The newest end in an open file, or None where there is none."""
    found = [_read(os.pread(file, _LENGTH, k * _APART)) for k in range(2)]
    return max((end for end in found if end is not None), default=None)


def write_end(file: int, end: End) -> None:
    """Put an end in place of the older one; on the disk when this returns."""
    found = [_read(os.pread(file, _LENGTH, k * _APART)) for k in range(2)]
    older = min(range(2), key=lambda k: found[k] or End(-1, ""))
    write_all(file, end.line(), older * _APART)
    sync_file(file)


def _read(line: bytes) -> End | None:
    words = line.decode("ascii", "replace").split(" ")
    if len(words) != 3 or not words[0].isdecimal():
        return None
    end = End(int(words[0]), words[1])
    return end if end.line() == line else None
