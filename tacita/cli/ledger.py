"""`tacita ledger`: what was spent, whether the ledger is whole, and its backups."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Annotated

import typer

import tacita
from tacita.cli.show import show as show_table

app = typer.Typer(
    no_args_is_help=True,
    help="Show, check, back up and restore a privacy ledger.",
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
    from tacita.trace.epsilon_words import assumed

    rows, held = [], defaultdict(list)
    with _opened(file) as ledger:
        releases = [row for row in ledger.rows() if row.kind == "release"]
        for agent, budget, person in ledger.accounts():
            mine = [
                row
                for row in releases
                if row.agent == agent and row.observer in person.observers
            ]
            at = delta or (budget.delta if budget else None) or 1e-5
            known, basis = budget or mine[0], ledger.basis(agent, person)
            if basis["assumptions"]:
                held[assumed(basis["assumptions"])].append(f"{agent} ({person})")
            rows.append(
                (
                    agent,
                    str(person),
                    f"{known.unit}, {known.relation}",
                    str(len(mine)),
                    f"{ledger.curve(agent, person).epsilon(at):.4g}",
                    f"{at:g}",
                    "-" if budget is None else f"{budget.epsilon:g}",
                    basis["theorem"],
                )
            )
        head = ledger.head()
    columns = ("agent", "against", "unit", "releases", "epsilon spent", "at delta")
    show_table((*columns, "allowed", "theorem"), rows)
    for words, whose in held.items():
        typer.echo(f"epsilons of {', '.join(whose)} hold if: {words}")
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


@app.command(
    "backup", epilog="Example:  tacita ledger backup ledger.db ledger-monday.backup"
)
def backup(
    file: File,
    copy: Annotated[Path, typer.Argument(help="A new file for the backup.")],
) -> None:
    """Copy a ledger into one file, also while it is being written to."""
    from tacita.privacy.ledger import back_up

    rows = back_up(_there(file), copy)
    typer.echo(f"{rows} rows are in {copy}")


@app.command(
    "restore", epilog="Example:  tacita ledger restore ledger-monday.backup ledger.db"
)
def restore(
    copy: Annotated[Path, typer.Argument(help="The backup.")],
    file: File,
) -> None:
    """Put a backup in the place of a ledger that is lost or damaged.

    Where rows may be missing since the backup, every budget counts as spent in full.
    """
    from tacita.privacy.ledger import restore as put_back

    done = put_back(copy, file)
    typer.echo(f"{done.rows} rows are back in {file}")
    for agent in done.spent:
        typer.echo(
            f"{agent}: letters may have left since the backup, so its budget counts as "
            "spent in full; runs that were begun cannot go on (tacita join --abandon)"
        )


def _there(file: Path) -> Path:
    if not file.is_file():
        tacita.check.refuse(f"no ledger at {file}; name the file that an agent keeps")
    return file


def _opened(file: Path):  # noqa: ANN202 - the ledger is imported when it is needed
    return tacita.privacy.Ledger(_there(file), read_only=True)
