"""`tacita run`: run what a run file describes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

EXAMPLE = "Example:  tacita run examples/runs/digits-fedavg.toml --set run.rounds=50"


def run(
    file: Annotated[Path, typer.Argument(metavar="FILE.toml", help="The run file.")],
    change: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Change a key of the run file; the value is read as TOML. Repeatable.",
        ),
    ] = None,
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
    from tacita.cli.execute import execute, finish
    from tacita.job import folder, job_from, run_file
    from tacita.job.changes import with_changes

    table = with_changes(run_file.read(file), change or [])
    if out is not None:
        folder.refuse_used(out)
    job = job_from(table, file.parent)
    made = folder.create(out, job.name, job.toml)
    done = execute(job, made)
    page = None
    if write_page:
        from tacita.report import write_report

        page = write_report(done, made)
    finish(done, made, page)
