"""`tacita compare`: several runs on one page."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

import tacita
from tacita.cli.show import show_within

EXAMPLE = (
    "Example:  tacita compare runs/demo/fedavg runs/demo/fedprox "
    "--tolerance test_accuracy=0.9"
)


def compare(
    folders: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Run folders.")
    ],
    tolerance: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METRIC=VALUE",
            help="Tell in which round a metric reaches a value. Repeatable.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Where to write; runs/comparison-1, -2, ... if left out."),
    ] = None,
) -> None:
    """Compare runs: a table here, their curves overlaid on one page."""
    runs = by_label(folders)
    wanted = _tolerances(tolerance or [])
    tables = [tacita.report.final_metrics(runs), tacita.report.communication(runs)]
    if wanted:
        tables.append(tacita.report.reached(runs, wanted))
    for table in tables:
        show_within(table.columns, table.rows)
        typer.echo()
    target = out or tacita.job.folder.next_free("comparison")
    typer.echo(f"report: {tacita.report.write_report(runs, target, tolerance=wanted)}")


def by_label(folders: list[Path]) -> dict[str, tacita.Run]:
    """Load runs, each under a name of its own: the run's, else the folder's."""
    if len({path.resolve() for path in folders}) < len(folders):
        tacita.check.refuse("the same run folder is given twice; name each once")
    runs = [tacita.load_run(path) for path in folders]
    for labels in (
        [run.name for run in runs],
        [path.resolve().name for path in folders],
        [str(path) for path in folders],
    ):
        if len(set(labels)) == len(labels):
            break
    return dict(zip(labels, runs, strict=True))


def _tolerances(given: list[str]) -> dict[str, float]:
    found = {}
    for one in given:
        metric, _, value = one.partition("=")
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not math.isfinite(number):
            tacita.check.refuse(
                f"--tolerance {one!r}: expected METRIC=VALUE, for example --tolerance "
                "grad_norm_sq=1e-6"
            )
        found[metric.strip()] = number
    return found
