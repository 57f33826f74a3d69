"""Checkpoints: everything a run needs to go on, written so that a crash harms nothing.

A checkpoint is one `.npz` file with plain arrays and a line of JSON, never a pickle. It
is written to a temporary file, flushed to the disk and renamed: at any moment the file
on the disk is a whole checkpoint, the old one or the new one.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacita import check
from tacita.disk import write_whole

NAME = "checkpoint.npz"
#: Bytes of the line of JSON, at most, for those who only glance at it.
_MOST_HEAD = 1 << 20


class Saved(NamedTuple):
    """A checkpoint read back."""

    rounds: int
    leaves: list[np.ndarray]
    metrics: np.ndarray
    record_rounds: np.ndarray
    seconds: float
    turn_rounds: np.ndarray = np.zeros(0, int)
    turns: np.ndarray = np.zeros(0, int)
    spent: dict[str, Any] | None = None


class Aim(NamedTuple):
    """Where a run is going, for those who watch it.

    Attributes:
        rounds: In all.
        metrics: Names of what is recorded.
        private: Whether a report of its privacy is made at its end.
    """

    rounds: int
    metrics: tuple[str, ...]
    private: bool


class Glance(NamedTuple):
    """How far a run is.

    Attributes:
        rounds: Rounds done.
        seconds: What they took.
        aim: What is to be done.
        record_rounds: The rounds that were recorded.
        metrics: Their metrics, (..., metrics, records).
        spent: Of a private run what it has spent so far, as `privacy.meter` reads it.
    """

    rounds: int
    seconds: float
    aim: Aim
    record_rounds: np.ndarray
    metrics: np.ndarray
    spent: dict[str, Any] | None = None


def save(folder: Path, saved: Saved, fingerprint: str, aim: Aim) -> None:
    """Write the checkpoint of a run into its folder."""
    head = {
        "fingerprint": fingerprint,
        "rounds": saved.rounds,
        "seconds": saved.seconds,
        "aim": aim._asdict(),
        "spent": saved.spent,
    }
    arrays = {f"leaf_{i}": leaf for i, leaf in enumerate(saved.leaves)}
    arrays["metrics"] = saved.metrics
    arrays |= {"turn_rounds": saved.turn_rounds, "turns": saved.turns}
    arrays["record_rounds"] = saved.record_rounds
    body = io.BytesIO()
    np.savez(body, **arrays)  # pyright: ignore[reportArgumentType]
    content = body.getvalue()
    head["sha256"] = hashlib.sha256(content).hexdigest()

    def fill(path: Path) -> None:
        path.write_bytes(json.dumps(head).encode() + b"\n" + content)

    write_whole(folder / NAME, fill)


def load(folder: Path, fingerprint: str) -> Saved | None:
    """Read a checkpoint back; None if there is none, refused if it is not this run's.

    A torn or altered file is refused: its checksum would not fit.
    """
    path = folder / NAME
    if not path.exists():
        return None
    head, _, content = path.read_bytes().partition(b"\n")
    try:
        told = json.loads(head)
        whole = told["sha256"] == hashlib.sha256(content).hexdigest()
    except (ValueError, KeyError, TypeError):
        whole, told = False, {}
    if not whole:
        check.refuse(f"checkpoint {path} is damaged; delete it to start anew")
    if told["fingerprint"] != fingerprint:
        check.refuse(
            f"checkpoint {path} belongs to another run (algorithm, data, seed, "
            "schedule or reference differ); choose another folder or delete it"
        )
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as file:
            count = sum(name.startswith("leaf_") for name in file.files)
            leaves = [file[f"leaf_{i}"] for i in range(count)]
            metrics, rounds = file["metrics"], file["record_rounds"]
            turns = file["turn_rounds"], file["turns"]
    except (ValueError, KeyError, zipfile.BadZipFile):
        check.refuse(f"checkpoint {path} is damaged; delete it to start anew")
    spent = told["spent"]
    return Saved(
        told["rounds"], leaves, metrics, rounds, told["seconds"], *turns, spent
    )


def glance(folder: Path) -> Glance | None:
    """How far a run is, without its state; None if there is no checkpoint.

    Only what is asked for is read, of the file that is there now: the run goes on, and
    may put the next one in its place meanwhile.
    """
    try:
        with open(folder / NAME, "rb") as file:
            told = json.loads(file.readline(_MOST_HEAD))
            with zipfile.ZipFile(file) as parts:
                rounds, metrics = (
                    _array(parts, name) for name in ("record_rounds", "metrics")
                )
        aim = told["aim"]
        aim = Aim(aim["rounds"], tuple(aim["metrics"]), aim["private"])
        spent = told["spent"]
        return Glance(told["rounds"], told["seconds"], aim, rounds, metrics, spent)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, zipfile.BadZipFile):
        check.refuse(
            f"how far the run in {folder} is cannot be told: its checkpoint is damaged "
            "or of another version; wait until the run ends"
        )


def _array(parts: zipfile.ZipFile, name: str) -> np.ndarray:
    with parts.open(f"{name}.npy") as file:
        return np.lib.format.read_array(file, allow_pickle=False)
