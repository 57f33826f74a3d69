"""Errors of every node: a sentence, a table, and a map coloured by error."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from tacita.report import numbers
from tacita.report.tables import MISSING, Table
from tacita.theme import LIGHT, Theme, legend, one_axes

#: Errors spread wider than this are coloured on a logarithmic scale.
_WIDE = 8.0
_FEW = 300


def summary(told: dict[str, Any]) -> list[str]:
    """How nodes do on average, how many beat the baseline, and each verdict's words."""
    validation = np.asarray(told["validation_error"], float)
    words = (
        f"Mean training error {_mean(told['train_error'])}, mean "
        f"validation error {_mean(validation)}"
    )
    if "baseline" in told:
        reference, name = np.asarray(told["baseline"], float), told["baseline_name"]
        better = int(np.sum(validation < reference))
        words += (
            f", {name} {_mean(reference)}. {better} of "
            f"{len(validation)} nodes do better than {name}"
        )
    if "pooled_scores" in told:
        scored = (f"{n} {_number(v)}" for n, v in told["pooled_scores"].items())
        words += f". Over all validation rows: {', '.join(scored)}"
    if "parameters_per_row" in told:
        ratios = np.asarray(told["parameters_per_row"], float)
        if not np.all(np.isnan(ratios)):
            words += f". Parameters per row, in the median: {np.nanmedian(ratios):.3g}"
    counted = Counter(told["verdict"]).most_common()
    return [f"{words}."] + [
        f"{count} {'node' if count == 1 else 'nodes'}: {word}: "
        f"{told['meaning'].get(word, '')}"
        for word, count in counted
    ]


def nodes_table(told: dict[str, Any]) -> Table:
    """One line per node, the largest validation error first."""
    heads = ["node", "training error", "validation error"]
    columns = [told["node"], told["train_error"], told["validation_error"]]
    if "baseline" in told:
        heads.append(told["baseline_name"])
        columns.append(told["baseline"])
    for name, values in told.get("scores", {}).items():
        heads.append(name)
        columns.append(values)
    lines = list(zip(*columns, told["verdict"], strict=True))
    lines.sort(key=lambda line: -np.nan_to_num(line[2], nan=-1.0))
    rows = tuple(
        (str(name), *(_number(v) for v in values), verdict)
        for name, *values, verdict in lines
    )
    return Table((*heads, "diagnosis"), rows)


def confusion_table(told: dict[str, Any]) -> Table:
    """Validation rows by their class, down, and by the predicted one, across."""
    names = [str(name) for name in told["classes"]]
    rows = zip(names, told["confusion"], strict=True)
    return Table(
        ("true \\ predicted", *names),
        tuple((name, *(str(int(count)) for count in line)) for name, line in rows),
    )


def _mean(values: Any) -> str:
    return numbers.real(float(np.nanmean(values)))


def _number(value: float) -> str:
    return numbers.real(value) if np.isfinite(value) else MISSING


def nodes_map(told: dict[str, Any], theme: Theme = LIGHT) -> Figure:
    """Nodes at their places, coloured by validation error.

    A node that does worse than its baseline is a triangle, one without validation rows
    a cross. Coordinates are drawn so that a kilometre is as long in both directions.
    """
    x, y = np.asarray(told["x"], float), np.asarray(told["y"], float)
    error = np.asarray(told["validation_error"], float)
    by_place = told["layout"] == "coordinates"
    figure, axes = one_axes(theme, 5.2, 6.4 if by_place else 4.8)
    _edges(axes, told, x, y, theme)
    shown = np.isfinite(error)
    reference = np.asarray(told.get("baseline", np.full(len(x), np.inf)), float)
    worse = shown & (error > reference)
    scale = _scale(error[shown])
    colours = _colours()
    size = 46 if len(x) <= _FEW else 14
    drawn = None
    for mask, marker, label in (
        (shown & ~worse, "o", f"no worse than {told.get('baseline_name', '')}"),
        (worse, "^", f"worse than {told.get('baseline_name', '')}"),
    ):
        if mask.any():
            drawn = axes.scatter(
                x[mask],
                y[mask],
                c=error[mask],
                s=size,
                marker=marker,
                cmap=colours,
                norm=scale,
                edgecolors=theme.paper,
                linewidths=0.5,
                label=label if "baseline" in told else None,
                zorder=3,
            )
    if not shown.all():
        axes.scatter(
            x[~shown], y[~shown], s=size / 2, marker="x", c=theme.soft, label="no rows"
        )
    _finish(figure, axes, drawn, theme, by_place, y)
    return figure


def _edges(axes: Any, told: dict[str, Any], x: Any, y: Any, theme: Theme) -> None:
    pairs = np.asarray(told.get("edges", []), int)
    if len(pairs):
        points = np.stack([x, y], axis=1)[pairs]
        axes.add_collection(
            LineCollection(list(points), colors=theme.line, linewidths=0.9, zorder=1)
        )


def _scale(error: np.ndarray) -> Normalize:
    positive = error[error > 0]
    if len(positive) == len(error) > 0 and positive.max() > _WIDE * positive.min():
        return LogNorm(positive.min(), positive.max())
    return Normalize(error.min(initial=0.0), error.max(initial=1e-12))


def _colours() -> LinearSegmentedColormap:
    """From a small error to a large one, both told apart from the paper."""
    return LinearSegmentedColormap.from_list(
        "error", ["#2f8fb3", "#8fc3b0", "#f2d06b", "#e07b39", "#9c1f2e"]
    )


def _finish(
    figure: Figure, axes: Any, drawn: Any, theme: Theme, by_place: bool, y: Any
) -> None:
    if by_place:
        # A degree of longitude is shorter than one of latitude by this factor.
        axes.set_aspect(1 / np.cos(np.deg2rad(float(np.mean(y)))))
        axes.set_xlabel("longitude")
        axes.set_ylabel("latitude")
    else:
        axes.grid(False)
        axes.set_xticks([])
        axes.set_yticks([])
        axes.spines["bottom"].set_visible(False)
    if drawn is not None:
        bar: Any = figure.colorbar(drawn, ax=axes, shrink=0.6, aspect=28, pad=0.02)
        bar.outline.set_visible(False)
        bar.ax.tick_params(which="both", length=0, labelsize=8, colors=theme.soft)
        bar.set_label("validation error", color=theme.soft, fontsize=9)
        if isinstance(drawn.norm, LogNorm):
            bar.locator = LogLocator(subs=(1.0, 2.0, 5.0))
            bar.formatter = FuncFormatter(lambda value, _: f"{value:g}")
            bar.minorformatter = NullFormatter()
            bar.update_ticks()
    if axes.get_legend_handles_labels()[1]:
        for handle in legend(figure, theme, 3).legend_handles:
            handle.set_array(None)  # a shape without a value
            handle.set_color(theme.soft)
