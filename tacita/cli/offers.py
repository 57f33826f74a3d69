"""`tacita offers`, `accept`, `decline`, `log`: the person at a site, and its log."""

from __future__ import annotations

import getpass
import json
from pathlib import Path
from typing import Annotated, Any

import typer

import tacita
from tacita.cli.show import show

OFFERS = "Example:  tacita offers --folder tacita-clinics-oslo"
ACCEPT = "Example:  tacita accept 3f2a --folder tacita-clinics-oslo"
DECLINE = "Example:  tacita decline 3f2a --folder tacita-clinics-oslo"
LOG = "Example:  tacita log --folder tacita-clinics-oslo"

Folder = Annotated[
    Path | None,
    typer.Option(help="The agent's folder; the only tacita-... here if left out."),
]
Digest = Annotated[
    str, typer.Argument(help="The run, as `tacita offers` names it, or its beginning.")
]


def offers(folder: Folder = None) -> None:
    """Show the offers that wait for a person, and what each would release.

    Offers wait here where the policy says approval = true.
    """
    from tacita.federation.preview import in_one_line, releases_of

    found = _book(folder).all()
    if not found:
        typer.echo("no offers wait")
        return
    words = {None: "waits", True: "accepted", False: "declined"}
    rows = [
        (
            offer.run.digest[:12],
            tacita.check.printable(str(offer.run.name)),
            words[offer.decision],
            str(offer.run.rounds),
            tacita.check.printable(str(offer.run.tables["algorithm"]["name"])),
            tacita.check.printable(", ".join(map(str, offer.run.problem["columns"]))),
            tacita.check.printable(str(offer.run.problem["target"])),
            str(len(offer.run.agents)),
        )
        for offer in found
    ]
    heads = ("run", "name", "decision", "rounds", "algorithm")
    show((*heads, "columns", "target", "agents"), rows)
    for offer in found:
        told = in_one_line(releases_of(offer.run))
        typer.echo(f"{offer.run.digest[:12]} would release: {told}")


def accept(digest: Digest, folder: Folder = None) -> None:
    """Agree to a run that waits; the policy and the ledger still have their say."""
    _decide(digest, folder, True)


def decline(digest: Digest, folder: Folder = None) -> None:
    """Refuse a run that waits."""
    _decide(digest, folder, False)


def _decide(digest: str, folder: Path | None, yes: bool) -> None:
    offer = _book(folder).decide(digest, yes, getpass.getuser())
    word = "accepted" if yes else "declined"
    typer.echo(
        f"{tacita.check.printable(str(offer.run.name))} ({offer.run.digest}) is {word}"
    )


def log(
    folder: Folder = None,
    head: Annotated[
        str | None,
        typer.Option(help="A digest kept elsewhere that must still be in the chain."),
    ] = None,
    last: Annotated[int, typer.Option(help="How many lines to show.")] = 50,
) -> None:
    """Show offers, decisions and releases of a site, after checking their chain."""
    from tacita.federation.audit_log import AuditLog

    events = AuditLog(_home(folder)).events(head)
    hidden = {"number", "time", "event", "previous", "digest"}
    rows = [
        (
            str(told["number"]),
            str(told["time"])[:19],
            tacita.check.printable(str(told["event"])),
            _details({k: v for k, v in told.items() if k not in hidden}),
        )
        for told in events[-last:]
    ]
    show(("line", "time", "event", "details"), rows)
    typer.echo(f"{len(events)} lines, head: {events[-1]['digest'] if events else '-'}")


def _details(told: dict[str, Any]) -> str:
    return tacita.check.printable(
        ", ".join(f"{k}: {json.dumps(v)}" for k, v in told.items())
    )


def _book(folder: Path | None) -> Any:
    from tacita.federation.audit_log import AuditLog
    from tacita.federation.offers import OfferBook

    home = _home(folder)
    return OfferBook(home, AuditLog(home))


def _home(folder: Path | None) -> Path:
    """The agent's folder: as told, or the only one here."""
    if folder is None:
        found = [p for p in Path().glob("tacita-*") if (p / "log.jsonl").exists()]
        if len(found) != 1:
            tacita.check.refuse(
                f"{len(found)} folders of agents are here; name one with --folder"
            )
        return found[0]
    if not folder.is_dir():
        tacita.check.refuse(f"there is no folder {folder}; name that of an agent")
    return folder
