"""`tacita report`: one page about a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

import tacita
from tacita.cli.signing import ledger_head

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
    publishable: Annotated[
        bool,
        typer.Option(
            "--publishable",
            help="A page for others: without what rows tell and no epsilon covers.",
        ),
    ] = False,
    ledger: Annotated[
        Path | None, typer.Option(help="The ledger whose head the page names.")
    ] = None,
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
    if publishable and trust:
        tacita.check.refuse("--trust looks at rows; leave it out for --publishable")
    # Who signed is what a signature shows, not what a file says.
    known = {key: value for key, value in run.info.items() if key != "signed"}
    run = replace(run, info=known | _stood_for(folder, ledger))
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
    page = tacita.report.write_report(run, out or folder, publishable=publishable)
    typer.echo(page)


def _stood_for(folder: Path, ledger: Path | None) -> dict[str, Any]:
    """The head of the ledger, and who signed the privacy report, if anybody did."""
    told: dict[str, Any] = {}
    if ledger is not None:
        told["ledger_head"] = ledger_head(ledger)
    if not (folder / "privacy.json.signature").exists():
        return told
    from tacita.federation import signed_report

    try:
        signed = signed_report.verify(folder / "privacy.json")
    except tacita.TacitaError as error:
        typer.echo(f"note: no signature is shown: {error}", err=True)
        return told
    when = {"signer": signed.signer, "time": signed.time}
    if signed.ledger_head is not None:
        told.setdefault("ledger_head", signed.ledger_head)
    return told | {"signed": when | {"fingerprint": signed.fingerprint}}
