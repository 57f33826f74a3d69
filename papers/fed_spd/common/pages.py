"""Writing a result: a picture, a Markdown page and a CSV; running a script."""

from __future__ import annotations

import argparse
import csv
import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tacita.theme import LIGHT, dress, new_figure, png

RESULTS = Path(__file__).parent.parent / "results"
REPETITIONS = 10
MAJORITY, NOT_PRIVATE = 0.7638, 0.852

#: By name: x, mean and half-width of a band.
Lines = Mapping[str, tuple[np.ndarray, np.ndarray, np.ndarray]]


def draw(
    path: Path,
    panels: Sequence[tuple[str, str, Lines]],
    *,
    log_x: bool = False,
    marks: Mapping[str, float] | None = None,
) -> None:
    """Panels of lines with bands, one legend.

    Args:
        path: Where the PNG goes.
        panels: Words for x and y, and the lines.
        log_x: Whether x is drawn on a logarithmic scale.
        marks: Horizontal lines by name, in the first panel.
    """
    figure = new_figure(LIGHT, 4.6 * len(panels) + 1.2, 4.2)
    all_axes: Any = figure.subplots(1, len(panels), squeeze=False)[0]
    for k, (axes, (x_words, y_words, lines)) in enumerate(
        zip(all_axes, panels, strict=True)
    ):
        dress(axes, LIGHT)
        for color, (name, (x, mean, spread)) in zip(
            LIGHT.series, lines.items(), strict=False
        ):
            label = name if k == 0 else None
            axes.plot(
                x,
                mean,
                color=color,
                linewidth=1.7,
                label=label,
                marker="o" if log_x else None,
                markersize=4,
            )
            low, high = mean - spread, mean + spread
            axes.fill_between(x, low, high, color=color, alpha=0.15, linewidth=0)
        for name, height in (marks or {}).items() if k == 0 else ():
            axes.axhline(height, color=LIGHT.ink, linewidth=0.8, dashes=(4, 3))
            axes.annotate(
                name,
                (0.01, height),
                xycoords=("axes fraction", "data"),
                va="bottom",
                fontsize=8,
                color=LIGHT.ink,
            )
        if log_x:
            axes.set_xscale("log")
            ticks = np.unique(np.concatenate([x for x, _, _ in lines.values()]))
            axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            axes.set_xticks([], minor=True)
        axes.set_xlabel(x_words)
        axes.set_ylabel(y_words)
    figure.legend(
        loc="outside lower left",
        ncols=3,
        frameon=False,
        labelcolor=LIGHT.ink,
        fontsize=9,
    )
    path.write_bytes(png(figure))


def grid(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(columns) + " |", "| --- " * len(columns) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def write(
    out: Path,
    name: str,
    title: str,
    before: Sequence[str],
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    after: Sequence[str],
) -> Path:
    """Write NAME.md and NAME.csv into a folder; the page's path."""
    out.mkdir(parents=True, exist_ok=True)
    page = out / f"{name}.md"
    parts = [f"# {title}", *before, grid(columns, rows), *after]
    page.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    with open(out / f"{name}.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows([columns, *rows])
    return page


def told(values: Any, digits: int = 4) -> str:
    """Mean and standard deviation over repetitions."""
    values = np.asarray(values, float)
    if np.isnan(values).any():
        return "–"
    return f"{values.mean():.{digits}f} ± {values.std():.{digits}f}"


def script(main: Callable[..., Path]) -> None:
    """Run a page's `main` from the command line."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    if "resume" in inspect.signature(main).parameters:
        parser.add_argument("--resume", action="store_true")
    given = parser.parse_args()
    began = time.perf_counter()
    written = main(**vars(given))
    print(f"{written} ({time.perf_counter() - began:.0f} s)")
