"""`tacita demo`: FedAvg and FedProx on handwritten digits, compared on one page."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

import tacita
from tacita.cli.execute import execute

EXAMPLE = "Example:  tacita demo"

NAMES = {"fedavg": "FedAvg", "fedprox": "FedProx"}


def demo(
    out: Annotated[
        Path, typer.Option(help="Where to write; an earlier demo there is replaced.")
    ] = Path("runs/demo"),
    rounds: Annotated[int | None, typer.Option(help="Rounds of each run.")] = None,
) -> None:
    """Compare FedAvg and FedProx on handwritten digits; well under a minute."""
    import numpy as np

    changes = () if rounds is None else (f"run.rounds={rounds}",)
    first = tacita.job.read(Path(__file__).with_name("demo.toml"), changes)
    other = tacita.FedProx(eta=4.0, step_size=0.4, local_steps=20)
    jobs = {"fedavg": first, "fedprox": first.with_algorithm(other, "fedprox")}
    _make_room(out)
    runs = {}
    for name, job in jobs.items():
        typer.echo(f"{NAMES[name]}: {job.problem!r}")
        made = tacita.job.folder.create(out / name, name, job.toml)
        runs[NAMES[name]] = execute(job, made)
    page = tacita.report.write_report(
        runs, out, title="FedAvg and FedProx on handwritten digits"
    )
    typer.echo()
    for label, run in runs.items():
        reached = np.median(run.metrics["test_accuracy"][..., -1])
        typer.echo(f"{label:8} test accuracy {100 * reached:.1f} %")
    typer.echo(f"report: {page}")


def _make_room(out: Path) -> None:
    """Remove an earlier demo, and refuse a folder that holds anything else."""
    if not out.exists():
        return
    if not out.is_dir():
        tacita.check.refuse(f"--out {out} is a file; name a folder")
    ours = {*NAMES, "report.html"}
    for path in out.iterdir():
        if path.name not in ours and path.suffix != ".png":
            tacita.check.refuse(
                f"--out {out} holds {path.name!r}, which is not of a demo; choose "
                "another folder"
            )
    for name in NAMES:
        shutil.rmtree(out / name, ignore_errors=True)
