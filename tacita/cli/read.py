"""`tacita read`: what the letters of a run tell of the rows behind them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tacita
from tacita.cli.options import Changes
from tacita.cli.show import show

EXAMPLE = "Example:  tacita read run.toml --agent 2 --rows 2 --epsilon 10 --epsilon 1"


def read(
    path: Annotated[
        Path, typer.Argument(metavar="RUN", help="A run file, or a run folder.")
    ],
    agent: Annotated[int, typer.Option(help="Number of the agent that is read.")] = 0,
    rows: Annotated[
        int, typer.Option(help="How many of its rows it is taken to hold.")
    ] = 2,
    letters: Annotated[
        int, typer.Option(help="How many of its first letters are read.")
    ] = 3,
    epsilons: Annotated[
        list[float] | None,
        typer.Option(
            "--epsilon",
            help="Budgets to set noise for, where the run has none; 100, 10 and 1.",
        ),
    ] = None,
    delta: Annotated[float, typer.Option(help="The delta of all epsilons.")] = 1e-5,
    image: Annotated[
        str | None,
        typer.Option(help="Shape of rows that are pictures, such as 28x28 or 8x8x3."),
    ] = None,
    smooth: Annotated[
        float, typer.Option(help="How much pixels are taken to be like their next.")
    ] = 0.0,
    runs: Annotated[
        int,
        typer.Option(help="Shadow runs to find members by, at least 16; 0 for none."),
    ] = 32,
    out: Annotated[
        Path | None,
        typer.Option(help="Where to write; runs/read-1, -2, ... if left out."),
    ] = None,
    change: Changes = None,
) -> None:
    """Read an agent's rows back from its letters, and see what noise buys.

    Shows rows beside what was read of them, without noise and with the noise of every
    epsilon, and how many members are found beside how many may be. Everything happens
    in a simulation with your own rows.
    """
    if out is not None:
        tacita.job.folder.refuse_used(out)
    job = tacita.job.read(path / "config.toml" if path.is_dir() else path, change or ())
    problem, asked = job.problem, job.audited()
    shape = _shape(problem, image)
    budgets = epsilons or (100.0, 10.0, 1.0)
    # Before a word is said, so that a refusal is one line.
    tacita.audits.require_letters(job.algorithm, asked["aggregation"])
    tacita.audits.with_few_rows(problem, agent, rows)
    for budget in budgets:
        tacita.check.positive(epsilon=budget)
    tacita.check.count(letters=letters)
    tacita.check.inside_unit(delta=delta)
    tacita.check.not_negative(smooth=smooth)
    if smooth > 0 and shape is None:
        tacita.check.refuse(
            f"--smooth {smooth:g} is for rows that are pictures, and these have no "
            "shape of one; give --image, or leave --smooth out"
        )
    if runs:
        tacita.check.count(tacita.audits.LEAST_RUNS, runs=runs)
    typer.echo(f"reading rows of agent {agent} ...", err=True)
    found = tacita.audits.read_back(
        problem,
        job.algorithm,
        agent=agent,
        rows=rows,
        letters=letters,
        epsilons=budgets,
        delta=delta,
        image=shape if smooth > 0 else None,
        smooth=smooth,
        **asked,
    )
    members = {}
    if runs:
        typer.echo(f"finding members by {runs} runs for every noise ...", err=True)
        members = tacita.audits.members_by_noise(
            problem,
            job.algorithm,
            agent=agent,
            epsilons=budgets,
            delta=delta,
            runs=runs,
            **asked,
        )
    typer.echo(tacita.report.reading_lede(found))
    table = tacita.report.reading_table(found)
    show(table.columns, table.rows, "right")
    if members:
        typer.echo("\nmembers found in the final model, by shadow runs")
        table = tacita.report.members_table(members)
        show(table.columns, table.rows, "right")
    typer.echo("\nwhat every epsilon rests on")
    for whom, basis in tacita.report.reading_basis(found, members):
        typer.echo(f"{whom}: {basis}")
    folder = out or tacita.job.folder.next_free("read")
    title = f"Letters of {path.stem if path.is_file() else path.name}, read back"
    page = tacita.report.write_reading(found, members, folder, title, shape)
    typer.echo(f"page: {page}")


def _shape(problem: tacita.Problem, image: str | None) -> tuple[int, ...] | None:
    x, _, counts = problem.stacked()
    row = x.shape[2:]
    ones = len(row) == 1 and bool((x[0, : counts[0], -1] == 1).all())
    if image is None:
        return tacita.report.picture_shape(row, ones)
    try:
        shape = tuple(int(part) for part in image.split("x"))
    except ValueError:
        shape = ()
    pixels = 1
    for side in shape:
        pixels *= side
    width = x[0, 0].size
    if len(shape) not in (2, 3) or pixels not in (width, width - ones):
        tacita.check.refuse(
            f"--image {image!r}: expected a shape of {width - ones} numbers such as 8x8"
        )
    return shape
