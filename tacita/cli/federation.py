"""`tacita federation`: how far a party is, and what keeps it from working."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

import tacita
from tacita.cli import watch
from tacita.cli.options import Keys, PartyFolder
from tacita.cli.show import show

#: Seconds after which a status is old: it is written every second.
_QUIET = 5.0
#: Seconds without a letter after which a party counts as away: whoever waits for one
#: asks for it sooner (`tacita/federation/patience.py`).
_AWAY = 45.0
#: What is told of letters; the last is over all exchanges.
_LEAGUE = "over all runs of these rows and all who may be in league"
_SIGNS = ("distance", "cosine", "length", "rank", "used", "times used")
#: What comes of a file that is missing, no status, or damaged.
_UNREADABLE = (
    OSError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    RecursionError,
)

app = typer.Typer(
    no_args_is_help=True,
    help="See how far a party is, and what keeps it from working.",
    epilog="Example:  tacita federation status tacita-clinics-oslo",
)


app.command("watch", epilog=watch.FEDERATION)(watch.watch_party)


@app.command("doctor", epilog="Example:  tacita federation doctor oslo.json")
def doctor(
    path: Annotated[
        Path, typer.Argument(help="A party's invitation, or the hub's folder.")
    ],
    keys: Keys = None,
    folder: PartyFolder = None,
) -> None:
    """Check clock, certificates, disk, ports and versions, and say what to do."""
    from tacita.federation.doctor import examine

    bad = 0
    for one in examine(path, keys, folder):
        typer.echo(f"{'ok  ' if one.good else 'FAIL'}  {one.what}: {one.words}")
        bad += not one.good
    if bad:
        typer.echo(f"{bad} to mend")
        raise typer.Exit(1)
    typer.echo("all is well")


@app.command("status", epilog="Example:  tacita federation status tacita-clinics-oslo")
def status(
    folders: Annotated[
        list[Path],
        typer.Argument(help="Folders of parties; the coordinator's tells all."),
    ],
) -> None:
    """Show who is connected, rounds, last letters, and what is left of budgets.

    An agent's folder tells of that agent. The coordinator's also has a line for every
    agent, with what the agent told of itself.
    """
    for folder in folders:
        try:
            told = json.loads((folder / "status.json").read_text())
            _show_party(told)
        except _UNREADABLE:
            tacita.check.refuse(
                f"no status in {folder}; name the folder of a party that has run"
            )


def _show_party(told: dict[str, Any]) -> None:
    from tacita.report import numbers
    from tacita.trace import terms

    if "note" in told:
        run = f"run {told['run']}: " if "run" in told else ""
        typer.echo(f"{told['party']}: {run}{told['note']}")
        return
    typer.echo(
        f"{told['party']}: {_state(told)}, round {told['round']} of {told['rounds']}"
    )
    if not told["finished"]:
        there = "connected" if told.get("connected") else "not connected"
        typer.echo(f"broker: {there}")
    rows = list(_lines(told))
    if rows:
        heads = ("party", "is there", "last letter", "round", "epsilon left")
        show(heads, rows, "right")
    if letters := told.get("letters"):
        typer.echo("letters of the last exchange, for people to look at:")
        show(("party", *_SIGNS), [*_letters(letters)], "right")
        typer.echo(
            "honest agents with unusual data look like liars; nobody is left out"
        )
    if promise := told.get("promise"):
        typer.echo(f"epsilon: as each agent tells, {terms(promise)}")
    for way in ("sent", "received"):
        size = numbers.size(told[f"{way}_bytes"])
        typer.echo(f"{way} {told[way]} letters, {size}")
    for sender, (here, whole) in told.get("under_way", {}).items():
        typer.echo(f"receiving from {sender}: piece {here} of {whole}")
    if dropped := told.get("dropped"):
        typer.echo(f"{dropped} messages were no pieces of a letter, or came too late")
    if repeated := told.get("repeated"):
        typer.echo(f"{repeated} letters came late or twice")
    for reason, count in told.get("refused", {}).items():
        typer.echo(f"refused {count}: {tacita.check.printable(reason)}")
    if "epsilon_spent" in told:
        left = told["epsilon_allowed"] - told["epsilon_spent"]
        typer.echo(
            f"budget: epsilon {told['epsilon_spent']:.4g} of "
            f"{told['epsilon_allowed']:.4g} spent, {left:.4g} left, {_LEAGUE}, "
            f"{terms(told)}"
        )


def _letters(told: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """One line for every agent that was heard: how its letter lay."""
    for name, seen in told.items():
        signs = (f"{float(seen[sign]):.3g}" for sign in _SIGNS[:-1])
        of = f"{float(seen['times_used']):.4g} of {int(seen['letters'])}"
        yield (tacita.check.printable(name), *signs, of)


def _state(told: dict[str, Any]) -> str:
    """Whether the party works; its status file is written every second if it does."""
    if told["finished"]:
        return "finished"
    age = time.time() - told.get("written", 0.0)
    return "running" if age < _QUIET else f"no sign of life for {age:.0f} s"


def _lines(told: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """One line for every other party: whom it heard, and what they told."""
    since = told.get("seconds_since", {})
    # The status may be an old one; after the end nobody looks who is there.
    age = max(0.0, time.time() - told.get("written", 0.0))
    for name in told.get("agents", sorted(since)):
        said = told.get("told", {}).get(name, {})
        heard = since[name] + age if name in since else None
        here = "yes" if heard is not None and heard < _AWAY else "no"
        left = f"{said['allowed'] - said['spent']:.4g}" if "spent" in said else "-"
        yield (
            name,
            "-" if told["finished"] else here,
            "never" if heard is None else f"{heard:.1f} s ago",
            f"{said['round']:.0f}" if "round" in said else "-",
            left,
        )
