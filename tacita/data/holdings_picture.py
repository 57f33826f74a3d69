"""Who holds what, as a picture: of a data set, or of the counts that a run keeps."""

from __future__ import annotations

from collections.abc import Callable
from os.path import commonprefix
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from tacita.check import refuse
from tacita.data.dataset import Dataset
from tacita.data.holdings import holders, who_holds_what
from tacita.theme import LIGHT, Theme, dress, legend, new_figure

# Up to here every agent has a line with its name; above, only its place is shown.
_NAMED = 60
_BUBBLES = 20
_LONGEST_NAME = 28
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def plot_who_holds_what(data: Dataset, path: str | Path | None = None) -> Figure:
    """Draw how the rows and their targets are spread over the agents.

    Classes: as in `held_picture`. A real target: the middle half and the middle nine
    tenths of each agent's values, agents with the highest median on top.

    Args:
        data: The data set, with agents.
        path: Where to save the picture (.png, .pdf, .svg); None to save nothing.

    Returns:
        The figure.
    """
    if data.task == "classification":
        held = who_holds_what(data).drop(columns="share").to_dict("list")
        figure = held_picture(held, LIGHT, data.target_name)
    else:
        figure = _values_picture(data, LIGHT)
    whose = f"{data.n_agents:,} agent{'s' if data.n_agents > 1 else ''}"
    whose = holders(data)[1][0] if data.agent is None else whose
    title = f"{data.name}: {len(data):,} rows held by {whose}"
    figure.suptitle(title, fontsize=11, color=LIGHT.ink)
    if path is not None:
        _save(figure, Path(path))
    return figure


def held_picture(held: dict[str, Any], theme: Theme, target: str = "class") -> Figure:
    """Draw the rows of every agent and, for a classification, their classes.

    A bubble's area is a number of rows; above 60 agents or 20 classes, a shaded table
    shows the share of each class among an agent's rows. Bars count the rows; of many
    agents, those with most rows are on top.
    """
    names = [str(name) for name in held["agent"]]
    rows = np.asarray(held["rows"], dtype=int)
    classes = [key for key in held if key not in ("agent", "rows")]
    many = len(names) > _NAMED
    order = np.argsort(-rows, kind="stable") if many else np.arange(len(names))
    figure = new_figure(theme, 6.2, _height(len(names)))
    if classes:
        main, side = _beside(figure)
        dress(main, theme)
        counts = np.array([held[label] for label in classes], dtype=int).T
        shaded = many or len(classes) > _BUBBLES
        (_shades if shaded else _bubbles)(main, counts[order], theme)
        _name_classes(main, classes, target)
    else:
        main = side = figure.subplots()
    _bars(side, rows[order], theme)
    _name_agents(main, [names[i] for i in order], "those with most rows on top")
    return figure


def _values_picture(data: Dataset, theme: Theme) -> Figure:
    agent, names = holders(data)
    parts = [data.y[agent == i] for i in range(len(names))]
    table = np.array([np.quantile(part, _QUANTILES) for part in parts])
    order = np.argsort(table[:, 2], kind="stable")[::-1]
    figure = new_figure(theme, 6.2, _height(len(names)))
    main, side = _beside(figure)
    dress(main, theme)
    _quantiles(main, table[order].T, theme)
    main.set_xlabel(data.target_name)
    legend(figure, theme, 3)
    _bars(side, np.array([len(parts[i]) for i in order]), theme)
    _name_agents(main, [names[i] for i in order], "the highest median on top")
    return figure


def _height(agents: int) -> float:
    return 6.0 if agents > _NAMED else max(2.5, 1.5 + 0.26 * agents)


def _beside(figure: Figure) -> Any:
    """A wide picture, and a narrow one that shares its lines."""
    return figure.subplots(1, 2, sharey=True, gridspec_kw={"width_ratios": [4, 1.2]})


def _bubbles(axes: Any, counts: np.ndarray, theme: Theme) -> None:
    where = np.argwhere(counts > 0)
    # Never so small that a class held by one row looks like a class not held.
    area = np.maximum(220 * counts[counts > 0] / counts.max(), 4)
    axes.scatter(where[:, 1], where[:, 0], s=area, c=theme.series[0], lw=0, zorder=2)


def _shades(axes: Any, counts: np.ndarray, theme: Theme) -> None:
    """The share of each class among an agent's rows, as a shaded table."""
    colours = LinearSegmentedColormap.from_list("held", [theme.pale, theme.series[0]])
    total = np.maximum(counts.sum(axis=1, keepdims=True), 1)
    axes.grid(False)
    picture = axes.imshow(
        counts / total, aspect="auto", cmap=colours, vmin=0, interpolation="nearest"
    )
    bar = axes.figure.colorbar(
        picture, ax=axes, location="top", shrink=0.45, aspect=40, pad=0.02
    )
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, length=0, colors=theme.soft)
    bar.ax.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    bar.set_label("share of the agent's rows", fontsize=9, color=theme.soft)


