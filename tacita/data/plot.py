"""Who holds what, as a picture.

Drawn on a `matplotlib.figure.Figure` of its own: no window, no global state.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from tacita.check import refuse
from tacita.data.dataset import Dataset
from tacita.data.holdings import class_counts, holders

_INK = "#2b6777"
_PALE = "#d5e5e8"
_LABEL = "#444444"
# Up to here every agent has a line with its name; above, only its place is shown.
_NAMED = 60
_BUBBLES = 20
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def plot_who_holds_what(data: Dataset, path: str | Path | None = None) -> Figure:
    """Draw how the rows and their targets are spread over the agents.

    Classes: one bubble per agent and class, its area the number of rows (above 60
    agents or 20 classes: a table shaded by share, agents with most rows on top).
    A real target: the middle half and the middle nine tenths of each agent's values,
    agents with the highest median on top. Bars on the right count the rows.

    Args:
        data: The data set, with agents.
        path: Where to save the picture (.png, .pdf, .svg); None to save nothing.

    Returns:
        The figure.
    """
    agent, names = holders(data)
    many = len(names) > _NAMED
    classes = data.task == "classification"
    wide = min(6.0 + 0.3 * len(data.classes), 11.0) if classes else 7.5
    high = 6.5 if many else 1.7 + 0.26 * len(names)
    figure = Figure(figsize=(wide, max(high, 2.6)), layout="constrained")
    main, side = figure.subplots(
        1, 2, sharey=True, gridspec_kw={"width_ratios": [5, 1.3]}
    )
    rows = np.bincount(agent, minlength=len(names))
    if classes:
        order = _draw_classes(main, data, wide)
    else:
        order = _draw_values(main, data.y, agent, len(names), data.target_name)
    _draw_rows(side, rows[order], many)
    _name_agents(main, [names[i] for i in order], many)
    whose = f"{len(names):,} agent{'s' if len(names) > 1 else ''}"
    if data.agent is None:
        whose = names[0]
    title = f"{data.name}: {len(data):,} rows held by {whose}"
    figure.suptitle(title, fontsize=11, color=_LABEL)
    if path is not None:
        _save(figure, Path(path))
    return figure


def _draw_classes(axes: Any, data: Dataset, wide: float) -> np.ndarray:
    """Bubbles in the order of the agents, or shades from most rows to fewest."""
    counts = class_counts(data)
    agents, classes = counts.shape
    if agents > _NAMED or classes > _BUBBLES:
        order = np.argsort(-counts.sum(axis=1), kind="stable")
        _shades(axes, counts[order])
    else:
        order = np.arange(agents)
        where = np.argwhere(counts > 0)
        # Never so small that a class held by one row looks like a class not held.
        size = np.maximum(230 * counts[counts > 0] / counts.max(), 4)
        axes.scatter(where[:, 1], where[:, 0], s=size, c=_INK, lw=0, zorder=2)
        axes.grid(color="#eeeeee", lw=0.8)
        axes.set_axisbelow(True)
    labels = [repr(c)[1:-1] if c.isspace() else c for c in data.classes]
    turned = classes * (max(map(len, labels)) + 2) > 8 * wide and classes <= _BUBBLES
    axes.set_xticks(
        range(classes),
        labels,
        rotation=40 if turned else 0,
        ha="right" if turned else "center",
        fontsize=8 if classes <= _BUBBLES else 6,
    )
    axes.set_xlim(-0.6, classes - 0.4)
    axes.set_xlabel(data.target_name)
    return order


def _shades(axes: Any, counts: np.ndarray) -> None:
    """The share of each class among an agent's rows, as a shaded table."""
    picture = axes.imshow(
        counts / counts.sum(axis=1, keepdims=True),
        aspect="auto",
        cmap=LinearSegmentedColormap.from_list("held", ["#f7fafa", "#8fbcc4", _INK]),
        vmin=0,
        interpolation="nearest",
    )
    bar = axes.figure.colorbar(
        picture, ax=axes, location="top", shrink=0.45, aspect=40, pad=0.02
    )
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=7)
    bar.ax.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    bar.set_label("share of the agent's rows", fontsize=8, color=_LABEL)


def _draw_values(
    axes: Any, y: np.ndarray, agent: np.ndarray, agents: int, label: str
) -> np.ndarray:
    """Quantiles of every agent's target, from the lowest median to the highest."""
    order_by = np.argsort(agent, kind="stable")
    parts = np.split(y[order_by], np.cumsum(np.bincount(agent, minlength=agents))[:-1])
    table = np.array([np.quantile(part, _QUANTILES) for part in parts])
    order = np.argsort(table[:, 2], kind="stable")[::-1]
    low, first, middle, third, high = table[order].T
    place = np.arange(agents)
    if agents > _NAMED:
        axes.fill_betweenx(place, low, high, color=_PALE, lw=0, label="middle 90 %")
        axes.fill_betweenx(
            place, first, third, color="#8fbcc4", lw=0, label="middle half"
        )
        axes.plot(middle, place, color=_INK, lw=1.4, label="median")
    else:
        axes.hlines(place, low, high, color="#9cc3ca", lw=1.5, label="middle 90 %")
        axes.hlines(place, first, third, color=_INK, lw=5, label="middle half")
        axes.plot(middle, place, "o", ms=4, mfc="white", mec=_INK, label="median")
        axes.grid(axis="x", color="#eeeeee", lw=0.8)
    axes.set_axisbelow(True)
    axes.set_xlabel(label)
    axes.figure.legend(
        *axes.get_legend_handles_labels(),
        loc="outside lower center",
        ncols=3,
        frameon=False,
        fontsize=8,
    )
    return order


def _draw_rows(axes: Any, rows: np.ndarray, many: bool) -> None:
    place = np.arange(len(rows))
    axes.barh(place, rows, height=1.0 if many else 0.62, color=_INK, lw=0)
    if not many:
        for i, n in enumerate(rows):
            axes.annotate(
                f"{n:,}",
                (n, i),
                (3, 0),
                textcoords="offset points",
                va="center",
                fontsize=7,
                color=_LABEL,
            )
        axes.set_xlim(0, rows.max() * 1.5)
        axes.set_xticks([])  # every bar carries its number
    else:
        axes.xaxis.set_major_locator(MaxNLocator(3, integer=True))
    axes.tick_params(labelsize=8)
    axes.set_xlabel("rows")


def _name_agents(axes: Any, names: list[str], many: bool) -> None:
    if many:
        axes.set_ylabel(f"{len(names):,} agents")
        axes.set_yticks([])
    else:
        axes.set_yticks(range(len(names)), [_short(n) for n in names], fontsize=8)
    axes.set_ylim(len(names) - 0.4, -0.6)
    for side in axes.figure.axes:
        side.spines[["top", "right", "left"]].set_visible(False)
        side.tick_params(length=0, colors=_LABEL)


def _short(name: str) -> str:
    return name if len(name) <= 28 else name[:27] + "…"


def _save(figure: Figure, path: Path) -> None:
    known = figure.canvas.get_supported_filetypes()
    if path.suffix.lstrip(".").lower() not in known:
        refuse(f"cannot save a picture as {path.name!r}; end it in .png, .pdf or .svg")
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        refuse(f"cannot write {path}: {error.strerror or error}; check the folder")
