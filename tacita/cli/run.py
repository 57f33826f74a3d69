"""`tacita run`: run what a run file describes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tacita
from tacita.cli.execute import execute, finish
from tacita.cli.options import Changes

EXAMPLE = "Example:  tacita run examples/runs/digits-fedavg.toml --set run.rounds=50"


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="The run file.")],
    change: Changes = None,
    out: Annotated[
        Path | None,
        typer.Option(help="The run folder to make; runs/NAME-1, -2, ... if left out."),
    ] = None,
    write_page: Annotated[
        bool, typer.Option("--report", help="Write the report too.")
    ] = False,
) -> None:
    """Run what a run file describes, and keep it in a folder of its own.

    The file is checked first. Its keys are described in docs/ref-run-file.md.
    """
    if out is not None:
        tacita.job.folder.refuse_used(out)
    job = tacita.job.read(file, change or ())
    for note in job.notes:
        typer.echo(f"note: {note}", err=True)
    made = tacita.job.folder.create(out, job.name, job.toml)
    done = execute(job, made)
    page = tacita.report.write_report(done, made) if write_page else None
    finish(done, made, page)
