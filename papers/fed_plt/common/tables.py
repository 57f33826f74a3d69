"""Writing a result: one Markdown page and one CSV, and running a script by itself."""

from __future__ import annotations

import argparse
import csv
import inspect
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from papers.fed_plt.common.tuning import (
    FINALISTS,
    PROBES,
    RATE_ROUNDS,
    RATE_ROUNDS_PARTIAL,
    Choice,
)

RESULTS = Path(__file__).parent.parent / "results"
REPETITIONS = 100


class Time(float):
    """A time, shown as the paper prints it; in a CSV, the number.

    >>> str(Time(13500)), str(Time(2.884e6)), str(Time("nan"))
    ('13.5k', '2.884M', '–')
    """

    def __str__(self) -> str:
        if not math.isfinite(self):
            return "–"
        value = float(self)
        return f"{value / 1e6:.4g}M" if value >= 1e6 else f"{value / 1e3:.4g}k"


class Spread:
    """Values over repetitions; in a CSV mean, standard deviation and number missing.

    >>> print(Spread([8.0, 10.0, float("nan")]))
    9.0 ± 1.0 (1 of 3 not arrived)
    """

    def __init__(self, values: Sequence[float] | np.ndarray, digits: int = 1) -> None:
        known = np.asarray(values, np.float64)
        arrived = known[np.isfinite(known)]
        self.missing, self.count = len(known) - len(arrived), len(known)
        self.mean = float(arrived.mean()) if len(arrived) else math.nan
        self.sd = float(arrived.std()) if len(arrived) else math.nan
        self._digits = digits

    def __str__(self) -> str:
        if self.missing == self.count:
            return f"none of {self.count} arrived"
        told = f"{self.mean:.{self._digits}f} ± {self.sd:.{self._digits}f}"
        lost = f" ({self.missing} of {self.count} not arrived)" if self.missing else ""
        return told + lost


#: A cell: words, a number, a spread, or nothing.
Cell = str | float | Spread | None


@dataclass
class Page:
    """A table with the paper's numbers beside ours, and what is to be said of it.

    Attributes:
        title: The heading.
        setup: How it was made, a paragraph each.
        columns: Headings.
        rows: Cells, row by row; the CSV holds the same ones.
        remarks: What differs from print and why, a paragraph each.
        tuned: Grids and choices by name, told in a table of their own.
    """

    title: str
    setup: Sequence[str]
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    remarks: Sequence[str]
    tuned: dict[str, Choice] = field(default_factory=dict)

    def markdown(self) -> str:
        """The page."""
        parts = [f"# {self.title}", *self.setup, _grid(self.columns, self.rows)]
        parts += self.remarks
        if self.tuned:
            rows = [
                (name, one.words, _listed(one.best_each), _listed(one.kept))
                for name, one in self.tuned.items()
            ]
            heads = ("tuned", "chosen, of the grid (on the first tuning instance)")
            heads += ("best of each tuning instance", "common choice there")
            parts += ["## Tuning", _grid(heads, rows)]
        return "\n\n".join(parts) + "\n"

    def write(self, out: Path, name: str) -> Path:
        """Write NAME.md and NAME.csv into a folder; the page's path."""
        out.mkdir(parents=True, exist_ok=True)
        page = out / f"{name}.md"
        page.write_text(self.markdown(), encoding="utf-8")
        with open(out / f"{name}.csv", "w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(self._lines())
        return page

    def _lines(self) -> list[list[str]]:
        """The CSV, plain numbers only: a spread takes three columns."""
        wide = [
            any(isinstance(row[k], Spread) for row in self.rows)
            for k in range(len(self.columns))
        ]
        heads: list[str] = []
        for head, three in zip(self.columns, wide, strict=True):
            head = head.replace(" (mean ± sd)", "")
            heads += [head, f"{head}: sd", f"{head}: missing"] if three else [head]
        lines = [heads]
        for row in self.rows:
            line: list[str] = []
            for cell, three in zip(row, wide, strict=True):
                line += _plain(cell, three)
            lines.append(line)
        return lines


def _listed(values: np.ndarray) -> str:
    return ", ".join(f"{v:.3g}" for v in values)


def _grid(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    lines = ["| " + " | ".join(columns) + " |", "| --- " * len(columns) + "|"]
    lines += ["| " + " | ".join(_shown(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def _shown(cell: Cell) -> str:
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return "–"
    plain_number = isinstance(cell, float) and not isinstance(cell, Time)
    return f"{cell:.4g}" if plain_number else str(cell)


def _plain(cell: Cell, three: bool) -> list[str]:
    if isinstance(cell, Spread):
        return [f"{cell.mean:.6g}", f"{cell.sd:.6g}", str(cell.missing)]
    if cell is None or cell == "–" or (isinstance(cell, float) and math.isnan(cell)):
        word = ""
    else:
        word = cell if isinstance(cell, str) else f"{float(cell):.6g}"
    return [word, "", ""] if three else [word]


def tuning_words(instances: int, rates: bool = False) -> str:
    """The paragraph on tuning, grid and budget of tables that compare methods."""
    probes = ", then ".join(map(str, PROBES))
    budget = (
        f"{RATE_ROUNDS} rounds ({RATE_ROUNDS_PARTIAL} with half of the agents)"
        if rates
        else f"{probes} rounds until one arrives"
    )
    return (
        f"Tuning, the same for all: 48 candidates get {budget} on {instances} "
        f"instances that are not among the repetitions. The {FINALISTS} with the best "
        "means are run in every repetition, and the best of them counts: each method "
        "is tuned to each draw of the data. Plain methods have the grids of "
        "`tacita.tune`; all grids are in units of the problem's curvature."
    )


def script(main: Callable[..., Path]) -> None:
    """Run a script's `main` from the command line and say what it wrote."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    if "resume" in inspect.signature(main).parameters:
        parser.add_argument("--resume", action="store_true")
    given = parser.parse_args()
    began = time.perf_counter()
    page = main(**vars(given))
    print(page.read_text(encoding="utf-8"))
    print(f"{page}, in {time.perf_counter() - began:.0f} s")
