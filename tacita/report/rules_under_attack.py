"""Attacks against rules: a table, and a picture of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from tacita.report.tables import Table
from tacita.theme import THEMES, Theme, one_axes, png, title
from tacita.tuning.resilience import in_words

if TYPE_CHECKING:
    from tacita.tuning.resilience import Resilience


def resilience_table(made: Resilience) -> Table:
    """One row for every rule, one column for every attack, the worst case last."""
    rows = [
        (rule, *map(in_words, values), in_words(min(values)))
        for rule, values in zip(made.rules, made.values, strict=True)
    ]
    return Table(("rule", *made.attacks, "worst"), tuple(rows))


def draw_resilience(made: Resilience, folder: Path) -> Path:
    """Draw the table into a folder; returns the picture's path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "attacks.png"
    path.write_bytes(png(picture(made, THEMES["light"])))
    return path


def _short(value: float) -> str:
    if not np.isfinite(value):
        return "-"
    if abs(value) < 100:
        return f"{value:.2f}"
    return f"{value:.0f}" if abs(value) < 1e5 else f"{value:.0e}"


def picture(made: Resilience, theme: Theme) -> Figure:
    """Shades by value, and the values themselves."""
    wide, high = 2.2 + 0.8 * len(made.attacks), 1.2 + 0.34 * len(made.rules)
    figure, axes = one_axes(theme, wide, high)
    values = np.where(np.isfinite(made.values), made.values, np.nan)
    # Losses of runs that were carried away would leave all others one colour.
    least = made.alone - abs(made.alone) / 2 if made.of_loss else None
    axes.imshow(values, aspect="auto", cmap="RdYlGn", alpha=0.75, vmin=least)
    for i, row in enumerate(made.values):
        for j, value in enumerate(row):
            axes.text(j, i, _short(value), ha="center", va="center", fontsize=8)
    axes.set_xticks(range(len(made.attacks)), made.attacks, rotation=30, ha="right")
    axes.set_yticks(range(len(made.rules)), made.rules)
    axes.grid(visible=False)
    count = len(made.liars)
    title(axes, theme, f"{made.metric}, {count} liar{'s' if count > 1 else ''}")
    return figure
