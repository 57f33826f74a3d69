"""Learning curves: one metric over rounds, one line per run."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator, PercentFormatter

from tacita.report import measures
from tacita.theme import Theme, legend, one_axes, style_of, title
from tacita.trace import Run

_LEGEND_COLUMNS = 4


def curve(runs: dict[str, Run], metric: str, theme: Theme) -> Figure:
    """Draw a metric of all runs that recorded it.

    Several seeds are drawn as their median with a band from the lowest to the highest.
    Values that no axis can hold leave a gap.
    """
    figure, axes = one_axes(theme, 6.2, 3.7)
    shown = {label: run for label, run in runs.items() if metric in run.metrics}
    tables = [measures.lanes(run, metric) for run in shown.values()]
    log = measures.wants_log(tables, metric)
    order = {label: i for i, label in enumerate(runs)}
    for (label, run), table in zip(shown.items(), tables, strict=True):
        _line(
            axes, measures.rounds_of(run), table, label, style_of(theme, order[label])
        )
    _scale(axes, metric, log)
    title(axes, theme, measures.words(metric))
    axes.set_xlabel("round")
    if len(runs) > 1:
        legend(figure, theme, min(len(shown), _LEGEND_COLUMNS))
    return figure


def _line(
    axes: Any, rounds: np.ndarray, table: np.ndarray, label: str, style: dict[str, Any]
) -> None:
    table = measures.drawable(table)
    middle = np.median(table, axis=0)
    # A single record is a point, which a line would not show.
    marker = "o" if len(rounds) < 3 else None
    axes.plot(rounds, middle, label=label, linewidth=1.8, marker=marker, **style)
    if len(table) > 1:
        low, high = table.min(axis=0), table.max(axis=0)
        axes.fill_between(
            rounds, low, high, color=style["color"], alpha=0.18, linewidth=0
        )


def _scale(axes: Any, metric: str, log: bool) -> None:
    axes.margins(x=0.01)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
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
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=None))
