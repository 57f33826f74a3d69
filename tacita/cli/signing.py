"""`tacita privacy sign` and `verify`: a report that somebody stands for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tacita

SIGN = "Example:  tacita privacy sign runs/private-1 --name 'Oslo clinic'"
VERIFY = "Example:  tacita privacy verify runs/private-1/privacy.json"


def sign(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="A run folder, or its privacy.json.")
    ],
    keys: Annotated[
        Path | None,
        typer.Option(help="Your site's key file; keys of your own if left out."),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Who signs; the keys' holder if left out.")
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="The ledger whose head is signed too.")
    ] = None,
) -> None:
    """Sign the privacy report of a run, for whoever is to rely on it.

    The signature lies beside the report: send both. Keys of your own are made at the
    first use, in your folder of settings.
    """
    from tacita.federation import signed_report

    file = _report(run)
    if not file.is_file():
        tacita.check.refuse(
            f"no report of privacy at {file}: the run had no noise; see tacita privacy "
            "plan --help for one that has"
        )
    head = None if ledger is None else ledger_head(ledger)
    own, holder = signed_report.signing_keys(keys)
    beside = signed_report.sign(file, own, name or holder, head)
    signed = signed_report.verify(file)
    typer.echo(signed.sentence)
    typer.echo(signed_report.grounds_of(file))
    typer.echo(f"signed by {signed.signer}, key {signed.fingerprint}")
    typer.echo(f"signature: {beside}")


def verify(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A privacy.json, its signature beside it."),
    ],
    signer: Annotated[
        str | None,
        typer.Option(metavar="FINGERPRINT", help="Refuse any other signer's key."),
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="A ledger that must hold the signed head.")
    ] = None,
) -> None:
    """Check that a privacy report is what was signed, and say by whom.

    Whoever has a key can sign: have its fingerprint confirmed by another way.
    """
    from tacita.federation import signed_report

    file = _report(file)
    signed = signed_report.verify(file)
    if signer is not None and signer != signed.fingerprint:
        tacita.check.refuse(
            f"{file} was signed with the key {signed.fingerprint}, not with {signer}; "
            "ask who holds it"
        )
    told = _compared(signed.ledger_head, ledger)
    typer.echo(signed.sentence)
    typer.echo(signed_report.grounds_of(file))
    who = tacita.check.printable(signed.signer, 100)
    when = tacita.check.printable(signed.time, 40)
    typer.echo(f"signed by {who} on {when}, key {signed.fingerprint}")
    typer.echo("content: as it was signed")
    typer.echo(f"ledger:  {told}")
    if signer is None:
        typer.echo(f"whether this key is {who}'s: compare the fingerprint with theirs")


def ledger_head(path: Path) -> str:
    """The head of a whole ledger."""
    if not path.is_file():
        tacita.check.refuse(f"no ledger at {path}; name the file that an agent keeps")
    with tacita.privacy.Ledger(path, read_only=True) as book:
        book.verify()
        return book.head()


def _compared(head: str | None, ledger: Path | None) -> str:
    if head is None:
        if ledger is not None:
            tacita.check.refuse(
                f"no head of a ledger was signed, so {ledger} proves nothing; have it "
                "signed with: tacita privacy sign --ledger"
            )
        return "none was signed"
    head = tacita.check.printable(head, 64)
    if ledger is None:
        return f"head {head} was signed; not compared, for that give --ledger"
    ledger_head(ledger)
    with tacita.privacy.Ledger(ledger, read_only=True) as book:
        rows = book.verify(head)
        since = rows - next(row.id for row in book.rows() if row.digest == head)
    return f"head {head} is in {ledger}, {since} rows were written since"


def _report(path: Path) -> Path:
    return path / "privacy.json" if path.is_dir() else path
