"""`tacita hub`: make a federation, say who belongs to it, and run its brokers."""

from __future__ import annotations

import datetime
import signal
import time
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

import tacita
from tacita.cli.options import Metrics
from tacita.cli.show import show

app = typer.Typer(
    no_args_is_help=True,
    help="Make a federation, say who belongs to it, and run its brokers.",
    epilog="Example:  tacita hub init hub --name clinics --host hub.example.org",
)
Folder = Annotated[Path, typer.Argument(help="The hub's folder; keep it private.")]
Name = Annotated[str, typer.Argument(help="The party.")]
Role = Annotated[
    str, typer.Option(help="agent, or coordinator: one who may propose runs.")
]
Approves = Annotated[
    bool, typer.Option("--approves", help="No run may begin without its consent.")
]


@app.command(
    "init", epilog="Example:  tacita hub init hub --name clinics --host hub.example.org"
)
def init(
    folder: Folder,
    name: Annotated[str, typer.Option(help="What the federation is called.")],
    agents: Annotated[
        str,
        typer.Option(
            help="For trials: names of agents whose keys the hub makes, with commas."
        ),
    ] = "",
    coordinator: Annotated[
        str, typer.Option(help="Name of the coordinator made along with --agents.")
    ] = "coordinator",
    host: Annotated[
        list[str] | None,
        typer.Option(
            help="Where parties reach the broker: a name or an address. Repeated, one "
            "broker for each."
        ),
    ] = None,
    port: Annotated[int, typer.Option(help="Port of the first broker.")] = 4222,
    brokers: Annotated[
        int | None,
        typer.Option(help="Number of brokers, if all are on the same host."),
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option(help="Address to listen on; loopback if that is the host."),
    ] = None,
) -> None:
    """Make a federation: authority, owner's keys, brokers; for trials, parties too."""
    hub = tacita.federation.Hub.create(
        folder,
        name,
        [word.strip() for word in agents.split(",") if word.strip()],
        coordinator=coordinator,
        host=host or ["127.0.0.1"],
        port=port,
        brokers=brokers,
        listen=listen,
    )
    for who, path in hub.invitations.items():
        typer.echo(f"{who}: {path}")
    if hub.invitations:
        typer.echo("Hand every party its invitation over a safe channel.")
    typer.echo(f"owner: {tacita.federation.fingerprint(hub.owner)}")
    typer.echo(f"next: tacita hub start {folder}")


@app.command("start", epilog="Example:  tacita hub start hub --metrics 9464")
def start(
    folder: Folder,
    broker: Annotated[
        list[int] | None,
        typer.Option(help="Run only this broker here, by number. Repeatable."),
    ] = None,
    metrics: Metrics = None,
) -> None:
    """Run the brokers, and tell parties the roster, until interrupted."""
    from tacita.federation.hub_numbers import HubNumbers
    from tacita.federation.metrics import MetricsServer

    def leave(*seen: object) -> None:
        raise KeyboardInterrupt

    hub = tacita.federation.Hub(folder)
    # A service manager ends us this way; the brokers must not outlive us.
    signal.signal(signal.SIGTERM, leave)
    server = None if metrics is None else MetricsServer(metrics, HubNumbers(hub))
    try:
        with server or nullcontext():
            hub.start(broker or ())
            for number in broker or range(1, len(hub.brokers) + 1):
                one = hub.brokers[number - 1]
                typer.echo(f"broker {one.server} listens on {one.listen}:{one.port}")
            typer.echo("end it with Ctrl-C")
            while all(child.poll() is None for child in hub.children):
                time.sleep(0.2)
        tacita.check.refuse(f"a broker has ended; see the logs in {folder}/brokers")
    except KeyboardInterrupt:
        typer.echo("the hub stops")
    finally:
        hub.stop()


