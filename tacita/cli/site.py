"""`tacita site`: what a site does to become, and stay, a member."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tacita

app = typer.Typer(
    no_args_is_help=True,
    help="Ask for a place in a federation, with keys that never leave this site.",
    epilog="Example:  tacita site request oslo",
)


@app.command("request", epilog="Example:  tacita site request oslo --folder keys")
def request(
    name: Annotated[str, typer.Argument(help="The site's name.")],
    folder: Annotated[Path, typer.Option(help="Where to write the files.")] = Path(),
    rotate: Annotated[
        Path | None,
        typer.Option(help="Key file in use now, whose keys are to be replaced."),
    ] = None,
) -> None:
    """Make keys that nobody else ever sees, and a request for the hub."""
    private, asked = tacita.federation.make_request(folder, name, rotate)
    told = tacita.federation.Request.load(asked)
    typer.echo(f"keep to yourself: {private}")
    typer.echo(f"for the hub:      {asked}")
    typer.echo(f"read out to the hub's owner: {told.fingerprint}")
