"""`tacita audit`: measure what really leaks."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated, Any

import typer

import tacita
from tacita.cli.options import Changes

EXAMPLE = "Example:  tacita audit private.toml --observer coordinator"


def audit(
    path: Annotated[
        Path, typer.Argument(metavar="RUN", help="A run file, or a run folder.")
    ],
    observer: Annotated[
        str | None,
        typer.Option(
            help="final_model, coordinator, colluders, neighbour or eavesdropper; "
            "needed, but with --exact, which compares all of them."
        ),
    ] = None,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact", help="Compare printed epsilons with exact ones, without runs."
        ),
    ] = False,
    rounds: Annotated[
        int | None, typer.Option(help="Rounds of each run; those of the run file.")
    ] = None,
    runs: Annotated[
        int, typer.Option(help="Runs on either of two data sets.")
    ] = 40_000,
    delta: Annotated[
        float | None, typer.Option(help="The delta of the claim; 1e-5 if left out.")
    ] = None,
    confidence: Annotated[float, typer.Option(help="How sure to be.")] = 0.99,
    claim: Annotated[
        float | None,
        typer.Option(help="An epsilon to test; what Tacita guarantees if left out."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of all randomness.")] = 0,
    change: Changes = None,
) -> None:
    """Bound from below what an observer learns of one record, by simulation.

    Runs the algorithm many times on two data sets that differ in one record, and
    counts how well they can be told apart. Exit code 1 means that the claim was
    refuted. The result of a run folder is kept in its privacy report.
    """
    job = tacita.job.read(path / "config.toml" if path.is_dir() else path, change or ())
    asked = job.audited()
    if rounds is not None:
        asked["rounds"] = rounds
    if exact:
        return _exactly(job, asked, observer, delta, seed)
    if observer is None:
        tacita.check.refuse(
            "who looks? give --observer, or --exact to compare all of them"
        )
    result = tacita.audit(
        job.problem,
        job.algorithm,
        observer=observer,
        runs=runs,
        delta=delta,
        confidence=confidence,
        claim=claim,
        seed=seed,
        **asked,
    )
    typer.echo(str(result))
    if path.is_dir():
        _keep(path, result.as_dict())
    if result.refuted:
        raise typer.Exit(1)


def _exactly(
    job: Any,
    asked: dict[str, Any],
    observer: str | None,
    delta: float | None,
    seed: int,
) -> None:
    """Print the exact comparison; exit code 1 where a printed epsilon is false."""
    found = tacita.audits.audit_exactly(
        job.problem, job.algorithm, delta=delta, seed=seed, **asked
    ).against(observer)
    typer.echo(str(found))
    if found.refuted:
        raise typer.Exit(1)


def _keep(folder: Path, audited: dict) -> None:
    """Put the result into the run's privacy report, if it has one for this observer."""
    run = tacita.load_run(folder)
    if run.privacy is None:
        return
    told = run.privacy.with_audit(audited["observer"], audited["unit"], audited)
    dataclasses.replace(run, privacy=told).save(folder)
    typer.echo(f"kept in {folder / 'privacy.json'}")
