"""`tacita report`: one page about a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tacita

EXAMPLE = "Example:  tacita report runs/digits-fedavg-1"


def report(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The run folder.")],
    out: Annotated[
        Path | None, typer.Option(help="Where to write; the run folder if left out.")
    ] = None,
) -> None:
    """Write one page about a run that needs no network, and its pictures beside it."""
    typer.echo(tacita.report.write_report(tacita.load_run(folder), out or folder))
