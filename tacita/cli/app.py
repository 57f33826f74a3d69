"""The commands, and the one place where errors become lines and exit codes."""

from __future__ import annotations

import sys
from importlib.metadata import version as version_of
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import tacita
from tacita.cli import (
    algorithms,
    attack,
    audit,
    compare,
    coordinate,
    data,
    demo,
    federation,
    graph,
    hub,
    join,
    ledger,
    new,
    offers,
    papers,
    predict,
    privacy,
    read,
    report,
    resume,
    run,
    site,
    watch,
)
from tacita.cli.interrupts import keep_interrupts

#: Exit codes: bad input, and a run that failed.
BAD_INPUT, FAILED = 2, 1


class Guarded(TyperGroup):
    """Commands whose errors are told in a line each, never as a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; an error decides the exit code."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except Exception as error:
            # Typer's own: how it ends the program and refuses its arguments.
            if type(error).__module__.split(".")[0] in ("typer", "click"):
                raise
            if ctx.params.get("debug"):
                raise
            raise typer.Exit(tell(error)) from None


def tell(error: Exception) -> int:
    """Write an error to stderr, one line for each thing; the exit code it means."""
    if isinstance(error, tacita.TacitaError):
        for line in str(error).split("\n"):
            typer.echo(f"error: {line}", err=True)
        return BAD_INPUT
    if isinstance(error, OSError) and error.filename:
        what = f"{error.filename}: {error.strerror}"
        typer.echo(f"error: {what}; check the path, and who may use it", err=True)
        return BAD_INPUT
    first = (str(error).strip() or "no message").split("\n")[0]
    typer.echo(
        f"error: {type(error).__name__}: {first} "
        "(run again as `tacita --debug ...` for the traceback)",
        err=True,
    )
    return FAILED


app = typer.Typer(
    name="tacita",
    cls=Guarded,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with:  tacita demo",
)


def _tell_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tacita {version_of('tacita')}")
        raise typer.Exit


@app.callback()
def options(
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error.")
    ] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            help="Show the version and leave.",
            is_eager=True,
            callback=_tell_version,
        ),
    ] = False,
) -> None:
    """Federated learning across parties that keep their data."""


app.command("demo", epilog=demo.EXAMPLE)(demo.demo)
app.command("new", epilog=new.EXAMPLE)(new.new)
app.command("run", epilog=run.EXAMPLE)(run.run)
app.command("resume", epilog=resume.EXAMPLE)(resume.resume)
app.command("report", epilog=report.EXAMPLE)(report.report)
app.command("watch", epilog=watch.EXAMPLE)(watch.watch)
app.command("compare", epilog=compare.EXAMPLE)(compare.compare)
app.command("predict", epilog=predict.EXAMPLE)(predict.predict)
app.command("algorithms", epilog=algorithms.EXAMPLE)(algorithms.algorithms)
app.add_typer(data.app, name="data")
app.add_typer(privacy.app, name="privacy")
app.command("graph", epilog=graph.EXAMPLE)(graph.graph)
app.command("attack", epilog=attack.EXAMPLE)(attack.attack)
app.command("read", epilog=read.EXAMPLE)(read.read)
app.command("audit", epilog=audit.EXAMPLE)(audit.audit)
app.add_typer(ledger.app, name="ledger")
app.add_typer(papers.app, name="papers")
app.add_typer(hub.app, name="hub")
app.add_typer(site.app, name="site")
app.command("join", epilog=join.EXAMPLE)(join.join)
app.command("offers", epilog=offers.OFFERS)(offers.offers)
app.command("accept", epilog=offers.ACCEPT)(offers.accept)
app.command("decline", epilog=offers.DECLINE)(offers.decline)
app.command("log", epilog=offers.LOG)(offers.log)
app.command("coordinate", epilog=coordinate.EXAMPLE)(coordinate.coordinate)
app.add_typer(federation.app, name="federation")


def main() -> None:
    """The program `tacita`."""
    keep_interrupts()
    arguments = sys.argv[1:]
    if "--debug" in arguments:  # wherever it stands
        arguments = ["--debug", *(a for a in arguments if a != "--debug")]
    app(args=arguments, prog_name="tacita")
