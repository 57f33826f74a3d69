"""Where results go, pages and pictures of curves."""

from __future__ import annotations

import argparse
import inspect
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tacita.theme import LIGHT, dress, new_figure, png

RESULTS = Path(__file__).parent.parent / "results"


def grid(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A Markdown table; numbers with three decimals, what is missing as a dash."""
    lines = ["| " + " | ".join(columns) + " |", "| --- " * len(columns) + "|"]
    lines += ["| " + " | ".join(map(shown, row)) + " |" for row in rows]
    return "\n".join(lines)


def shown(cell: Any) -> str:
    """One cell.

    >>> shown(0.71249), shown(float("nan")), shown("words")
    ('0.712', '–', 'words')
    """
    if not isinstance(cell, float | np.floating):
        return str(cell)
    return "–" if np.isnan(cell) else f"{cell:.3f}"


def write_page(out: Path, name: str, parts: Sequence[str]) -> Path:
    """Write NAME.md and return its path."""
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"{name}.md"
    path.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return path


def draw(
    path: Path,
    panels: dict[str, dict[str, tuple[Any, ...]]],
    x_label: str,
    y_label: str,
    log_x: bool = False,
) -> None:
    """Panels side by side, each with named curves (x, y), or (x, y, spread).

    The same method has one colour, dashed where its noise is the sound one; a band is
    as wide as the spread over seeds.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    figure = new_figure(LIGHT, 3.4 * max(2, len(panels)), 3.6)
    colors: dict[str, Any] = {}
    every_axes: Any = figure.subplots(1, len(panels), squeeze=False, sharey=False)
    for axes, (title, curves) in zip(every_axes[0], panels.items(), strict=True):
        dress(axes, LIGHT)
        axes.set_title(title, fontsize=10, color=LIGHT.ink)
        for name, (x, y, *spread) in curves.items():
            next_color = LIGHT.series[len(colors) % len(LIGHT.series)]
            color = colors.setdefault(name.replace("sound", "paper"), next_color)
            for s in spread:
                low, high = np.subtract(y, s), np.add(y, s)
                axes.fill_between(x, low, high, color=color, alpha=0.2, linewidth=0)
            axes.plot(
                x,
                y,
                color=color,
                linestyle="--" if "sound" in name else "-",
                linewidth=1.5,
                marker=".",
                label=name,
            )
        axes.set_xlabel(x_label)
        if log_x:
            _logarithmic(
                axes, [float(value) for x, *_ in curves.values() for value in x]
            )
    every_axes[0][0].set_ylabel(y_label)
    handles, labels = [], []
    for axes in every_axes[0]:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            if label not in labels:
                handles.append(handle)
                labels.append(label)
    figure.legend(
        handles,
        labels,
        loc="outside lower left",
        ncols=2 if len(panels) < 3 else 3,
        frameon=False,
        labelcolor=LIGHT.ink,
        fontsize=8,
    )
    path.write_bytes(png(figure))


def _logarithmic(axes: Any, values: Sequence[float]) -> None:
    """A logarithmic axis, with a straight piece down to 0 where that is among them.

    What was run is written below it.
    """
    runs = sorted({*values})
    if runs[0] > 0:
        axes.set_xscale("log")
    else:
        axes.set_xscale("symlog", linthresh=runs[1])
    axes.set_xticks(runs, labels=_marks(runs))
    axes.set_xticks([], minor=True)


def _marks(values: Sequence[float]) -> list[str]:
    r"""Short words for numbers in order; of two close ones the second stands lower.

    >>> _marks([1e-5, 5e-5, 1e-4, 1e-3, 1e-2])
    ['1e-5', '5e-5', '\n1e-4', '0.001', '0.01']
    """
    marks: list[str] = []
    span = values[-1] / (values[0] or values[1] / 10)
    for k, value in enumerate(values):
        told = f"{value:g}".replace("e-0", "e-")
        told = f"{value:.0e}".replace("e-0", "e-") if 0 < value < 1e-3 else told
        close = k > 0 and values[k - 1] > 0 and (value / values[k - 1]) ** 6 < span
        lower = close and not marks[-1].startswith("\n")
        marks.append("\n" * lower + told)
    return marks


def script(main: Callable[..., Path]) -> None:
    """Run a script's `main` from the command line and say what it wrote."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--out", type=Path, default=RESULTS)
    takes = inspect.signature(main).parameters
    for name in takes.keys() & {"repetitions", "rounds", "splits", "seeds"}:
        parser.add_argument(f"--{name}", type=int)
    if "size" in takes:
        parser.add_argument("--size")
    if "resume" in takes:
        parser.add_argument("--resume", action="store_true")
    given = {k: v for k, v in vars(parser.parse_args()).items() if v is not None}
    began = time.perf_counter()
    page = main(**given)
    print(page.read_text(encoding="utf-8"))
    print(f"{page}, in {time.perf_counter() - began:.0f} s")
