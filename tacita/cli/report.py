"""`tacita report`: one page about a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tacita

EXAMPLE = "Example:  tacita report runs/digits-fedavg-1 --trust"


def report(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The run folder.")],
    out: Annotated[
        Path | None, typer.Option(help="Where to write; the run folder if left out.")
    ] = None,
    trust: Annotated[
        bool,
        typer.Option(
            "--trust",
            help="Look at the rows: robustness, fairness, explainability, energy.",
        ),
    ] = False,
    group: Annotated[
        str | None,
        typer.Option(help="Name or number of the feature that tells groups apart."),
    ] = None,
    joules_per_operation: Annotated[
        float | None, typer.Option(help="Of the agents' machines.")
    ] = None,
    joules_per_byte: Annotated[
        float | None, typer.Option(help="Of the network.")
    ] = None,
    kilograms_per_kwh: Annotated[
        float | None, typer.Option(help="CO2e of the electricity.")
    ] = None,
) -> None:
    """Write one page about a run that needs no network, and its pictures beside it.

    With --trust the page says, in plain words, what the run is worth trusting for. That
    is computed from the rows, so of a private run it is for their owner only, and goes
    to a folder of its own. Energy needs your numbers: there are no defaults.
    """
    run = tacita.load_run(folder)
    asked = {
        "group": group,
        "joules_per_operation": joules_per_operation,
        "joules_per_byte": joules_per_byte,
        "kilograms_per_kwh": kilograms_per_kwh,
    }
    if trust:
        if run.privacy is not None and (out or folder).resolve() == folder.resolve():
            tacita.check.refuse(
                "what rows say without noise is no part of a private run's folder; "
                "name another one with --out"
            )
        job = tacita.job.read(folder / "config.toml")
        rule = job.options.get("aggregation")
        told = tacita.trust.examine(
            job.problem, job.algorithm, run, aggregation=rule, **asked
        )
        run = told.attach(run)
    elif any(value is not None for value in asked.values()):
        tacita.check.refuse("these options are for the section on trust; add --trust")
    typer.echo(tacita.report.write_report(run, out or folder))
