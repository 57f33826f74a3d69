"""`tacita new`: a folder to begin with, in which everything runs."""

from __future__ import annotations

import math
import random
import re
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

import tacita

EXAMPLE = "Example:  tacita new clinic"

HOSPITALS = ("oslo", "tampere", "turku")
_COLUMNS = ("age", "pressure", "glucose")
#: Rows of a hospital, and of those that are to be predicted.
_ROWS, _NEW = 300, 20
#: How much each column does, and how far hospitals' patients differ.
_TRUTH, _SHIFT = (1.2, 0.8, -0.6), 0.4


def new(
    folder: Annotated[
        Path, typer.Argument(metavar="NAME", help="The folder to make; also its name.")
    ],
) -> None:
    """Make a folder to begin with: three made-up hospitals, ready to run.

    It holds a run file, a policy, tables, a compose file, a systemd unit, and a README
    whose commands simulate, plan, federate, watch, report and predict.
    """
    name = folder.resolve().name
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,39}", name):
        tacita.check.refuse(
            f"expected NAME of letters, digits, '-' and '_', at most 40, got {name!r}"
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        tacita.check.refuse(f"{folder} exists and is not empty; choose another NAME")
    (folder / "rows").mkdir(parents=True, exist_ok=True)
    for path in resources.files("tacita.cli").joinpath("new_project").iterdir():
        words = path.read_text(encoding="utf-8").replace("{{name}}", name)
        (folder / path.name).write_text(words, encoding="utf-8")
    for file, lines in _tables().items():
        (folder / "rows" / file).write_text("\n".join(lines) + "\n", encoding="utf-8")
    typer.echo(f"made {folder}; begin with: cd {folder} && cat README.md")


def _tables() -> dict[str, list[str]]:
    """Made-up patients by file name, the same on every machine."""
    head = ",".join(_COLUMNS)
    together, tables = [f"{head},ill,hospital"], {}
    for number, hospital in enumerate(HOSPITALS):
        rows = _patients(number, _SHIFT * (number - 1), _ROWS)
        tables[f"{hospital}.csv"] = [f"{head},ill", *rows]
        together += [f"{row},{hospital}" for row in rows]
    unlabelled = [row.rpartition(",")[0] for row in _patients(9, 0.0, _NEW)]
    return {**tables, "all.csv": together, "new.csv": [head, *unlabelled]}


def _patients(seed: int, shift: float, count: int) -> list[str]:
    dice, lines = random.Random(seed), []
    for _ in range(count):
        x = [round(dice.gauss(shift, 1.0), 2) for _ in _COLUMNS]
        odds = 2 * sum(w * v for w, v in zip(_TRUTH, x, strict=True))
        ill = int(dice.random() < 1 / (1 + math.exp(-odds)))
        lines.append(",".join(f"{value:g}" for value in x) + f",{ill}")
    return lines
