"""`tacita coordinate`: propose a run, and coordinate it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tacita
from tacita.cli.options import Keys, Metrics, PartyFolder, voice

EXAMPLE = "Example:  tacita coordinate run.toml --invitation coordinator.json"


def coordinate(
    file: Annotated[Path, typer.Argument(metavar="RUN.toml", help="The run.")],
    invitation: Annotated[
        Path, typer.Option(help="The invitation of the coordinator.")
    ],
    folder: PartyFolder = None,
    keys: Keys = None,
    wait: Annotated[
        float, typer.Option(help="Seconds to wait for all agents.")
    ] = 3600.0,
    silence: Annotated[
        float | None,
        typer.Option(
            help="Seconds without a letter after which a run is left, its state kept."
        ),
    ] = None,
    metrics: Metrics = None,
) -> None:
    """Propose a run to all agents, wait until they accept, and coordinate it.

    With an algorithm on a graph the agents need no coordinator: the run is proposed,
    and the rest is theirs. Killed and started again, it goes on where it was.
    """
    tacita.federation.coordinate(
        file,
        invitation,
        wait,
        folder=folder,
        keys=keys,
        silence=silence,
        metrics=metrics,
        **voice(),
    )
