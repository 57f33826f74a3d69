"""A party's checkpoint: written whole and to the disk, and refused if touched.

The file is a letter to oneself (`wire.py`) behind a keyed digest. The key is derived
from the party's own secret, so a torn file is noticed and so is one that somebody
changed without knowing that secret.

What changes little is noted beside it: a second file of notes that belong to this very
state, each written behind the last. That takes one wait for the disk where a new state
takes two and a new file. A note that is not whole was not followed by any letter.

What is large and does not change is put aside, in a file of its own: a state that only
names it is short.
"""

from __future__ import annotations

import hmac
import json
import os
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from tacita.check import refuse
from tacita.disk import (
    refused_if_unwritable,
    sync_file,
    sync_folder,
    write_all,
    write_whole,
)
from tacita.federation import wire
from tacita.federation.json_words import read_table
from tacita.federation.wire import Identity, Letter, LetterRefused

NAME, NOTES = "party.state", "party.notes"
_ASIDE = "told-{}.state"
_MAGIC = b"TACITST1"
_DIGEST = 32
#: Bytes before the letter: what the file is, and its digest.
HEAD = len(_MAGIC) + _DIGEST
#: Bytes of the length of a note.
_LENGTH = 8


class StateFile:
    """Where one party keeps what it must not forget.

    Args:
        folder: The party's own folder for this run.
        key: Secret of the party; 32 bytes.
        identity: Which federation, run and party the state belongs to.
        durable: Whether to wait for the disk; False only to measure what that costs.
        name: Of the file.
    """

    def __init__(
        self,
        folder: Path,
        key: bytes,
        identity: Identity,
        durable: bool = True,
        name: str = NAME,
    ) -> None:
        self.path = folder / name
        self._key, self._identity, self._durable = key, identity, durable
        #: Digest of the newest state, how many notes it has, and where they end.
        self._state, self._count, self._end = b"", 0, 0
        #: What was noted since the state that was loaded.
        self.noted: list[bytes] = []
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)

    def save(self, words: Mapping[str, Any], **groups: Sequence[np.ndarray]) -> None:
        """Put a new state in place; when this returns it is on the disk."""
        sizes = {name: len(arrays) for name, arrays in groups.items()}
        text = json.dumps({**words, "groups": sizes})
        unique, places = _without_repeats([a for g in groups.values() for a in g])
        order = np.asarray(places, np.int64)
        content = wire.encode(Letter(self._identity, (order, *unique), text))
        digest = self._digest(content)

        def fill(path: Path) -> None:
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(file, "wb") as stream:
                stream.write(_MAGIC + digest)
                stream.write(content)

        if self._durable:
            write_whole(self.path, fill)
        else:
            fill(self.path)
        self._state, self._count, self._end = digest, 0, 0

    def note(self, content: bytes) -> None:
        """Write down what changed since the last state; returns when it is there."""
        path = self.path.with_name(NOTES)
        with refused_if_unwritable(path):
            new = not path.exists()
            file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
            try:
                head = len(content).to_bytes(_LENGTH, "little")
                whole = head + self._digest_of_note(content) + content
                write_all(file, whole, self._end)
                if self._durable:
                    sync_file(file)
            finally:
                os.close(file)
            if new and self._durable:
                sync_folder(path.parent)
        self._count, self._end = self._count + 1, self._end + len(whole)

    def _notes(self) -> list[bytes]:
        """What was noted since the state that was loaded."""
        path = self.path.with_name(NOTES)
        content = path.read_bytes() if path.exists() else b""
        found: list[bytes] = []
        while True:
            start = self._end + _LENGTH + _DIGEST
            size = int.from_bytes(content[self._end : self._end + _LENGTH], "little")
            told, note = content[start - _DIGEST : start], content[start : start + size]
            # Notes of older states stand behind those of this one, or none does.
            whole = hmac.compare_digest(told, self._digest_of_note(note))
            if not whole or len(note) < size:
                return found
            found.append(note)
            self._count, self._end = self._count + 1, start + size

    def load(self) -> tuple[dict[str, Any], dict[str, list[np.ndarray]]] | None:
        """The last state, or None if there is none; refused if it is not whole."""
        if not self.path.exists():
            return None
        content = self.path.read_bytes()
        told, body = content[len(_MAGIC) : HEAD], content[HEAD:]
        if content[: len(_MAGIC)] != _MAGIC or not hmac.compare_digest(
            told, self._digest(body)
        ):
            self._refuse("is damaged or was changed")
        try:
            letter = wire.decode(body, len(body))  # our own, however large
        except LetterRefused:
            self._refuse("is damaged or was changed")
        if letter.identity != self._identity:
            self._refuse("belongs to another run or party")
        self._state, self._count, self._end = told, 0, 0
        self.noted = self._notes()
        order, *unique = letter.arrays
        words = read_table(letter.text, "the checkpoint", wire.most_text("state"))
        arrays = (unique[i] for i in order)
        sizes = words.pop("groups").items()
        return words, {name: [*islice(arrays, size)] for name, size in sizes}

    def put_aside(self, number: int, arrays: Sequence[np.ndarray]) -> None:
        """Keep arrays under a number; when this returns they are on the disk."""
        self._aside(number).save({"number": number}, aside=arrays)

    def aside(self, number: int) -> list[np.ndarray]:
        """What was put aside under a number; refused if it is not whole."""
        file = self._aside(number)
        words, groups = file.load() or ({}, {})
        if words.get("number") != number:
            file._refuse("is missing, or was put in place of another")
        return groups["aside"]

    def all_aside(self) -> set[int]:
        """The numbers of everything that is put aside."""
        first, last = _ASIDE.split("{}")
        names = (path.name for path in self.path.parent.glob(_ASIDE.format("*")))
        numbers = (name.removeprefix(first).removesuffix(last) for name in names)
        return {int(number) for number in numbers if number.isdecimal()}

    def drop_aside(self, number: int) -> None:
        """Delete what no state names any more."""
        self._aside(number).path.unlink(missing_ok=True)

    def _aside(self, number: int) -> StateFile:
        told = self._key, self._identity, self._durable
        return StateFile(self.path.parent, *told, _ASIDE.format(number))

    def _digest(self, content: bytes) -> bytes:
        return hmac.digest(self._key, content, "sha256")

    def _digest_of_note(self, note: bytes) -> bytes:
        """Bound to the state that it follows, and to its place."""
        return self._digest(self._state + self._count.to_bytes(8, "little") + note)

    def _refuse(self, what: str) -> NoReturn:
        refuse(
            f"the checkpoint {self.path} {what}; restore it from a backup, or leave "
            "this run and start a new one"
        )


def _without_repeats(
    arrays: Sequence[np.ndarray],
) -> tuple[list[np.ndarray], list[int]]:
    """Write equal arrays once: a state often holds the letter just sent."""
    unique: list[np.ndarray] = []
    places = []
    # Compared one by one: hashing large arrays takes longer than all the rest.
    for array in arrays:
        for place, known in enumerate(unique):
            same = known.shape == array.shape and known.dtype == array.dtype
            if same and known.tobytes() == array.tobytes():
                places.append(place)
                break
        else:
            places.append(len(unique))
            unique.append(array)
    return unique, places
