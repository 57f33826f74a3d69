"""`tacita data`: data sets, where they come from, and how to have them at hand."""

from __future__ import annotations

from typing import Annotated

import typer

import tacita
from tacita.cli.show import show

app = typer.Typer(
    no_args_is_help=True,
    help="List, describe and fetch data sets.",
    epilog="Example:  tacita data show digits",
)
Name = Annotated[str, typer.Argument(help='A name that "tacita data list" shows.')]


@app.command("list", epilog="Example:  tacita data list")
def list_all() -> None:
    """List the data sets that run files can name."""
    from tacita.report import numbers

    rows = []
    for name in tacita.data.names():
        entry = tacita.data.describe(name)
        size = numbers.size(1e6 * entry.megabytes)
        kept = size if entry.files else "bundled"
        rows.append((name, kept, entry.task, entry.summary))
    show(("name", "size", "task", "what it holds"), rows)


@app.command("show", epilog="Example:  tacita data show digits")
def show_one(name: Name) -> None:
    """Describe a data set: source, terms, and the options it takes in a run file."""
    typer.echo(str(tacita.data.describe(name)))
    typer.echo(f'\n[problem]\ndata = "{name}"')
    for option, default in tacita.data.options(name).items():
        shown = "none" if default is None else repr(default)
        typer.echo(f"# {option} (default {shown})")


@app.command("fetch", epilog="Example:  tacita data fetch heart-disease")
def fetch(name: Name) -> None:
    """Download the files of a data set, unless they are at hand, and check them."""
    paths = tacita.data.fetch(name)
    for path in paths:
        typer.echo(path)
    if not paths:
        typer.echo(f"{name} comes with scikit-learn; there is nothing to fetch")
