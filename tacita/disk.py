"""Files that outlive a crash, and folders that one program has to itself."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tacita.check import TacitaError, refuse

try:
    import fcntl
except ImportError:  # not on this platform: two processes are then not kept apart
    fcntl = None

#: Name of the file by which a folder is locked.
LOCK = "in-use.lock"


class Unwritable(TacitaError):
    """The disk is full, or the place is somebody else's: no fault of any input."""


def write_whole(path: Path, fill: Callable[[Path], object]) -> None:
    """Let `fill` write a file, then put it in place whole and durably."""
    partial = path.with_name(f".{path.name}.partial")
    with refused_if_unwritable(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        fill(partial)
        with open(partial, "rb") as file:
            os.fsync(file.fileno())
        os.replace(partial, path)
        sync_folder(path.parent)


@contextmanager
def refused_if_unwritable(path: Path) -> Iterator[None]:
    """Say in one line that the disk is full, or that the place is somebody else's."""
    try:
        yield
    except OSError as error:
        raise Unwritable(
            f"cannot write {path}: {error.strerror or error}; make room, or see who "
            "may write there, and start again"
        ) from None


def write_all(file: int, content: bytes, at: int | None = None) -> None:
    """Write to an open file, from a place on or where it is; all of it, or raise.

    Where the disk is nearly full a part is written, which raises nothing by itself.
    """
    done = os.write(file, content) if at is None else os.pwrite(file, content, at)
    if done < len(content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def write_private(path: Path, content: str | bytes) -> None:
    """Put a file in place that only its owner may read, from its first moment on."""
    data = content.encode() if isinstance(content, str) else content
    with refused_if_unwritable(path):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)

    def fill(partial: Path) -> None:
        partial.unlink(missing_ok=True)
        file = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(file, "wb") as stream:
            stream.write(data)

    write_whole(path, fill)


def sync_file(file: int) -> None:
    """Wait until an open file is on the disk."""
    whole = getattr(fcntl, "F_FULLFSYNC", None)
    if fcntl is not None and whole is not None:
        fcntl.fcntl(file, whole)  # macOS: fsync alone may not reach the disk
    else:
        os.fdatasync(file)


def sync_folder(folder: Path) -> None:
    """Make the names of new files durable, where folders can be synced."""
    try:
        file = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(file)
    except OSError:
        return
    finally:
        os.close(file)


def try_lock(file: int, seconds: float = 0.0, shared: bool = False) -> bool:
    """Lock an open file against other programs; False if another one has it.

    The lock ends when the file is closed, hence also with the program.

    Args:
        file: The open file.
        seconds: How long to wait for another program.
        shared: Whether others may have it too who also only share it: those who read.
    """
    end = time.monotonic() + seconds
    while fcntl is not None:
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= end:
                return False
            time.sleep(0.002)
    return True


def lock(file: int) -> None:
    """Lock an open file against other programs, however long that takes."""
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX)


def unlock(file: int) -> None:
    """Let others lock the file."""
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_UN)


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Keep every other program out of a folder; refused if one is in it."""
    path = folder / LOCK
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        refuse(f"cannot lock the folder {folder}: {error.strerror}; name another")
    try:
        if not try_lock(file):
            who = os.pread(file, 20, 0).decode(errors="replace").strip() or "unknown"
            refuse(
                f"the folder {folder} is in use by another program (process {who}); "
                "end that one, or name a folder of its own with --folder"
            )
        with refused_if_unwritable(path):
            os.ftruncate(file, 0)
            write_all(file, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(file)
