"""`tacita run`: run what a run file describes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tacita
from tacita.cli.execute import execute, finish, use_every_core
from tacita.cli.options import Changes
from tacita.cli.together import (
    Coordinator,
    Process,
    Processes,
    run_together,
    team_of,
)

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
    processes: Processes = 1,
    coordinator: Coordinator = None,
    process: Process = None,
) -> None:
    """Run what a run file describes, and keep it in a folder of its own.

    The file is checked first. Its keys are described in docs/ref-run-file.md.
    """
    team = team_of(processes, coordinator, process)
    if team is None:
        use_every_core()
    elif not team.alone and out is None:
        tacita.check.refuse("--process needs --out: all processes name one run folder")
    shared = team is not None and not team.alone
    if out is not None and not shared:
        tacita.job.folder.refuse_used(out)
    job = tacita.job.read(file, change or ())
    for note in job.notes:
        typer.echo(f"note: {note}", err=True)
    if team is None:
        made = tacita.job.folder.create(out, job.name, job.toml)
        done = execute(job, made)
        page = tacita.report.write_report(done, made) if write_page else None
        finish(done, made, page)
        return
    if out is not None and shared:
        made = tacita.job.folder.share(out, job.toml)
    else:
        made = tacita.job.folder.create(out, job.name, job.toml)
    run_together(team, made)
    if write_page and team.parts[0].number == 1:
        tacita.report.write_report(tacita.load_run(made), made)
