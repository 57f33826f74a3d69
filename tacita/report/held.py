"""Who holds what, drawn from the counts that a run folder keeps."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from tacita.report.theme import Theme, dress, new_figure

# Up to here every agent has a line with its name; above, agents are sorted by rows.
_NAMED = 60
_BUBBLES = 20
_LONGEST_NAME = 28


def held_picture(held: dict[str, Any], theme: Theme) -> Figure:
    """Draw the rows of every agent and, for a classification, their classes.

    A bubble's area is a number of rows; with many agents or classes, a shaded table
    shows the share of each class among an agent's rows. Bars count the rows.
    """
    names = [str(name) for name in held["agent"]]
    rows = np.asarray(held["rows"], dtype=int)
    classes = [key for key in held if key not in ("agent", "rows")]
    many = len(names) > _NAMED
    order = np.argsort(-rows, kind="stable") if many else np.arange(len(names))
    high = 5.6 if many else max(2.4, 1.2 + 0.25 * len(names))
    figure = new_figure(theme, 7.6 if classes else 6.2, high)
    if classes:
        main, side = figure.subplots(
            1, 2, sharey=True, gridspec_kw={"width_ratios": [4, 1.2]}
        )
        dress(main, theme)
        counts = np.array([held[label] for label in classes], dtype=int).T
        shaded = many or len(classes) > _BUBBLES
        (_shades if shaded else _bubbles)(main, counts[order], theme)
        _name_classes(main, classes)
    else:
        main = side = figure.subplots()
    dress(side, theme)
    _bars(side, rows[order], theme, many)
    _name_agents(main, [names[i] for i in order], many)
    return figure


def _bubbles(axes: Any, counts: np.ndarray, theme: Theme) -> None:
    where = np.argwhere(counts > 0)
    # Never so small that a class held by one row looks like a class not held.
    area = np.maximum(220 * counts[counts > 0] / counts.max(), 4)
    axes.scatter(where[:, 1], where[:, 0], s=area, c=theme.series[0], lw=0, zorder=2)


def _shades(axes: Any, counts: np.ndarray, theme: Theme) -> None:
    colours = LinearSegmentedColormap.from_list("held", [theme.pale, theme.series[0]])
    total = np.maximum(counts.sum(axis=1, keepdims=True), 1)
    axes.grid(False)
    axes.set_title(
        "share of each class among an agent's rows",
        loc="left",
        fontsize=9.5,
        color=theme.soft,
    )
    axes.imshow(
        counts / total, aspect="auto", cmap=colours, vmin=0, interpolation="nearest"
    )


def _bars(axes: Any, rows: np.ndarray, theme: Theme, many: bool) -> None:
    axes.barh(
        np.arange(len(rows)),
        rows,
        height=1.0 if many else 0.6,
        color=theme.series[0],
        lw=0,
    )
    axes.set_xlabel("rows")
    axes.grid(False)
    if many:
        axes.xaxis.set_major_locator(MaxNLocator(3, integer=True))
        return
    axes.set_xticks([])  # every bar carries its number
    axes.set_xlim(0, rows.max() * 1.35)
    for i, n in enumerate(rows):
        axes.annotate(
            f"{n:,}".replace(",", " "),
            (n, i),
            (4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
            color=theme.soft,
        )


def _name_classes(axes: Any, classes: list[str]) -> None:
    turned = len(classes) * max(map(len, classes)) > 60
    few = len(classes) <= _BUBBLES
    axes.set_xticks(
        range(len(classes)) if few else [],
        [_short(c) for c in classes] if few else [],
        rotation=40 if turned else 0,
        ha="right" if turned else "center",
    )
    axes.set_xlim(-0.6, len(classes) - 0.4)
    axes.set_xlabel("class" if few else f"{len(classes)} classes")


def _name_agents(axes: Any, names: list[str], many: bool) -> None:
    if many:
        axes.set_ylabel(f"{len(names)} agents, those with most rows on top")
        axes.set_yticks([])
    else:
        axes.set_yticks(range(len(names)), [_short(name) for name in names])
        axes.set_ylabel("agent")
    axes.set_ylim(len(names) - 0.4, -0.6)


def _short(name: str) -> str:
    # A dollar sign would start a formula.
    cut = name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"
    return cut.replace("$", r"\$")
