"""`tacita hub`: make a federation, and run its broker."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Annotated

import typer

import tacita

app = typer.Typer(
    no_args_is_help=True,
    help="Make a federation and run its broker.",
    epilog="Example:  tacita hub init hub --name clinics --agents oslo,turku",
)
Folder = Annotated[Path, typer.Argument(help="The hub's folder; keep it private.")]


@app.command(
    "init", epilog="Example:  tacita hub init hub --name clinics --agents oslo,turku"
)
def init(
    folder: Folder,
    name: Annotated[str, typer.Option(help="What the federation is called.")],
    agents: Annotated[str, typer.Option(help="Names of the agents, with commas.")],
    coordinator: Annotated[
        str, typer.Option(help="Name of the coordinator.")
    ] = "coordinator",
    host: Annotated[
        str, typer.Option(help="Where parties reach the broker: a name or an address.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Its port.")] = 4222,
    public: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="NAME.public.json",
            help="Public keys of a party that made its own (tacita federation keys). "
            "Repeatable.",
        ),
    ] = None,
) -> None:
    """Make a federation: authority, broker configuration, one invitation per party."""
    hub = tacita.federation.Hub.create(
        folder,
        name,
        [word.strip() for word in agents.split(",") if word.strip()],
        coordinator=coordinator,
        host=host,
        port=port,
        own_keys={
            p.name.split(".")[0]: tacita.federation.PublicKeys.load(p)
            for p in public or []
        },
    )
    for who, path in hub.invitations.items():
        typer.echo(f"{who}: {path}")
    typer.echo(
        "Hand every party its invitation over a safe channel, and to nobody else."
    )
    typer.echo(f"next: tacita hub start {folder}")


@app.command("start", epilog="Example:  tacita hub start hub")
def start(folder: Folder) -> None:
    """Run the broker until it is interrupted."""

    def leave(*seen: object) -> None:
        raise KeyboardInterrupt

    hub = tacita.federation.Hub(folder)
    # A service manager ends us this way; the broker must not outlive us.
    signal.signal(signal.SIGTERM, leave)
    try:
        child = hub.start()
        typer.echo(f"the broker listens on port {hub.port}; end it with Ctrl-C")
        raise typer.Exit(child.wait())
    except KeyboardInterrupt:
        typer.echo("the broker stops")
    finally:
        hub.stop()
