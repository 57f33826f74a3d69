"""`tacita ledger`: what was spent, and whether the ledger is whole."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tacita
from tacita.cli.show import show as show_table

app = typer.Typer(
    no_args_is_help=True,
    help="Show and check a privacy ledger.",
    epilog="Example:  tacita ledger show ledger.db",
)
File = Annotated[Path, typer.Argument(metavar="LEDGER", help="The ledger's file.")]


@app.command("show", epilog="Example:  tacita ledger show ledger.db --delta 1e-6")
def show(
    file: File,
    delta: Annotated[
        float | None,
        typer.Option(
            help="The delta of all epsilons; that of each budget if left out."
        ),
    ] = None,
) -> None:
    """Show what every agent has spent against each person, and what is allowed."""
    rows = []
    with _opened(file) as ledger:
        releases = [row for row in ledger.rows() if row.kind == "release"]
        for agent, budget, person in ledger.accounts():
            mine = [
                row
                for row in releases
                if row.agent == agent and row.observer in person.observers
            ]
            at = delta or (budget.delta if budget else None) or 1e-5
            theorems = "; ".join(dict.fromkeys(r.theorem or "" for r in mine)) or "-"
            known = budget or mine[0]
            rows.append(
                (
                    agent,
                    str(person),
                    f"{known.unit}, {known.relation}",
                    str(len(mine)),
                    f"{ledger.curve(agent, person).epsilon(at):.4g}",
                    f"{at:g}",
                    "-" if budget is None else f"{budget.epsilon:g}",
                    theorems,
                )
            )
        head = ledger.head()
    columns = ("agent", "against", "unit", "releases", "epsilon spent", "at delta")
    show_table((*columns, "allowed", "theorem"), rows)
    typer.echo("assumptions: those of the plans that the releases were charged under")
    typer.echo(
        "against everybody: all observers count as one person, unless the budget"
    )
    typer.echo("says who is separate")
    typer.echo(f"head: {head}")


@app.command("verify", epilog="Example:  tacita ledger verify ledger.db")
def verify(
    file: File,
    head: Annotated[
        str | None, typer.Option(help="A digest kept elsewhere; must be in the ledger.")
    ] = None,
) -> None:
    """Check that no row was changed, removed or put in between."""
    with _opened(file) as ledger:
        count = ledger.verify(head)
        typer.echo(f"whole: {count} rows, head {ledger.head()}")
    if head is None:
        typer.echo("keep the head elsewhere and give it as --head next time: a ledger")
        typer.echo("that was rebuilt from scratch is whole too")


def _opened(file: Path):  # noqa: ANN202 - the ledger is imported when it is needed
    if not file.is_file():
        tacita.check.refuse(f"no ledger at {file}; name the file that an agent keeps")
    return tacita.privacy.Ledger(file, read_only=True)
