"""One process of a run in several: started by `tacita.cli.together`, not by people.

    python -m tacita.cli.part FOLDER HOST:PORT 2/4 HERE begin|resume

It ends at once when it has said what went wrong: JAX would wait for processes that
are gone, and then tell of itself.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

import tacita
from tacita import compiled
from tacita.cli.app import tell
from tacita.cli.execute import finish
from tacita.cli.together import INTERRUPTED, LOST, Part
from tacita.processor import cores_here


def main() -> None:
    """Run the part and leave."""
    folder, coordinator, which, here, how = sys.argv[1:]
    threading.Thread(target=_end_with_starter, daemon=True).start()
    try:
        with _unheard(), tacita.mesh.processes.guarded():
            run = work(Path(folder), coordinator, which, int(here), how == "resume")
        code = 0 if run is None else _tell(run, Path(folder))
    except KeyboardInterrupt:
        code = INTERRUPTED
    except tacita.mesh.processes.PeerLostError:
        code = LOST  # whoever started this process knows more
    except Exception as error:
        code = tell(error)
    compiled.remove_own_folders()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def work(
    folder: Path, coordinator: str, which: str, here: int, resume: bool
) -> tacita.Run | None:
    """Do this process's share; the first one keeps the run and returns it."""
    part = Part.read(which)
    cores = max(1, cores_here() // here)
    tacita.use_cores(1 << (cores.bit_length() - 1))
    tacita.use_processes(coordinator, part.number - 1, part.of, here=here)
    job = tacita.job.read(folder / tacita.job.folder.CONFIG)
    run = job.simulate(checkpoint=folder, resume=resume)
    if part.number == 1:
        run.save(folder)
    # Nobody forgets how far it was before the run is kept.
    tacita.mesh.processes.everybodys(part.number)
    tacita.job.folder.clear(folder)
    return run if part.number == 1 else None


def _end_with_starter() -> None:
    """Leave when whoever started this process is gone, and its end of the pipe."""
    sys.stdin.buffer.read()
    compiled.remove_own_folders()
    os._exit(LOST)


def _tell(run: tacita.Run, folder: Path) -> int:
    try:
        finish(run, folder)
    except typer.Exit as end:
        return end.exit_code
    return 0


@contextmanager
def _unheard() -> Iterator[None]:
    """Keep from the reader what libraries write: how they found and lost each other.

    What Python writes to stderr, as a progress bar does, is still seen.
    """
    out, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    sys.stderr = os.fdopen(os.dup(2), "w", buffering=1)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(out, 1)


if __name__ == "__main__":
    main()
