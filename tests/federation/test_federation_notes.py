"""Notes beside a checkpoint: they belong to one state, and count only if whole."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacita
from tacita.aggregation.secure.steps import Drop, Keep, Row
from tacita.federation import sum_parts
from tacita.federation.state_file import NOTES, StateFile
from tacita.federation.wire import Identity

WHO = Identity("town", "run", "state", 0, 0, "ada", "ada")
STEP = (Row("set", 3, b"\x01\x02"), Keep("opening", b"shares"), Drop("shares-1-3"))


def state(folder: Path, key: bytes = b"k" * 32) -> StateFile:
    return StateFile(folder, key, WHO)


def saved(folder: Path, *notes: bytes, number: int = 1) -> StateFile:
    made = state(folder)
    made.save({"number": number}, arrays=[np.arange(3)])
    for note in notes:
        made.note(note)
    return made


def found(folder: Path, **about: bytes) -> list[bytes]:
    made = state(folder, **about)
    assert made.load() is not None
    return made.noted


def test_notes_come_back_in_their_order_and_go_on(tmp_path: Path):
    saved(tmp_path, b"one", b"", b"three" * 1000)
    again = state(tmp_path)
    again.load()
    assert again.noted == [b"one", b"", b"three" * 1000]
    again.note(b"four")
    assert found(tmp_path)[3:] == [b"four"]


def test_notes_belong_to_their_state(tmp_path: Path):
    made = saved(tmp_path, b"a long note of the first state", b"another")
    made.save({"number": 2}, arrays=[])
    assert found(tmp_path) == []
    made.note(b"short")
    assert found(tmp_path) == [b"short"]
    # An old file of notes, put back, is nobody's.
    old = tmp_path / "old"
    saved(old, b"of another folder")
    (tmp_path / NOTES).write_bytes((old / NOTES).read_bytes())
    assert found(tmp_path) == []


@pytest.mark.parametrize("cut", range(0, 52, 4))
def test_a_torn_note_is_none(tmp_path: Path, cut: int):
    saved(tmp_path, b"first", b"second!")
    path = tmp_path / NOTES
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - 47 + min(cut, 46)])
    assert found(tmp_path) == [b"first"]


def test_a_changed_note_is_none(tmp_path: Path):
    saved(tmp_path, b"first", b"second")
    path = tmp_path / NOTES
    whole = bytearray(path.read_bytes())
    for place in range(45, len(whole)):
        changed = whole.copy()
        changed[place] ^= 1
        path.write_bytes(changed)
        assert found(tmp_path) == [b"first"]


def test_notes_are_swapped_by_nobody(tmp_path: Path):
    saved(tmp_path, b"first!", b"second")
    path = tmp_path / NOTES
    whole = path.read_bytes()
    half = len(whole) // 2
    path.write_bytes(whole[half:] + whole[:half])
    assert found(tmp_path) == []


def test_a_note_that_finds_no_room_is_refused(tmp_path: Path, monkeypatch: Any):
    """A short write raises nothing by itself; a letter would leave without its note."""
    made = saved(tmp_path, b"first")
    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda f, c, at: real(f, c[: len(c) // 2], at))
    with pytest.raises(tacita.TacitaError, match=r"party\.notes: No space left"):
        made.note(b"second")
    monkeypatch.undo()
    made.note(b"third")
    assert found(tmp_path) == [b"first", b"third"]


def test_a_step_comes_back_from_its_note():
    assert tuple(sum_parts.of_note(sum_parts.as_note(STEP))) == STEP


def test_notes_are_applied_to_what_the_checkpoint_holds():
    kept = {"shares-1-3": b"dealt", "roster-1": b"names"}
    words, arrays = sum_parts.as_parts(kept, [Row("answer", 3, b"\x07")])
    notes = [sum_parts.as_note(STEP)]
    found, rows = sum_parts.of_parts(words, arrays, notes)
    assert found == {"roster-1": b"names", "opening": b"shares"}
    assert rows == [Row("answer", 3, b"\x07"), STEP[0]]
