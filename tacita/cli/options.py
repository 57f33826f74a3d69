"""Options that several commands take."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

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


Log = Annotated[
    str,
    typer.Option(help="text, or json: one object a line, with its time."),
]


def voice(log: str = "text", dated: bool = False) -> dict[str, Any]:
    """How a party's program speaks.

    Args:
        log: In lines of "text", or of "json".
        dated: Whether lines of text begin with the time.
    """
    tacita.check.one_of(("text", "json"), log=log)
    if log == "json":
        return {"tell": partial(_tell_json, "info"), "progress": False}
    tell = _tell_dated if dated else typer.echo
    return {"tell": tell, "progress": not dated and sys.stderr.isatty()}


@contextmanager
def told_in(log: str) -> Iterator[None]:
    """An error that ends the program is a line of the log too, where that is JSON."""
    try:
        yield
    except tacita.TacitaError as error:
        if log != "json":
            raise
        _tell_json("error", str(error))
        raise typer.Exit(2) from None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _tell_dated(line: str) -> None:
    typer.echo(f"{_now()} {line}")


def _tell_json(level: str, line: str) -> None:
    typer.echo(json.dumps({"time": _now(), "level": level, "message": line}))
