"""What files say, kept until they change: to look again costs a `stat` each."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")

#: What comes of a file that is missing, not what it should be, or damaged.
UNREADABLE = (
    OSError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    RecursionError,
)
#: What takes long to read is read seldom: of a core, this share at most.
_SHARE = 0.01


class Kept(Generic[T]):
    """What some files say, read again only after one of them changed.

    Args:
        paths: The files; a folder changes with the names in it.
        read: Reads them; None is the answer where it fails.

    Attributes:
        fault: Why the last reading failed, in one line.
    """

    def __init__(self, paths: Sequence[Path], read: Callable[[], T]) -> None:
        self._paths, self._read = paths, read
        self._stamps: list[tuple[int, ...] | None] = []
        self._value: T | None = None
        self._due = 0.0
        self.fault: str | None = None

    def __call__(self) -> T | None:
        """What they say."""
        # Before they are read: what changes meanwhile is noticed the next time.
        stamps = [_stamp(path) for path in self._paths]
        now = time.monotonic()
        if stamps != self._stamps and now >= self._due:
            began = time.thread_time()
            self._value, self.fault = None, None
            try:
                self._value = self._read()
            except UNREADABLE as error:
                self.fault = (str(error) or type(error).__name__).split("\n")[0]
            took = time.thread_time() - began
            # The first time also pays for what is loaded and compiled once.
            self._due = now + (took / _SHARE if self._stamps else 0.0)
            self._stamps = stamps
        return self._value


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        told = os.stat(path)
    except OSError:
        return None
    return told.st_mtime_ns, told.st_size, told.st_ino


def tail(path: Path, most: int = 1 << 15) -> list[str]:
    """The last whole lines of a file that may be growing."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        start = max(0, size - most)
        file.seek(start)
        content = file.read(most)
    # What stands before the first end of a line is half a line, unless all was read;
    # what stands behind the last one is being written.
    first = content.find(b"\n") + 1 if start else 0
    whole = content[first : content.rfind(b"\n") + 1]
    return whole.decode(errors="replace").splitlines()
