"""`tacita privacy`: which noise for a budget, and which budget for a noise."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tacita
from tacita.cli import signing
from tacita.cli.options import Changes, Observer

app = typer.Typer(
    no_args_is_help=True,
    help="Plan and account what observers may learn.",
    epilog="Example:  tacita privacy plan private.toml --epsilon 1 --delta 1e-5 "
    "--observer coordinator",
)
File = Annotated[Path, typer.Argument(metavar="FILE.toml", help="The run file.")]


@app.command(
    "plan",
    epilog="Example:  tacita privacy plan examples/runs/logistic-private.toml "
    "--epsilon 1 --delta 1e-5 --observer coordinator --out private.toml",
)
def plan(
    file: File,
    epsilon: Annotated[float, typer.Option(help="The budget.")],
    delta: Annotated[float, typer.Option(help="The chance of exceeding it.")],
    observer: Observer,
    unit: Annotated[str, typer.Option(help="record or client.")] = "record",
    norm: Annotated[
        float | None, typer.Option(help="What records' gradients are clipped to.")
    ] = None,
    largest_noise: Annotated[
        float | None, typer.Option(help="Refuse more noise than this in a gradient.")
    ] = None,
    noise_kind: Annotated[
        str | None, typer.Option(help="float, or integers as in federations.")
    ] = None,
    schedule: Annotated[
        str | None,
        typer.Option(help="How noise is spread: uniform, prefix or momentum."),
    ] = None,
    change: Changes = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "--write", help="Write the run file, with noise and budget in it."
        ),
    ] = None,
) -> None:
    """Set clipping and noise for a budget, and show what every observer learns."""
    import tomli_w

    if out is not None and out.exists():
        tacita.check.refuse(
            f"--out {out} exists already; choose another name or remove it"
        )
    job = tacita.job.read(file, change or ())
    safe = tacita.private(
        job.problem,
        job.algorithm,
        epsilon=epsilon,
        delta=delta,
        observer=observer,
        unit=unit,
        norm=norm,
        largest_noise=largest_noise,
        schedule=schedule,
        noise_kind=noise_kind,
        **job.plan(),
    )
    planned = job.with_algorithm(safe)
    if tacita.trace.beyond_use(epsilon):
        typer.echo(
            f"note: epsilon {epsilon:g} is no useful bound: odds may change by "
            "a factor of e^epsilon; budgets that protect are below 10",
            err=True,
        )
    told = str(job.forecast(safe, delta=None))
    if out is not None:
        # First: whoever reads only the first lines of what is told has the file too.
        try:
            out.write_text(planned.toml, encoding="utf-8")
        except OSError as error:
            tacita.check.refuse(
                f"cannot write --out {out}: {error.strerror}; name another file"
            )
    typer.echo(told)
    tables = ("algorithm", "secure", "privacy")
    table = {key: planned.config[key] for key in tables if key in planned.config}
    typer.echo("\n" + tomli_w.dumps(table).rstrip())
    if out is not None:
        typer.echo(f"\nrun file: {out}")


@app.command("account", epilog="Example:  tacita privacy account runs/private-1")
def account(
    path: Annotated[
        Path, typer.Argument(metavar="RUN", help="A run folder, or a run file.")
    ],
    delta: Annotated[
        float | None, typer.Option(help="The delta of all epsilons; 1e-5 if left out.")
    ] = None,
    change: Changes = None,
) -> None:
    """Show what every observer of a run learns, or would learn, and by which theorem.

    Of a run folder, agents are accounted for the rounds in which they were active.
    """
    if path.is_dir():
        if change:
            tacita.check.refuse(
                "--set changes a plan; what a finished run has spent is as it is"
            )
        run = tacita.load_run(path)
        if "federation" in run.config:
            typer.echo(_of_federation(run, delta))
            return
        job = tacita.job.read(path / "config.toml")
        rule = job.options.get("aggregation")
        told = tacita.privacy.report(
            run, job.problem, job.algorithm, delta=delta, aggregation=rule
        )
    else:
        job = tacita.job.read(path, change or ())
        told = job.forecast(job.algorithm, delta)
    typer.echo(str(told))


def _of_federation(run: tacita.Run, delta: float | None) -> str:
    """What a party's folder says: only its ledger could say more."""
    if run.privacy is None:
        tacita.check.refuse(
            "this folder holds no account: only agents of a run with a budget have one"
        )
    if delta is not None:
        tacita.check.refuse(
            "a federation's run is accounted at the delta of its budget; another one "
            "is told by: tacita ledger show LEDGER --delta"
        )
    return str(run.privacy)


app.command("sign", epilog=signing.SIGN)(signing.sign)
app.command("verify", epilog=signing.VERIFY)(signing.verify)
