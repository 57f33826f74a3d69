"""`tacita privacy`: which noise for a budget, and which budget for a noise."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from tacita.trace import PrivacyReport

app = typer.Typer(
    no_args_is_help=True,
    help="Plan and account what observers may learn.",
    epilog="Example:  tacita privacy plan private.toml --epsilon 1 --delta 1e-5 "
    "--observer coordinator",
)
File = Annotated[Path, typer.Argument(metavar="FILE.toml", help="The run file.")]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Change a key of the run file. Repeatable."
    ),
]
Delta = Annotated[
    float | None, typer.Option(help="The delta of all epsilons; 1e-5 if left out.")
]


@app.command(
    "plan",
    epilog="Example:  tacita privacy plan examples/runs/logistic-private.toml "
    "--epsilon 1 --delta 1e-5 --observer coordinator --out private.toml",
)
def plan(
    file: File,
    epsilon: Annotated[float, typer.Option(help="The budget.")],
    delta: Annotated[float, typer.Option(help="The chance of exceeding it.")],
    observer: Annotated[
        str,
        typer.Option(help="final_model, coordinator, neighbour or eavesdropper."),
    ],
    unit: Annotated[str, typer.Option(help="record or client.")] = "record",
    norm: Annotated[
        float | None, typer.Option(help="What records' gradients are clipped to.")
    ] = None,
    largest_noise: Annotated[
        float | None, typer.Option(help="Refuse more noise than this in a gradient.")
    ] = None,
    change: Changes = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the run file with the noise set.")
    ] = None,
) -> None:
    """Set clipping and noise for a budget, and show what every observer learns."""
    import tomli_w

    from tacita.check import refuse
    from tacita.privacy import forecast, private
    from tacita.trace import plain_values

    if out is not None and out.exists():
        refuse(f"--out {out} exists already; choose another name or remove it")
    job = read(file, change)
    asked = {key: job.options[key] for key in ("rounds", "participation")}
    safe = private(
        job.problem,
        job.algorithm,
        epsilon=epsilon,
        delta=delta,
        observer=observer,
        unit=unit,
        norm=norm,
        largest_noise=largest_noise,
        **asked,
    )
    planned, table = forecast(job.problem, safe, **asked), _as_table(safe)
    if out is not None:
        whole = plain_values({**job.config, "algorithm": table})
        _write(out, tomli_w.dumps(whole))
    tell(planned)
    typer.echo("\n" + tomli_w.dumps({"algorithm": plain_values(table)}).rstrip())
    if out is not None:
        typer.echo(f"\nrun file: {out}")


@app.command("account", epilog="Example:  tacita privacy account runs/private-1")
def account(
    path: Annotated[
        Path, typer.Argument(metavar="RUN", help="A run folder, or a run file.")
    ],
    delta: Delta = None,
    change: Changes = None,
) -> None:
    """Show what every observer of a run learns, or would learn, and by which theorem.

    Of a run folder, agents are accounted for the rounds in which they were active.
    """
    from tacita.check import refuse
    from tacita.privacy import forecast, report
    from tacita.trace import load_run

    if not path.is_dir():
        job = read(path, change)
        asked = {key: job.options[key] for key in ("rounds", "participation")}
        tell(forecast(job.problem, job.algorithm, delta=delta, **asked))
        return
    if change:
        refuse("--set changes a plan; what a finished run has spent is as it is")
    run, job = load_run(path), read(path / "config.toml", None)
    tell(report(run, job.problem, job.algorithm, delta=delta))


def read(file: Path, change: list[str] | None) -> Any:
    """A run file made ready."""
    from tacita.job import job_from, run_file
    from tacita.job.changes import with_changes

    return job_from(with_changes(run_file.read(file), change or []), file.parent)


def tell(told: PrivacyReport) -> None:
    """Show a privacy report: the table, and what its marks stand for."""
    typer.echo(str(told))


def _write(out: Path, text: str) -> None:
    from tacita.check import refuse

    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        refuse(f"cannot write --out {out}: {error.strerror}; name another file")


def _as_table(algorithm: Any) -> dict[str, Any]:
    """The algorithm as a run file writes it; the promise stays with the plan."""
    from tacita.runtime.finish import describe

    table = describe(algorithm)
    oracle = table["oracle"]
    oracle.get("oracle", oracle).pop("promise", None)
    oracle.pop("promise", None)
    return table
