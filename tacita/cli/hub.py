"""`tacita hub`: make a federation, and run its broker."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
    import json

    from tacita.check import refuse
    from tacita.federation import hub
    from tacita.federation.seal import PublicKeys

    given = {}
    for path in public or []:
        try:
            given[path.name.split(".")[0]] = PublicKeys.of_words(
                json.loads(path.read_text())
            )
        except OSError as error:
            refuse(f"cannot read {path}: {error.strerror}; check the path")
        except ValueError as error:
            refuse(f"{path} holds no public keys: {error}")
    names = [word.strip() for word in agents.split(",") if word.strip()]
    made = hub.make(
        folder,
        name,
        names,
        coordinator=coordinator,
        host=host,
        port=port,
        own_keys=given,
    )
    for who, path in made.items():
        typer.echo(f"{who}: {path}")
    typer.echo(
        "Hand every party its invitation over a safe channel, and to nobody else."
    )
    typer.echo(f"next: tacita hub start {folder}")


@app.command("start", epilog="Example:  tacita hub start hub")
def start(folder: Folder) -> None:
    """Run the broker until it is interrupted."""
    import signal

    from tacita.federation import broker, hub

    def leave(*seen: object) -> None:
        raise KeyboardInterrupt

    port = hub.port_of(folder)
    # A service manager ends us this way; the broker must not outlive us.
    signal.signal(signal.SIGTERM, leave)
    child = broker.start(folder / hub.CONFIG, port)
    typer.echo(f"the broker listens on port {port}; end it with Ctrl-C")
    try:
        raise typer.Exit(child.wait())
    except KeyboardInterrupt:
        typer.echo("the broker stops")
    finally:
        broker.stop(child)
