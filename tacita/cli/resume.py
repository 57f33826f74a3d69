"""`tacita resume`: go on with a run that was interrupted."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

import tacita
from tacita.cli.execute import execute, finish, use_every_core
from tacita.cli.together import (
    Coordinator,
    Process,
    Processes,
    run_together,
    team_of,
)

EXAMPLE = "Example:  tacita resume runs/digits-fedavg-1"


def resume(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The run folder.")],
    processes: Processes = 1,
    coordinator: Coordinator = None,
    process: Process = None,
) -> None:
    """Go on with a run that was interrupted, from its last checkpoint.

    The result has the same bits as a run that was not interrupted.
    """
    if (folder / "run.json").exists():
        see = f"tacita report {shlex.quote(str(folder))}"
        tacita.check.refuse(f"the run in {folder} is finished; see it with: {see}")
    if not (folder / tacita.job.folder.CONFIG).is_file():
        own = (folder / tacita.job.folder.CHECKPOINT).exists()
        tacita.check.refuse(
            f"no run file in {folder}; it was started by tacita.simulate, go on there "
            "with resume=True"
            if own
            else f"no run in {folder}; name a folder that `tacita run` has made"
        )
    team = team_of(processes, coordinator, process)
    if team is not None:
        run_together(team, folder, resume=True)
        return
    use_every_core()
    job = tacita.job.read(folder / tacita.job.folder.CONFIG)
    finish(execute(job, folder, resume=True), folder)