@app.command("sign", epilog="Example:  tacita hub sign hub oslo.request.json")
def sign(
    folder: Folder,
    request: Annotated[Path, typer.Argument(help="What the site sent.")],
    role: Role = "agent",
    approves: Approves = False,
    renew: Annotated[
        bool,
        typer.Option(
            "--renew", help="Replace the keys of a member; the old ones are revoked."
        ),
    ] = False,
) -> None:
    """Let a site in that made its own keys (tacita site request); none is sent back."""
    asked = tacita.federation.Request.load(request)
    path = tacita.federation.Hub(folder).sign(asked, role, approves, renew)
    typer.echo(f"{asked.name}: {path}")
    typer.echo(f"keys: {asked.fingerprint}; the site must see the same")


@app.command("add", epilog="Example:  tacita hub add hub bergen")
def add(
    folder: Folder, name: Name, role: Role = "agent", approves: Approves = False
) -> None:
    """For trials: add a party whose keys the hub makes; the others stay as they are."""
    path = tacita.federation.Hub(folder).add(name, role, approves)
    typer.echo(f"{name}: {path}")


@app.command("renew", epilog="Example:  tacita hub renew hub oslo")
def renew(
    folder: Folder,
    name: Annotated[str | None, typer.Argument(help="The party.")] = None,
    revoke_old: Annotated[
        bool,
        typer.Option("--revoke-old", help="Shut the former certificate out at once."),
    ] = False,
    brokers: Annotated[
        bool, typer.Option("--brokers", help="Renew the hub's own certificates.")
    ] = False,
) -> None:
    """Give a party a new certificate; its keys stay, and nobody else notices."""
    hub = tacita.federation.Hub(folder)
    if brokers == (name is not None):
        tacita.check.refuse("name a party, or --brokers for the hub's own certificates")
    if name is None:
        hub.renew_brokers()
        typer.echo("the brokers' certificates are renewed")
        return
    typer.echo(f"{name}: {hub.renew(name, revoke_old)}")


@app.command("remove", epilog="Example:  tacita hub remove hub turku")
def remove(folder: Folder, name: Name) -> None:
    """Take a party off the roster; its certificate and its keys are revoked."""
    hub = tacita.federation.Hub(folder)
    hub.remove(name)
    typer.echo(f"{name} is removed; version {hub.roster.version} of the roster")


@app.command("sites", epilog="Example:  tacita hub sites hub")
def sites(folder: Folder) -> None:
    """List everybody on the roster."""
    roster = tacita.federation.Hub(folder).roster
    typer.echo(f"{roster.federation}, version {roster.version} of the roster")
    heads = ("party", "role", "approves", "certificate ends", "keys")
    rows = []
    for name in roster.names:
        one = roster.members[name]
        end = datetime.datetime.fromtimestamp(one.expires, datetime.UTC).date()
        told = tacita.federation.fingerprint(one.keys)
        rows.append((name, one.role, "yes" if one.approves else "no", str(end), told))
    show(heads, rows)


@app.command("status", epilog="Example:  tacita hub status hub")
def status(folder: Folder) -> None:
    """Show which brokers answer, who is connected, and days left of certificates."""
    from tacita.federation import certificates, hub_numbers

    hub = tacita.federation.Hub(folder)
    roster, found = hub.roster, [hub_numbers.ask(one) for one in hub.brokers]
    typer.echo(f"{roster.federation}, version {roster.version} of the roster")
    for one in found:
        up = "answers" if one.numbers is not None else "does not answer"
        typer.echo(f"broker {one.server}: {up}, {len(one.parties)} parties connected")
    there = {name for one in found for name in one.parties}
    rows = []
    for name, ends in hub_numbers.HubNumbers(hub).ends().items():
        left = certificates.days_left(ends)
        soon = "renew it" if left < certificates.WARN_DAYS else ""
        is_party = name in roster.members
        connected = ("yes" if name in there else "no") if is_party else "-"
        rows.append((name, connected, str(left), soon))
    show(("certificate of", "connected", "days left", ""), rows)
