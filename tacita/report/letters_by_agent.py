"""How every agent's letters lay among the others: a table, and a picture by round."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from tacita.report.tables import MISSING, Table
from tacita.theme import Theme, one_axes, title

WARNING = (
    "For people to look at; nobody was left out by these numbers. Honest agents with "
    "unusual data look like liars, and careful liars look honest."
)


def letters_table(told: dict[str, Any]) -> Table:
    """One line per agent: means over the recorded rounds in which it was heard."""
    distance, cosine, length, rank, used = (
        _numbers(told, sign)
        for sign in ("distance", "cosine", "length", "rank", "used")
    )
    rows = []
    for agent in range(len(distance)):
        heard = np.isfinite(distance[agent])
        if not heard.any():
            rows.append((str(agent), "0", *[MISSING] * 5))
            continue
        means = [
            f"{np.mean(one[agent][heard]):.2f}"
            for one in (distance, cosine, length, rank)
        ]
        selected = f"{np.sum(used[agent][heard]):.1f}"
        rows.append((str(agent), str(int(heard.sum())), *means, selected))
    heads = ("agent", "rounds heard", "distance / median", "cosine", "length")
    return Table((*heads, "rank", "times used"), tuple(rows))


def distances(told: dict[str, Any], theme: Theme) -> Figure:
    """Distance to the joint letter over the median one, agents by rounds."""
    table = _numbers(told, "distance")
    figure, axes = one_axes(theme, 6.2, 1.2 + 0.18 * min(len(table), 40))
    rounds = np.asarray(told["round"])
    span = (rounds[0] - 0.5, rounds[-1] + 0.5, len(table) - 0.5, -0.5)
    shown = axes.imshow(np.log10(np.maximum(table, 1e-3)), aspect="auto", extent=span)
    bar = figure.colorbar(shown, ax=axes, label="log10")
    bar.outline.set_visible(False)  # pyright: ignore[reportCallIssue]
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(10, integer=True))
    axes.grid(visible=False)
    axes.set_xlabel("round")
    axes.set_ylabel("agent")
    title(axes, theme, "distance to the joint letter over the median")
    return figure


def _numbers(told: dict[str, Any], sign: str) -> np.ndarray:
    """A sign by agent and round; what is not finite was saved as nothing."""
    rows = [[np.nan if v is None else v for v in row] for row in told[sign]]
    return np.asarray(rows, float)
