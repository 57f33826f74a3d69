"""`tacita resume`: go on with a run that was interrupted."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

import tacita
from tacita.cli.execute import execute, finish

EXAMPLE = "Example:  tacita resume runs/digits-fedavg-1"


def resume(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The run folder.")],
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
    job = tacita.job.read(folder / tacita.job.folder.CONFIG)
    finish(execute(job, folder, resume=True), folder)
