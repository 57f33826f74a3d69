"""The two figures of the first version."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tacita.theme import LIGHT, dress, new_figure, png


def rate_curve(
    path: Path,
    x: np.ndarray,
    rates: np.ndarray,
    label: str,
    theory: tuple[np.ndarray, str],
    marked: tuple[float, str],
    log: bool,
) -> None:
    """Mean rate over repetitions with a band of the middle 80 %, and a line of theory.

    Args:
        path: Where the PNG goes.
        x: What is varied.
        rates: By repetition (rows) and x.
        label: What x is.
        theory: A curve over x, and its name.
        marked: Where the paper's curve has its minimum, and in which words.
        log: Whether x is drawn on a logarithmic scale.
    """
    figure = new_figure(LIGHT, 6.2, 3.9)
    axes: Any = figure.subplots()
    dress(axes, LIGHT)
    ours, second, third = LIGHT.series[:3]
    low, high = np.quantile(rates, (0.1, 0.9), axis=0)
    axes.fill_between(x, low, high, color=ours, alpha=0.18, linewidth=0)
    axes.plot(
        x,
        rates.mean(axis=0),
        color=ours,
        linewidth=1.8,
        marker="o",
        markersize=3,
        label="measured: mean, middle 80 %",
    )
    axes.plot(x, theory[0], color=second, linewidth=1.4, dashes=(4, 2), label=theory[1])
    axes.axvline(
        marked[0], color=third, linewidth=1.2, dashes=(1, 1.5), label=marked[1]
    )
    if log:
        axes.set_xscale("log")
    axes.set_xlabel(label)
    axes.set_ylabel("rate: factor of ||X - x*|| a round")
    figure.legend(
        loc="outside lower left",
        ncols=1,
        frameon=False,
        labelcolor=LIGHT.ink,
        fontsize=9,
    )
    path.write_bytes(png(figure))
