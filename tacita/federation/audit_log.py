"""A site's own log of offers, decisions and releases: appended to, never changed.

Each line is an event in JSON, numbered, with the digest of the line before it, so that
a line that was changed, removed or put in between shows. Whoever may write the file can
rebuild the whole chain: keep `head()` elsewhere and give it to `verify`.

A line that a power cut tore stays where it is; the next one vouches for its bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from tacita.check import refuse
from tacita.disk import lock, refused_if_unwritable, write_all
from tacita.federation.seal import private_folder

NAME = "log.jsonl"
_GENESIS = "0" * 64
#: Bytes of one line, at most; what is told in it is cut before.
_MOST_LINE = 1 << 16
_MOST_WORDS = 2_000
#: Bytes at the end of the file in which the last line usually is.
_NEAR = 1 << 11


class AuditLog:
    """The log in a party's folder; several programs may write to it.

    Args:
        home: The party's folder.
    """

    def __init__(self, home: Path) -> None:
        self.path = home / NAME

    def note(self, event: str, *, durable: bool = True, **words: Any) -> None:
        """Append an event; when this returns it is on the disk if it is `durable`."""
        with self._held() as file:
            number, previous, tail, torn = _last(file, self.path)
            lines = [b"\n" if tail else b""]
            if torn:
                told = {"event": "torn", "bytes": hashlib.sha256(tail).hexdigest()}
                number, previous, line = _next(number, previous, told)
                lines.append(line)
            cut = {
                k: v[:_MOST_WORDS] if isinstance(v, str) else v
                for k, v in words.items()
            }
            lines.append(_next(number, previous, {"event": event, **cut})[2])
            write_all(file, b"".join(lines))
            if durable:
                os.fsync(file)

    @contextmanager
    def _held(self) -> Iterator[int]:
        private_folder(self.path.parent)
        with refused_if_unwritable(self.path):
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                lock(file)
                yield file
            finally:
                os.close(file)

    def events(self, head: str | None = None) -> list[dict[str, Any]]:
        """All events in order; refused if the chain is broken.

        Args:
            head: A digest kept elsewhere; it must still be one of the lines.
        """
        content = self.path.read_bytes() if self.path.exists() else b""
        found: list[dict[str, Any]] = []
        previous, seen, torn = _GENESIS, head is None, None
        *lines, tail = content.split(b"\n")
        if _read(tail) is not None:
            lines.append(tail)  # whole, but for its end
        for place, line in enumerate(lines, 1):
            told = _read(line)
            if told is None:
                # Only a torn line, and the next one must say so.
                if torn is not None:
                    self._refuse(place)
                torn = line
                continue
            fits = told["previous"] == previous and told["number"] == len(found) + 1
            if torn is not None:
                fits &= told.get("bytes") == hashlib.sha256(torn).hexdigest()
                fits &= told.get("event") == "torn"
            if not fits:
                self._refuse(place if torn is None else place - 1)
            torn, previous = None, told["digest"]
            seen = seen or previous == head
            found.append(told)
        if torn is not None:
            self._refuse(len(lines))
        if not seen:
            refuse(f"{self.path}: no line has the digest {head}; lines were cut off")
        return found

    def head(self) -> str:
        """The digest of the last line: it vouches for every line before it."""
        events = self.events()
        return events[-1]["digest"] if events else _GENESIS

    def _refuse(self, place: int) -> NoReturn:
        refuse(
            f"{self.path}: line {place} was changed, or lines before it are missing; "
            "restore the log from a backup, or move it away to begin a new one"
        )


def _next(number: int, previous: str, told: dict[str, Any]) -> tuple[int, str, bytes]:
    """The next line: its number, its digest, its bytes."""
    time = datetime.now(UTC).isoformat(timespec="microseconds")
    whole = {"number": number + 1, "time": time, **told, "previous": previous}
    digest = _digest(whole)
    line = json.dumps({**whole, "digest": digest}).encode() + b"\n"
    if len(line) > _MOST_LINE:
        refuse("an event of the log is too long")
    return number + 1, digest, line


def _digest(told: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _read(line: bytes) -> dict[str, Any] | None:
    """An event, or None for bytes that are none."""
    try:
        told = json.loads(line)
        digest = told.pop("digest")
        if digest != _digest(told) or not {"number", "previous", "event"} <= set(told):
            return None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return {**told, "digest": digest}


def _last(file: int, path: Path) -> tuple[int, str, bytes, bool]:
    """Number and digest of the last line; the bytes after the last end of a line.

    And whether those are torn: else they are that last line, and lack its end only.
    """
    size, near = os.fstat(file).st_size, _NEAR
    while True:
        start = max(0, size - near)
        content = os.pread(file, size - start, start)
        whole, _, tail = content.rpartition(b"\n")
        if not start or b"\n" in whole or near > 3 * _MOST_LINE:
            break
        near *= 4  # the last line is a long one
    told = _read(tail)
    if told is not None:
        return told["number"], told["digest"], tail, False
    if not whole and not start:
        return 0, _GENESIS, tail, bool(tail)
    told = _read(whole.rpartition(b"\n")[2])
    if told is None:
        refuse(f"{path} is damaged at its end; restore it from a backup")
    return told["number"], told["digest"], tail, bool(tail)
