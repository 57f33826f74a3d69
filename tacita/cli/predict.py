"""`tacita predict`: what a run's model says of new rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tacita

EXAMPLE = "Example:  tacita predict runs/clinic-1 new.csv --out predictions.csv"


def predict(
    folder: Annotated[
        Path, typer.Argument(metavar="RUN", help="The folder of a run, or of a model.")
    ],
    table: Annotated[
        Path, typer.Argument(metavar="TABLE", help="New rows: a CSV or Parquet file.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="The CSV file to make; stdout if left out.")
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option(help="Whose model, where every agent has one of its own."),
    ] = None,
    separator: Annotated[
        str, typer.Option(help="Between the fields of a text file.")
    ] = ",",
) -> None:
    """Predict new rows: one line per row, in their order.

    Columns are found by their names, scaled and coded as in training; columns that the
    model does not use are left aside. Neither the run's data nor its run file are read.
    """
    if out is not None and out.exists():
        tacita.check.refuse(f"--out {out} exists already; name another file")
    model = tacita.load_model(folder)
    if agent is None and model.nodes is not None:
        tacita.check.refuse(
            "every agent of this run has a model of its own; say whose with --agent, "
            f"one of {', '.join(str(one) for one in model.nodes[:20])}"
        )
    rows = tacita.data.read_frame(table, separator, levels=model.levels)
    words = model.predict_frame(rows, agent, told=str(table)).to_csv(index=False)
    surplus = model.surplus(rows)
    if surplus:
        named = ", ".join(tacita.check.printable(name) for name in surplus)
        typer.echo(f"note: the model does not use the columns {named}", err=True)
    if out is None:
        typer.echo(words, nl=False)
        return
    from tacita.disk import write_whole  # slow to import, and help does without

    content = words.encode()
    write_whole(out, lambda path: path.write_bytes(content))
    typer.echo(f"{len(rows)} predictions: {out}")
