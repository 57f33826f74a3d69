"""`tacita resume`: go on with a run that was interrupted."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = "Example:  tacita resume runs/digits-fedavg-1"


def resume(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The run folder.")],
) -> None:
    """Go on with a run that was interrupted, from its last checkpoint.

    The result has the same bits as a run that was not interrupted.
    """
    from tacita.check import refuse
    from tacita.cli.execute import execute, finish
    from tacita.job import folder as folders
    from tacita.job import read
    from tacita.runtime.checkpoint import NAME

    if (folder / "run.json").exists():
        see = f"tacita report {shlex.quote(str(folder))}"
        refuse(f"the run in {folder} is finished; see it with: {see}")
    if not (folder / folders.CONFIG).is_file():
        own = (folder / NAME).exists()
        refuse(
            f"no run file in {folder}; it was started by tacita.simulate, go on there "
            "with resume=True"
            if own
            else f"no run in {folder}; name a folder that `tacita run` has made"
        )
    finish(execute(read(folder / folders.CONFIG), folder, resume=True), folder)
