"""The privacy of a run on its page: a row per observer, and how epsilon was spent."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from tacita.report import html, numbers
from tacita.report.tables import MISSING, Table
from tacita.theme import Theme, legend, one_axes, style_of, title
from tacita.trace import PrivacyReport

#: Agents that get a colour and a name of their own, the largest spenders.
_NAMED = 4


def lede(report: PrivacyReport) -> str:
    """What the numbers below are, in one or two sentences."""
    told = (
        "Each line bounds what one observer can learn, for the agent that spent most. "
        "An epsilon holds only with its theorem and its assumptions."
    )
    if report.promise:
        told += (
            " The noise was set for epsilon = {epsilon:g} at delta = {delta:g} against "
            "the {observer} ({unit}, {relation}).".format(**report.promise)
        )
        row = report.row(report.promise["observer"], report.promise["unit"])
        if row.epsilon is not None and row.epsilon > 1.0001 * report.promise["epsilon"]:
            told += (
                " That held before it was drawn who takes part; the agent that "
                "happened to take part most has spent more, as the table says."
            )
    return told


def rows(report: PrivacyReport) -> Table:
    """The table of the report, with the delta and the relation of every row."""
    columns, cells = report.table()
    lines = []
    for row, line in zip(report.rows, cells, strict=True):
        observer, unit, epsilon, *rest = (
            MISSING if word == "-" else word for word in line
        )
        shown = f"{unit} ({row.relation.replace('_', ' ')})"
        lines.append((observer, shown, epsilon, f"{row.delta:g}", *rest))
    return Table((*columns[:3], "delta", *columns[3:]), tuple(lines))


def notes(report: PrivacyReport) -> str:
    """The theorems and assumptions that the table refers to."""
    return html.folded("Theorems and assumptions", html.notes(report.notes()))


def burn_down(curves: dict[str, Any], theme: Theme) -> Figure:
    """Epsilon over rounds, a line per agent, with the budget that ends it.

    The largest spenders have names; the others are drawn in one quiet colour.
    """
    figure, axes = one_axes(theme, 7.4, 3.9)
    rounds = np.asarray(curves["rounds"])
    spent = [np.asarray(line, dtype=float) for line in curves["epsilon"]]
    for line in spent[_NAMED:]:
        axes.step(rounds, line, where="post", color=theme.soft, alpha=0.25, lw=1)
    for number, (agent, line) in enumerate(
        zip(curves["agents"][:_NAMED], spent[:_NAMED], strict=True)
    ):
        words = f"agent {agent}: {numbers.real(line[-1])}"
        axes.step(
            rounds, line, where="post", label=words, lw=1.8, **style_of(theme, number)
        )
    if curves.get("budget") is not None:
        label = f"budget: {numbers.real(curves['budget'])}"
        axes.axhline(
            curves["budget"], color=theme.ink, lw=1.2, ls=(0, (2, 2)), label=label
        )
    axes.set_ylim(bottom=0)
    axes.margins(x=0.01)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    axes.set_xlabel("round")
    words = (
        f"epsilon spent against the {curves['observer']} at delta = "
        f"{curves['delta']:g}, {curves['unit']} ({curves['relation']})"
    )
    title(axes, theme, words.replace("_", " "))
    legend(figure, theme, 3)
    return figure
