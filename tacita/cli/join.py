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
        Path | None, typer.Option(help="What this agent agrees to; see the docs.")
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
) -> None:
    """Wait for a run, check it against the policy, and take part in it.

    Killed and started again with the same folder, it goes on where it was.
    """
    agent = tacita.federation.Agent(
        invitation,
        data,
        policy,
        folder=folder,
        keys=keys,
        silence=silence,
        metrics=metrics,
        **voice(),
    )
    if abandon:
        agent.abandon()
    agent.take_part(wait)
