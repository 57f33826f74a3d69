"""`tacita join`: take part in a federation with one's own rows."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Annotated

import typer

import tacita
from tacita.cli.options import Keys, Log, Metrics, PartyFolder, told_in, voice

EXAMPLE = "Example:  tacita join oslo.json --data patients.csv --policy policy.toml"


def join(
    invitation: Annotated[Path, typer.Argument(help="The invitation of this party.")],
    data: Annotated[
        Path, typer.Option(help="Own rows: .csv, .parquet or .npz. They never leave.")
    ],
    test: Annotated[
        Path | None,
        typer.Option(
            help="Own rows that never train and test what comes out; they never leave."
        ),
    ] = None,
    separator: Annotated[
        str,
        typer.Option(help="Between the fields of these files, where they are text."),
    ] = ",",
    folder: PartyFolder = None,
    policy: Annotated[
        Path | None,
        typer.Option(
            help="What this agent agrees to; without one nothing is accepted."
        ),
    ] = None,
    trust_everything: Annotated[
        bool,
        typer.Option(
            "--trust-everything",
            help="Accept any run in place of a policy: whoever proposes runs decides "
            "what leaves.",
        ),
    ] = False,
    ledger: Annotated[
        Path | None,
        typer.Option(
            help="A ledger shared by all federations that these rows are in; the "
            "policy names the rows (data_name)."
        ),
    ] = None,
    keys: Keys = None,
    wait: Annotated[
        float | None,
        typer.Option(help="Seconds to wait for a run; for ever if left out."),
    ] = None,
    silence: Annotated[
        float,
        typer.Option(
            help="Seconds without a letter after which a run is left, its state kept."
        ),
    ] = 7 * 86400.0,
    metrics: Metrics = None,
    abandon: Annotated[
        bool,
        typer.Option(
            "--abandon", help="Give up the run that was begun here; wait for another."
        ),
    ] = False,
    check: Annotated[
        Path | None,
        typer.Option(
            metavar="RUN",
            help="Show what a run file, or an offer that waits here, would read, cost "
            "and send; connect to nobody. Exit code 2 if it would be refused.",
        ),
    ] = None,
    stay: Annotated[
        bool,
        typer.Option(
            "--stay", help="Wait for the next run after each, until SIGTERM ends it."
        ),
    ] = False,
    log: Log = "text",
) -> None:
    """Wait for a run, check it against the policy, and take part in it.

    Killed and started again with the same folder, it goes on where it was.
    """
    if trust_everything and policy is not None:
        tacita.check.refuse("--policy and --trust-everything exclude each other")
    if stay and (wait is not None or check is not None):
        tacita.check.refuse("--stay waits for ever; leave out --wait and --check")
    anything = tacita.federation.Policy.anything() if trust_everything else None
    agent = tacita.federation.Agent(
        invitation,
        data,
        policy or anything,
        ledger,
        test,
        separator,
        folder=folder,
        keys=keys,
        silence=silence,
        metrics=metrics,
        **voice(log, stay),
    )
    if check is not None:
        told = agent.preview(check)
        for line in told.lines:
            typer.echo(tacita.check.printable(line, 2_000))
        raise typer.Exit(2 if told.refused else 0)
    if abandon:
        agent.abandon()
    if stay:
        signal.signal(signal.SIGTERM, lambda *_: agent.end())
    with told_in(log):
        agent.stay() if stay else agent.take_part(wait)
