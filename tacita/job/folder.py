"""Run folders: made whole or not at all, and used by one process at a time."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tacita.check import refuse
from tacita.disk import write_whole
from tacita.runtime import checkpoint, seeds

try:
    import fcntl
except ImportError:  # not on this platform: two processes are then not kept apart
    fcntl = None

RUNS = Path("runs")
CONFIG, CHECKPOINT, SECRET = "config.toml", checkpoint.NAME, seeds.NAME


def create(out: Path | None, name: str, config: str) -> Path:
    """Make a run folder that holds its run file.

    The folder is filled under another name first: under its own it never lacks the run
    file that `tacita resume` needs.

    Args:
        out: The folder to make; None takes the first free of runs/NAME-1, -2, ...
        name: Of the run.
        config: The run file.
    """
    if out is not None:
        refuse_used(out)
    parent = RUNS if out is None else out.parent
    try:
        parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=".", suffix=".partial", dir=parent))
    except OSError as error:
        refuse(f"cannot make a folder in {parent}: {error.strerror}; use --out")
    try:
        partial.chmod(0o755)
        words = config.encode()
        write_whole(partial / CONFIG, lambda path: path.write_bytes(words))
        return _put(partial, out, name)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _put(partial: Path, out: Path | None, name: str) -> Path:
    while True:
        target = out or next_free(name)
        try:
            os.rename(partial, target)  # refused by the system if it is not empty
            return target
        except OSError as error:
            if out is not None:
                refuse(f"cannot make {out}: {error.strerror}; choose another --out")
            if not target.exists():
                raise


def refuse_used(out: Path) -> None:
    """Refuse a folder that holds something: a run never writes over another."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        refuse(f"--out {out} exists already; choose another folder or remove it")


def next_free(name: str) -> Path:
    """The first of runs/NAME-1, -2, ... that is not there."""
    number = 1
    while (path := RUNS / f"{name}-{number}").exists():
        number += 1
    return path


def share(out: Path, config: str) -> Path:
    """As `create`, where several processes may make the same folder at once.

    None begins before all are there: a checkpoint is always one of an earlier run.
    """
    if (out / "run.json").exists() or any(out.glob(checkpoint.ALL)):
        refuse(f"--out {out} holds a run already; choose another folder, or resume it")
    words = config.encode()
    if (out / CONFIG).exists() and (out / CONFIG).read_bytes() != words:
        refuse(
            f"{out / CONFIG} is of another run file; give the same to all processes, "
            "or choose another folder"
        )
    write_whole(out / CONFIG, lambda path: path.write_bytes(words))
    return out


def clear(folder: Path) -> None:
    """Remove what only an unfinished run needs."""
    checkpoint.clear(folder)
    (folder / SECRET).unlink(missing_ok=True)


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Keep other processes out of a run folder; refused while one is in it."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        if fcntl is not None:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                refuse(f"{folder} is being run by another process; wait until it ends")
            except OSError:
                pass  # a file system without locks
        yield
    finally:
        os.close(handle)
