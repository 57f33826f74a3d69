"""`tacita watch` and `tacita federation watch`: a live page in the browser."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

import tacita

EXAMPLE = "Example:  tacita watch runs/digits-fedavg-1"
FEDERATION = "Example:  tacita federation watch tacita-clinics-oslo"

Port = Annotated[int, typer.Option(help="The page's port; 0 for one that is free.")]
Host = Annotated[
    str, typer.Option(help="The loopback address to listen on; no other is allowed.")
]


def watch(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="The run folder.")],
    port: Port = 0,
    host: Host = "127.0.0.1",
) -> None:
    """Show a run in the browser while it goes on: rounds, curves, privacy.

    The page is for this machine only, and changes nothing. End it with Ctrl-C.
    """
    _serve(folder, "run_source", host, port)


def watch_party(
    folder: Annotated[
        Path, typer.Argument(help="The folder of an agent, a coordinator or a hub.")
    ],
    port: Port = 0,
    host: Host = "127.0.0.1",
) -> None:
    """Show a party or a hub in the browser: who is there, letters, budget, offers.

    The page is for this machine only. On an agent's own page a person accepts and
    declines the runs that wait. End it with Ctrl-C.
    """
    _serve(folder, "federation_source", host, port)


def _serve(folder: Path, kind: str, host: str, port: int) -> None:
    if not all(find_spec(name) for name in ("starlette", "uvicorn")):
        tacita.check.refuse(
            "the live page needs Starlette and uvicorn; install tacita[watch]"
        )
    from tacita import watch as room

    source: Callable[[Path], Any] = getattr(room, kind)
    page = room.LivePage(source(folder), host, port)
    typer.echo(f"live page: {page.address}")
    typer.echo("who knows this address may look; end it with Ctrl-C")
    with suppress(KeyboardInterrupt):
        page.run()
    typer.echo("the live page is closed")
