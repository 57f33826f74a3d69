"""Options that several commands take."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

import tacita

Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change a key of the run file; the value is read as TOML. Repeatable.",
    ),
]
Observer = Annotated[
    str, typer.Option(help="final_model, coordinator, neighbour or eavesdropper.")
]
PartyFolder = Annotated[
    Path | None, typer.Option(help="Where state, ledger and results are kept.")
]
Keys = Annotated[
    Path | None, typer.Option(help="Own keys, if they were not made by the hub.")
]


def refuse(message: str) -> NoReturn:
    """Bad input: one line, and exit code 2."""
    tacita.check.refuse(message)


def voice() -> dict[str, Any]:
    """How a party's program speaks in a terminal."""
    return {"tell": typer.echo, "progress": sys.stderr.isatty()}
