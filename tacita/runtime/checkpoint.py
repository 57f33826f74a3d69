"""Checkpoints: everything a run needs to go on, written so that a crash harms nothing.

A checkpoint is one `.npz` file with plain arrays and a line of JSON, never a pickle. It
is written to a temporary file, flushed to the disk and renamed: at any moment the file
on the disk is a whole checkpoint, the old one or the new one.

Of a run in several processes each keeps its own part, and the one before it: a process
may be killed when others have written already what it has not.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from tacita import check
from tacita.disk import write_whole
from tacita.mesh import processes

NAME = "checkpoint.npz"
#: Of a process of several, "checkpoint-2-of-4.npz"; and the part before it.
PART, BEFORE = "checkpoint-{}-of-{}.npz", ".before"
#: All that a run may keep.
ALL = "checkpoint*.npz*"
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
    head["sha256"] = _digest(head, content)

    def fill(path: Path) -> None:
        path.write_bytes(json.dumps(head).encode() + b"\n" + content)

    path = own_file(folder)
    if path.name != NAME and path.exists():
        path.replace(_before(path))
    write_whole(path, fill)


def _digest(head: dict[str, Any], content: bytes) -> str:
    """Of all that is said: the line of JSON, and the arrays behind it."""
    told = json.dumps(head, sort_keys=True).encode()
    return hashlib.sha256(told + b"\n" + content).hexdigest()


def own_file(folder: Path) -> Path:
    """Where this process keeps its checkpoint."""
    of = jax.process_count()
    return folder / (NAME if of == 1 else PART.format(jax.process_index() + 1, of))


def _before(path: Path) -> Path:
    return path.with_name(path.name + BEFORE)


def is_there(folder: Path) -> bool:
    """Whether this process has kept something; killed in between, only the older."""
    path = own_file(folder)
    return path.exists() or _before(path).exists()


def clear(folder: Path) -> None:
    """Remove the checkpoints of a finished run."""
    for path in folder.glob(ALL):
        path.unlink(missing_ok=True)


def latest_of_all(rounds: Sequence[int]) -> int:
    """The last round of which every process has its part; 0 if there is none.

    Args:
        rounds: Of the parts that this process has, two at most.
    """
    known = [*rounds, 0, 0][:2]
    everybody = processes.everybodys(np.array(known))
    common = set(known).intersection(*map(set, everybody.tolist()))
    return max(common, default=0)


def load(folder: Path, fingerprint: str) -> list[Saved]:
    """Read what this process keeps, the latest first; refused if of another run.

    A torn or altered file is refused: its checksum would not fit.
    """
    path = own_file(folder)
    _refuse_others(folder, path)
    return [_read(p, fingerprint) for p in (path, _before(path)) if p.exists()]


def _refuse_others(folder: Path, own: Path) -> None:
    """Refuse what another number of processes has kept."""
    there = {p.name.removesuffix(BEFORE) for p in folder.glob(ALL)}
    of = own.name.rpartition("-")[2]
    others = sorted(name for name in there if name.rpartition("-")[2] != of)
    if others:
        told = others[0].rpartition("-")[2].removesuffix(".npz")
        count = told if told.isdecimal() else "one"
        check.refuse(
            f"the run in {folder} was begun in {count} process(es) and there are "
            f"{jax.process_count()} now; go on with as many"
        )


def _read(path: Path, fingerprint: str) -> Saved:
    head, _, content = path.read_bytes().partition(b"\n")
    try:
        told = json.loads(head)
        whole = told.pop("sha256") == _digest(told, content)
    except (ValueError, KeyError, TypeError, AttributeError):
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
