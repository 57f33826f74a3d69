"""`tacita demo`: FedAvg and FedProx on handwritten digits, compared on one page."""

from __future__ import annotations

import copy
import shutil
from pathlib import Path
from typing import Annotated, Any

import typer

import tacita
from tacita.cli.execute import execute
from tacita.cli.options import refuse

EXAMPLE = "Example:  tacita demo"

#: Digits that scikit-learn brings along, spread unevenly by class over 20 agents, of
#: which five are active in a round.
SHARED: dict[str, Any] = {
    "problem": {
        "data": "digits",
        "model": "softmax",
        "l2": 1e-3,
        "intercept": True,
        "scale": "minmax",
        "test_share": 0.25,
        "split": {"kind": "dirichlet", "agents": 20, "alpha": 0.1, "min_rows": 10},
        "seed": 0,
    },
    "run": {
        "rounds": 150,
        "seeds": 3,
        "participation": 5,
        "record": ["loss", "disagreement", "test_loss", "test_accuracy"],
    },
}
ALGORITHMS: dict[str, dict[str, Any]] = {
    "fedavg": {"name": "FedAvg", "step_size": 0.5, "local_steps": 20},
    "fedprox": {"name": "FedProx", "eta": 4.0, "step_size": 0.4, "local_steps": 20},
}


def demo(
    out: Annotated[
        Path, typer.Option(help="Where to write; an earlier demo there is replaced.")
    ] = Path("runs/demo"),
    rounds: Annotated[int | None, typer.Option(help="Rounds of each run.")] = None,
) -> None:
    """Compare FedAvg and FedProx on handwritten digits; well under a minute."""
    import numpy as np

    jobs = {}
    for name, algorithm in ALGORITHMS.items():
        table = {"name": name, **copy.deepcopy(SHARED), "algorithm": algorithm}
        if rounds is not None:
            table["run"]["rounds"] = rounds
        jobs[name] = tacita.job.job_from(table, Path())
    _make_room(out)
    runs = {}
    for name, job in jobs.items():
        typer.echo(f"{ALGORITHMS[name]['name']}: {job.problem!r}")
        made = tacita.job.folder.create(out / name, name, job.toml)
        runs[ALGORITHMS[name]["name"]] = execute(job, made)
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
        refuse(f"--out {out} is a file; name a folder")
    ours = {*ALGORITHMS, "report.html"}
    for path in out.iterdir():
        if path.name not in ours and path.suffix != ".png":
            refuse(
                f"--out {out} holds {path.name!r}, which is not of a demo; choose "
                "another folder"
            )
    for name in ALGORITHMS:
        shutil.rmtree(out / name, ignore_errors=True)
