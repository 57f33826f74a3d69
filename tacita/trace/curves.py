"""Learning curves: one metric over rounds, one line per run, and what to beat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from tacita import check
from tacita.problem.problem import Problem
from tacita.theme import (
    DARK,
    LIGHT,
    Theme,
    legend,
    marks_of,
    one_axes,
    percent,
    style_of,
    title,
)
from tacita.trace import measures, over_seeds
from tacita.trace.references import majority_of, references_of
from tacita.trace.saved_run import Run
from tacita.trace.sweeps import apart

_LEGEND_COLUMNS = 4
#: Dashes that no run has, for lines that are no run.
_REFERENCES = ((0, (2, 2)), (0, (2, 4)))


def curve(
    runs: dict[str, Run],
    metric: str,
    theme: Theme,
    references: Mapping[str, float] | None = None,
) -> Figure:
    """Draw a metric of all runs that recorded it.

    Several seeds are drawn as their median with a band from the lowest to the highest;
    those that diverged are left out and counted in the legend. Values that no axis can
    hold leave a gap. Lines differ in colour, dashes and marks.

    Args:
        runs: By the names they have in the legend.
        metric: Which.
        theme: The look.
        references: Values to compare with, by name; default the share of the majority
            class, where runs of an accuracy tell of it.
    """
    figure, axes = one_axes(theme, 6.2, 3.7)
    shown = {label: run for label, run in runs.items() if metric in run.metrics}
    tables = [measures.lanes(run, metric) for run in shown.values()]
    log = measures.wants_log(tables, metric)
    order = {label: i for i, label in enumerate(runs)}
    for (label, run), table in zip(shown.items(), tables, strict=True):
        at = measures.rounds_of(run)
        style = style_of(theme, order[label])
        if len(runs) > 1 or len(at) < 3:  # a single record would be no line
            style |= marks_of(order[label], len(at))
        named = ", ".join(filter(None, (label, _diverged(table))))
        _line(axes, at, table, named, style)
    if references is None:
        references = majority_of(shown) if metric == "accuracy" else {}
    _references(axes, references, metric, theme, log)
    _scale(axes, metric, log)
    if not any(np.isfinite(measures.drawable(table)).any() for table in tables):
        words = "no value that an axis can hold"
        axes.text(
            0.5, 0.7, words, transform=axes.transAxes, color=theme.soft, ha="center"
        )
        axes.set_yticks([])
    title(axes, theme, measures.words(metric))
    axes.set_xlabel("round")
    if len(runs) > 1 or references or any(map(_diverged, tables)):
        legend(figure, theme, min(len(shown) + len(references), _LEGEND_COLUMNS))
    return figure


def plot(
    run: Run,
    metric: str | None,
    beside: Mapping[str, Run] | None,
    problem: Problem | None,
    references: Mapping[str, float] | None,
    dark: bool,
) -> Figure:
    """What `Run.plot` draws."""
    others = dict(beside or {})
    if run.name in others:
        check.refuse(f"beside has a run called {run.name!r} too; give it another name")
    runs = apart({run.name: run, **others})
    recorded = measures.names(runs)
    if not recorded:
        check.refuse(
            f"{run.name} has recorded no metric; simulate with record=('loss',)"
        )
    if metric is None:
        metric = recorded[0]
    elif metric not in recorded:
        check.refuse(
            f"{run.name} has not recorded {metric!r}; {check.nearest(metric, recorded)}"
        )
    lines = None if references is None else dict(references)
    if problem is not None:
        lines = references_of(problem, metric) | (lines or {})
    return curve(runs, metric, DARK if dark else LIGHT, lines)


def _diverged(table: np.ndarray) -> str:
    return over_seeds.told(over_seeds.astray(measures.drawable(table)))


def _line(
    axes: Any, rounds: np.ndarray, table: np.ndarray, label: str, style: dict[str, Any]
) -> None:
    table = measures.drawable(table)
    middle = over_seeds.of_seeds(table)
    # Matplotlib leaves names that begin with an underscore out of legends.
    words = f" {label}" if label.startswith("_") else label
    axes.plot(rounds, middle, label=words, linewidth=1.8, **style)
    # Rounds whose values are gaps belong to the axis too.
    ends = [(one, 0.0) for one in (*rounds[:1], *rounds[-1:])]
    axes.update_datalim(ends, updatey=False)
    alone = _between_gaps(middle)
    if alone.any() and len(middle) > 2:  # fewer have marks
        axes.plot(rounds[alone], middle[alone], "o", ms=4.5, color=style["color"])
    if len(table) > 1:
        low = over_seeds.of_seeds(table, np.nanmin)
        high = over_seeds.of_seeds(table, np.nanmax)
        axes.fill_between(
            rounds, low, high, color=style["color"], alpha=0.18, linewidth=0
        )


def _between_gaps(values: np.ndarray) -> np.ndarray:
    """Which values no line shows: those without one before and after them."""
    there = np.pad(np.isfinite(values), 1)
    return there[1:-1] & ~there[:-2] & ~there[2:]


def _references(
    axes: Any, values: Mapping[str, float], metric: str, theme: Theme, log: bool
) -> None:
    for number, (words, value) in enumerate(values.items()):
        if not np.isfinite(value) or (log and value <= 0):
            continue
        told = f"{value:.1%}" if measures.is_share(metric) else f"{value:.4g}"
        dashes = _REFERENCES[number % len(_REFERENCES)]
        axes.axhline(
            value, color=theme.soft, lw=1.2, ls=dashes, label=f"{words}: {told}"
        )


def _scale(axes: Any, metric: str, log: bool) -> None:
    axes.margins(x=0.01)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))
    if log:
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        if high < 100 * low:  # powers of ten alone would leave an axis without ticks
            axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        else:
            axes.yaxis.set_major_locator(LogLocator(numticks=7))
        axes.yaxis.set_minor_locator(NullLocator())
    elif measures.is_share(metric):
        axes.yaxis.set_major_formatter(percent)
