"""Running a job in its folder, from the start or from its checkpoint."""

from __future__ import annotations

import contextlib
import shlex
import shutil
from pathlib import Path

import typer

from tacita.check import TacitaError
from tacita.cli.show import show
from tacita.job import Job
from tacita.job import folder as folders
from tacita.report import metrics_of_one
from tacita.runtime import checkpoint
from tacita.trace import Run


def execute(job: Job, folder: Path, *, resume: bool = False) -> Run:
    """Run a job and save it in its folder, which holds its run file already.

    A run that was refused or that failed before its first checkpoint leaves no folder;
    one that was interrupted later can be resumed.
    """
    try:
        with folders.held(folder):
            run = job.simulate(checkpoint=folder, resume=resume)
            run.save(folder)
            (folder / checkpoint.NAME).unlink(missing_ok=True)
            return run
    except KeyboardInterrupt:
        _tell_how_to_go_on(folder)
        raise
    except TacitaError:
        _clear(folder, resume)
        raise
    except Exception:
        if not (folder / checkpoint.NAME).exists():
            _clear(folder, resume)
        raise


def finish(run: Run, folder: Path, page: Path | None = None) -> None:
    """Tell how a run ended, and where its page is; a diverged one is a failure."""
    if run.metrics.keys() > {"round"}:
        show(metrics_of_one(run))
    typer.echo(f"run:    {folder}")
    typer.echo(f"report: {page or _command('report', folder)}")
    if run.info["diverged"]:
        typer.echo(
            f"error: the run diverged within {run.rounds} rounds; lower the step size "
            "or leave it out to have it set by theory",
            err=True,
        )
        raise typer.Exit(1)


def _clear(folder: Path, resume: bool) -> None:
    """Leave nothing behind of a run that never began; keep what was there before."""
    if not resume:
        shutil.rmtree(folder, ignore_errors=True)
        if folder.parent == folders.RUNS:
            with contextlib.suppress(OSError):  # it holds other runs
                folder.parent.rmdir()


def _tell_how_to_go_on(folder: Path) -> None:
    typer.echo(f"interrupted; go on with: {_command('resume', folder)}", err=True)


def _command(name: str, folder: Path) -> str:
    """What to type next, also where the folder's name has spaces."""
    return f"tacita {name} {shlex.quote(str(folder))}"
