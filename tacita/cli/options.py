"""Options that several commands take."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a key of the run file; the value is read as TOML. Repeatable.",
    ),
]
Observer = Annotated[
    str,
    typer.Option(
        help="final_model, coordinator, colluders, neighbour or eavesdropper."
    ),
]
PartyFolder = Annotated[
    Path | None, typer.Option(help="Where state, ledger and results are kept.")
]
Keys = Annotated[
    Path | None, typer.Option(help="Own keys, if they were not made by the hub.")
]
Metrics = Annotated[
    int | None,
    typer.Option(metavar="PORT", help="Tell metrics and health on this loopback port."),
]


def voice() -> dict[str, Any]:
    """How a party's program speaks in a terminal."""
    return {"tell": typer.echo, "progress": sys.stderr.isatty()}