def _quantiles(axes: Any, values: np.ndarray, theme: Theme) -> None:
    low, first, middle, third, high = values
    place, ink = np.arange(len(middle)), theme.series[0]
    for left, right, words, faint, width in (
        (low, high, "middle 90 %", 0.3, 1.5),
        (first, third, "middle half", 0.6, 5),
    ):
        if len(place) > _NAMED:
            axes.fill_betweenx(
                place, left, right, color=ink, alpha=faint, lw=0, label=words
            )
        else:
            axes.hlines(place, left, right, color=ink, lw=width, label=words)
    dots = {} if len(place) > _NAMED else {"marker": "o", "ms": 4, "ls": "", "mec": ink}
    axes.plot(middle, place, color=ink, label="median", mfc=theme.paper, **dots)


def _bars(axes: Any, rows: np.ndarray, theme: Theme) -> None:
    many = len(rows) > _NAMED
    dress(axes, theme)
    height = 1.0 if many else 0.6
    axes.barh(np.arange(len(rows)), rows, height, color=theme.series[0], lw=0)
    axes.set_xlabel("rows")
    axes.grid(False)
    if many:
        axes.xaxis.set_major_locator(MaxNLocator(3, integer=True))
        return
    axes.set_xticks([])  # every bar carries its number
    axes.set_xlim(0, rows.max() * 1.35)
    look = {"va": "center", "fontsize": 8, "color": theme.soft}
    for i, n in enumerate(rows):
        words = f"{n:,}".replace(",", " ")
        axes.annotate(words, (n, i), (4, 0), textcoords="offset points", **look)


def _name_classes(axes: Any, classes: list[str], target: str) -> None:
    labels = _short([repr(c)[1:-1] if c.isspace() else c for c in classes])
    longest, few = max(map(len, labels)), len(classes) <= _BUBBLES
    turned = few and len(classes) * longest > 60
    shown = labels if few or longest <= 2 else []
    axes.set_xticks(
        range(len(shown)),
        shown,
        rotation=40 if turned else 0,
        ha="right" if turned else "center",
        fontsize=9 if few else 6,
    )
    axes.set_xlim(-0.6, len(classes) - 0.4)
    axes.set_xlabel(target if shown else f"{target}, {len(classes)} of them")


def _name_agents(axes: Any, names: list[str], first: str) -> None:
    if len(names) > _NAMED:
        axes.set_ylabel(f"{len(names):,} agents, {first}")
        axes.set_yticks([])
    else:
        axes.set_yticks(range(len(names)), _short(names))
        axes.set_ylabel("agent")
    axes.set_ylim(len(names) - 0.4, -0.6)


def _short(names: list[str]) -> list[str]:
    """Long names, cut so that most of them differ: at the end, if that will do.

    >>> _short(["ward", "University hospital of the north"])
    ['ward', 'University hospital of the …']
    >>> _short([f"Department of cardiology, hospital {i}" for i in range(2)])
    ['Department of…gy, hospital 0', 'Department of…gy, hospital 1']
    >>> _short([f"University hospital of city {i} (north and west)" for i in range(2)])
    ['University ho…ty 0 (north a…', 'University ho…ty 1 (north a…']
    """
    most, half = _LONGEST_NAME, _LONGEST_NAME // 2
    alike = len(commonprefix([name for name in names if len(name) > most]))
    first = max(alike - 3, half)  # where the differences begin
    cuts: list[Callable[[str], str]] = [
        lambda name: name[: most - 1] + "…",
        lambda name: f"{name[: half - 1]}…{name[-half:]}",
        lambda name: f"{name[: half - 1]}…{name[first : first + half - 1]}…",
    ]
    shown = [[n if len(n) <= most else cut(n) for n in names] for cut in cuts]
    best = max(shown, key=lambda made: len({*made}))
    # A dollar sign would start a formula.
    return [name.replace("$", r"\$") for name in best]


def _save(figure: Figure, path: Path) -> None:
    known = figure.canvas.get_supported_filetypes()
    if path.suffix.lstrip(".").lower() not in known:
        refuse(f"cannot save a picture as {path.name!r}; end it in .png, .pdf or .svg")
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        refuse(f"cannot write {path}: {error.strerror or error}; check the folder")
