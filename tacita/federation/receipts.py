"""Receipts: those whom a party writes to remember for it what it said last.

A folder that is put back from a backup does not know what was said after the backup,
and neither does a second folder with the same keys. So every letter carries a stamp:
what its sender has said so far, and which program wrote it; and the last stamp of its
receiver, as a receipt. A stamp is keyed with a secret of its writer, so nobody else
can make one: a receipt that a party does not remember proves that its folder is older
than what it said, or that somebody else speaks with its keys.
"""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from tacita.check import TacitaError
from tacita.federation.wire import LetterRefused

When = tuple[int, int]
#: Numbers of a stamp: round, phase, folder, start, program, and two of its digest.
WORDS = 7
#: Of somebody who was not heard yet.
BLANK = np.zeros(WORDS, np.int64)


class OutOfStep(TacitaError):
    """The party said more than its folder knows of, or somebody else did in its name.

    The run stops here; what may have left is in the ledger.
    """


class Stamp(NamedTuple):
    """What a stamp says.

    Attributes:
        when: The last exchange that was answered.
        folder: Which folder the writer keeps its state in.
        started: When its program started, in nanoseconds.
        program: A random number of that program.
    """

    when: When
    folder: int
    started: int
    program: int


@dataclass(frozen=True, repr=False)
class Pen:
    """Writes the stamps of one program, and knows them again.

    Attributes:
        key: Secret of the party, the same in all of its folders and with new keys.
        run: The run's digest.
        folder: A number of the folder.
        started: When the program started; a later one has a larger number.
        program: A random number.
    """

    key: bytes
    run: str
    folder: int
    started: int = field(default_factory=time.time_ns)
    program: int = field(default_factory=lambda: _number(os.urandom(8)))

    def stamp(self, when: When) -> np.ndarray:
        """What this program has said so far."""
        told = [*when, self.folder, self.started, self.program]
        return np.asarray([*told, *self._digest(told)], np.int64)

    def read(self, array: np.ndarray) -> Stamp | None:
        """A stamp of this party, None for the blank one; others' are refused."""
        if array.tobytes() == BLANK.tobytes():
            return None
        number, phase, *who = array[:5].tolist()
        if self._digest([number, phase, *who]) != array[5:].tolist():
            raise LetterRefused("a receipt that this party never signed")
        return Stamp((number, phase), *who)

    def remembers(self, told: Stamp, began: When) -> bool:
        """Whether this program, or its folder before it started, said that."""
        if told[1:] == (self.folder, self.started, self.program):
            return True
        # Of a folder without a checkpoint nobody knows how late its last program was.
        earlier = told.started < self.started or told.when == (0, 0)
        return earlier and told.folder == self.folder and told.when <= began

    def _digest(self, told: list[int]) -> list[int]:
        words = f"{self.run} {told}".encode()
        made = hashlib.blake2b(words, key=self.key, digest_size=16).digest()
        return [_number(made[:8]), _number(made[8:])]


class Receipts:
    """The last stamp of everybody who writes to a party."""

    def __init__(self) -> None:
        self._last: dict[str, np.ndarray] = {}

    def of(self, name: str) -> np.ndarray:
        """What somebody said last."""
        return self._last.get(name, BLANK)

    def hear(self, name: str, stamp: np.ndarray) -> bool:
        """Remember a stamp; False if it is of another folder than what was counted."""
        before = self.of(name)
        if not stamp.any():
            return True
        if before[2] != stamp[2] and tuple(before[:2]) > (0, 0):
            return False
        if _order(stamp) > _order(before):
            self._last[name] = stamp
        return True

    def as_group(self) -> tuple[list[str], list[np.ndarray]]:
        """Names and stamps, for a checkpoint."""
        return list(self._last), [np.stack([BLANK, *self._last.values()])]

    def restore(self, names: list[str], group: list[np.ndarray]) -> None:
        """Out of a checkpoint."""
        self._last = dict(zip(names, group[0][1:], strict=True))


def require_stamps(arrays: tuple[np.ndarray, ...]) -> tuple[np.ndarray, np.ndarray]:
    """The stamp and the receipt at the end of a letter."""
    if len(arrays) < 2:
        raise LetterRefused("the letter carries no receipt")
    stamp, receipt = arrays[-2:]
    for array in (stamp, receipt):
        if array.shape != (WORDS,) or array.dtype != np.int64:
            raise LetterRefused("the letter carries no receipt")
    return stamp, receipt


def folder_number(secret: bytes) -> int:
    """A number that tells folders apart and says nothing of their secret."""
    return _number(hashlib.blake2b(b"folder", key=secret, digest_size=8).digest())


def _order(stamp: np.ndarray) -> list[int]:
    """Later exchanges first; of the same one, the later program."""
    return stamp[[0, 1, 3]].tolist()


def _number(content: bytes) -> int:
    return int.from_bytes(content, "little", signed=True) >> 1
