"""Attacks against rules: a table, and a picture of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from tacita.report.tables import Table
from tacita.theme import THEMES, Theme, one_axes, png, title

if TYPE_CHECKING:
    from tacita.tuning.resilience import Resilience


def resilience_table(made: Resilience) -> Table:
    """One row for every rule, one column for every attack, the worst case last."""
    rows = [
        (rule, *(f"{value:.3f}" for value in values), f"{min(values):.3f}")
        for rule, values in zip(made.rules, made.values, strict=True)
    ]
    return Table(("rule", *made.attacks, "worst"), tuple(rows))


def draw_resilience(made: Resilience, folder: Path) -> Path:
    """Draw the table into a folder; returns the picture's path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "attacks.png"
    path.write_bytes(png(picture(made, THEMES["light"])))
    return path


def picture(made: Resilience, theme: Theme) -> Figure:
    """Shades by value, and the values themselves."""
    wide, high = 2.2 + 0.8 * len(made.attacks), 1.2 + 0.34 * len(made.rules)
    figure, axes = one_axes(theme, wide, high)
    values = np.where(np.isfinite(made.values), made.values, np.nan)
    axes.imshow(values, aspect="auto", cmap="RdYlGn", alpha=0.75)
    for i, row in enumerate(made.values):
        for j, value in enumerate(row):
            axes.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=8)
    axes.set_xticks(range(len(made.attacks)), made.attacks, rotation=30, ha="right")
    axes.set_yticks(range(len(made.rules)), made.rules)
    axes.grid(visible=False)
    title(axes, theme, f"{made.metric}, {len(made.liars)} liars")
    return figure
