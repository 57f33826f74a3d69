"""`tacita join`: take part in a federation with one's own rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tacita
from tacita.cli.options import Keys, Metrics, PartyFolder, voice

EXAMPLE = "Example:  tacita join oslo.json --data patients.csv --policy policy.toml"


def join(
    invitation: Annotated[Path, typer.Argument(help="The invitation of this party.")],
    data: Annotated[
        Path, typer.Option(help="Own rows: .csv, .parquet or .npz. They never leave.")
    ],
    folder: PartyFolder = None,
    policy: Annotated[
        Path | None,
        typer.Option(
            help="What this agent agrees to; without one nothing is accepted."
        ),
    ] = None,
    trust_everything: Annotated[
        bool,
        typer.Option(
            "--trust-everything",
            help="Accept any run in place of a policy: whoever proposes runs decides "
            "what leaves.",
        ),
    ] = False,
    ledger: Annotated[
        Path | None,
        typer.Option(
            help="A ledger shared by all federations that these rows are in; the "
            "policy names the rows (data_name)."
        ),
    ] = None,
    keys: Keys = None,
    wait: Annotated[
        float | None,
        typer.Option(help="Seconds to wait for a run; for ever if left out."),
    ] = None,
    silence: Annotated[
        float,
        typer.Option(
            help="Seconds without a letter after which a run is left, its state kept."
        ),
    ] = 7 * 86400.0,
    metrics: Metrics = None,
    abandon: Annotated[
        bool,
        typer.Option(
            "--abandon", help="Give up the run that was begun here; wait for another."
        ),
    ] = False,
    preview: Annotated[
        bool,
        typer.Option(
            "--preview",
            help="Show what would leave if the offers that wait here, or --run, were "
            "accepted; send nothing.",
        ),
    ] = False,
    run: Annotated[
        Path | None,
        typer.Option(metavar="RUN.toml", help="With --preview: the run to look at."),
    ] = None,
) -> None:
    """Wait for a run, check it against the policy, and take part in it.

    Killed and started again with the same folder, it goes on where it was.
    """
    if trust_everything and policy is not None:
        tacita.check.refuse("--policy and --trust-everything exclude each other")
    if run is not None and not preview:
        tacita.check.refuse("--run goes with --preview; runs are proposed elsewhere")
    anything = tacita.federation.Policy.anything() if trust_everything else None
    agent = tacita.federation.Agent(
        invitation,
        data,
        policy or anything,
        ledger,
        folder=folder,
        keys=keys,
        silence=silence,
        metrics=metrics,
        **voice(),
    )
    if preview:
        for line in agent.preview(run):
            typer.echo(tacita.check.printable(line, 2_000))
        return
    if abandon:
        agent.abandon()
    agent.take_part(wait)
