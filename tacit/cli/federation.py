"""`tacit federation`: how far a party is, and keys of one's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    no_args_is_help=True,
    help="See how far a party is, and make keys.",
    epilog="Example:  tacit federation status tacit-clinics-oslo",
)


@app.command("keys", epilog="Example:  tacit federation keys oslo")
def make_keys(
    name: Annotated[str, typer.Argument(help="The party's name.")],
    folder: Annotated[Path, typer.Option(help="Where to write them.")] = Path(),
) -> None:
    """Make keys that nobody else ever sees; the hub needs the public file only."""
    from tacit.check import refuse
    from tacit.runtime.federation.seal import PrivateKeys

    private, public = folder / f"{name}.keys.json", folder / f"{name}.public.json"
    if private.exists():
        refuse(f"{private} exists; it may be in use")
    made = PrivateKeys.fresh()
    made.save(private)
    public.write_text(json.dumps(made.public.as_words()))
    typer.echo(f"keep to yourself: {private}")
    typer.echo(f"for the hub:      {public}")


@app.command("status", epilog="Example:  tacit federation status tacit-clinics-oslo")
def status(
    folder: Annotated[Path, typer.Argument(help="The folder of a party.")],
) -> None:
    """Show how far a party is, whom it heard last, and what is left of its budget."""
    from tacit.check import refuse

    try:
        told = json.loads((folder / "status.json").read_text())
    except (OSError, ValueError):
        refuse(f"no status in {folder}; name the folder of a party that has run")
    state = "finished" if told["finished"] else "running"
    typer.echo(f"{told['party']}: {state}, round {told['round']} of {told['rounds']}")
    typer.echo(f"broker: {'connected' if told.get('connected') else 'not connected'}")
    for who, seconds in sorted(told.get("seconds_since", {}).items()):
        typer.echo(f"  {who}: last letter {seconds:.1f} s before")
    typer.echo(f"sent {told['sent']} letters, {told['sent_bytes']} bytes")
    typer.echo(f"received {told['received']} letters, {told['received_bytes']} bytes")
    for reason, count in told.get("refused", {}).items():
        typer.echo(f"refused {count}: {reason}")
    if "epsilon_spent" in told:
        left = told["epsilon_allowed"] - told["epsilon_spent"]
        typer.echo(
            f"budget: epsilon {told['epsilon_spent']:.4g} of "
            f"{told['epsilon_allowed']:.4g} spent, {left:.4g} left"
        )
