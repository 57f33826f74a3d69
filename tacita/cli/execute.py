"""Running a job in its folder, from the start or from its checkpoint."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
from pathlib import Path

import typer

import tacita
from tacita.cli.show import show


def use_every_core() -> None:
    """Have JAX know the cores of this process, unless somebody has decided before."""
    told = os.environ.get("JAX_NUM_CPU_DEVICES"), os.environ.get("XLA_FLAGS", "")
    if told[0] is None and "host_platform_device_count" not in told[1]:
        with contextlib.suppress(tacita.TacitaError):  # JAX has started
            tacita.use_cores()


def execute(job: tacita.job.Job, folder: Path, *, resume: bool = False) -> tacita.Run:
    """Run a job and save it in its folder, which holds its run file already.

    A run that was refused or that failed before its first checkpoint leaves no folder;
    one that was interrupted later can be resumed.
    """
    try:
        with tacita.job.folder.held(folder):
            run = job.simulate(checkpoint=folder, resume=resume)
            run.save(folder)
            tacita.job.folder.clear(folder)
            return run
    except KeyboardInterrupt:
        told = f"interrupted; go on with: {command('resume', folder)}"
        typer.echo(told, err=True)
        raise
    except tacita.TacitaError:
        _clear(folder, resume)
        raise
    except Exception:
        if not (folder / tacita.job.folder.CHECKPOINT).exists():
            _clear(folder, resume)
        raise


def finish(run: tacita.Run, folder: Path, page: Path | None = None) -> None:
    """Tell how a run ended, and where its page is; a diverged one is a failure."""
    if run.metrics.keys() > {"round"}:
        table = tacita.report.metrics_of_one(run)
        show(table.columns, table.rows, "right")
    typer.echo(f"run:    {folder}")
    typer.echo(f"report: {page or command('report', folder)}")
    if run.privacy is not None:
        told = tacita.trace.verdict(run.privacy)
        typer.echo(f"privacy {told.grounds}")
        typer.echo(f"privacy: {told.sentence}")
    if run.info["diverged"]:
        typer.echo(
            f"error: the run diverged within {run.rounds} rounds; give a shorter step "
            "size than the one it had, which the page shows",
            err=True,
        )
        raise typer.Exit(1)


def _clear(folder: Path, resume: bool) -> None:
    """Leave nothing behind of a run that never began; keep what was there before."""
    if not resume:
        shutil.rmtree(folder, ignore_errors=True)
        if folder.parent == tacita.job.folder.RUNS:
            with contextlib.suppress(OSError):  # it holds other runs
                folder.parent.rmdir()


def command(name: str, folder: Path) -> str:
    """What to type next, also where the folder's name has spaces."""
    return f"tacita {name} {shlex.quote(str(folder))}"
