"""The privacy of a run on its page: a row per observer, and how epsilon was spent."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from hashlib import sha256
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from tacita.report import html, numbers
from tacita.report.tables import MISSING, Table
from tacita.report.unprotected import unprotected
from tacita.theme import Theme, legend, one_axes, style_of, title
from tacita.trace import (
    Keeping,
    PrivacyReport,
    Run,
    beyond_use,
    exceeds,
    short,
    verdict,
)

#: Agents that get a colour and a name of their own, the largest spenders.
_NAMED = 4


def section(
    runs: dict[str, Run],
    picture: Callable[[str, str, Callable[[Theme], Figure]], str],
    publishable: bool,
) -> str:
    """The section on privacy; nothing where no run is private.

    Args:
        runs: By name.
        picture: Puts a picture beside the page, and into it.
        publishable: Whether the page is for others: nobody signs that.
    """
    told = {label: run for label, run in runs.items() if run.privacy is not None}
    parts = []
    for number, (label, run) in enumerate(told.items(), 1):
        report = run.privacy
        assert report is not None
        if len(runs) > 1:
            parts.append(html.paragraph(label, "kicker"))
        signable = len(runs) == 1 and not publishable
        parts += [statement(run, signable=signable), banner(run, publishable)]
        parts.append(html.paragraph(lede(report), "note"))
        parts += [html.table(rows(report)), html.notes(report.notes())]
        if curves := report.curves:
            file = "epsilon.png" if number == 1 else f"epsilon-{number}.png"
            drawn = picture(file, "epsilon spent by round", partial(burn_down, curves))
            parts.append(html.figure(drawn, curves["theorem"]))
    return html.section("privacy", "Privacy", *parts) if parts else ""


def statement(run: Run, *, signable: bool) -> str:
    """What to read first: the sentence, the verdict, what it rests on.

    Args:
        run: With a privacy report.
        signable: Whether there is a place for a signature below it.
    """
    report = run.privacy
    assert report is not None
    told = verdict(report)
    differ = f"one {told.row.unit} {_RELATIONS[told.row.relation]}"
    facts = [("data sets differ by", differ)]
    if beyond_use(told.row.epsilon):
        facts.insert(0, ("epsilon", f"{told.row.epsilon:.4g}"))
    facts.append(("by the theorem", told.row.theorem))
    if told.row.agent is not None:
        facts.append(("agent that spent most", told.row.agent))
    facts.append(("run finished", _moment(run.info.get("finished"))))
    if head := run.info.get("ledger_head"):
        facts.append(("ledger head", head))
    if signable:
        facts.append(("SHA-256 of privacy.json", sha256(report.content()).hexdigest()))
    if signed := run.info.get("signed"):
        words = "{signer}, {time}, key {fingerprint}".format(**signed)
        facts.append(("signed by", words))
    first = told.sentence[:1].upper() + told.sentence[1:]
    lines = ("Name", "Place and date", "Signature") if signable else ()
    useful = told.row.epsilon is not None and not beyond_use(told.row.epsilon)
    good = useful and told.keeping in (Keeping.WITHIN, Keeping.UNSET)
    return html.statement(f"{first}.", told.keeping, good, facts, lines)


#: How neighbouring data differ, in words.
_RELATIONS = {
    "replace_one": "that is replaced by any other",
    "add_remove": "that is emptied, or was empty",
}


def _moment(time: Any) -> str:
    """A time as people write it; runs of before it was kept have none."""
    return "not kept" if time is None else str(time)[:16].replace("T", " ") + " UTC"


def lede(report: PrivacyReport) -> str:
    """What the numbers below are, in one or two sentences."""
    told = (
        "Each line bounds what one observer can learn, for the agent that spent most. "
        "An epsilon holds only with its theorem and its assumptions, below the table: "
        "T is a theorem, E an assumption that the program enforces, B one that is "
        "believed, V one that is violated."
    )
    if report.promise:
        told += (
            " The budget is epsilon = {epsilon:g} at delta = {delta:g} against the "
            "{observer} ({unit}, {relation}).".format(**report.promise)
        )
        row = verdict(report).row
        if exceeds(row, report.promise["epsilon"]) and row.epsilon is not None:
            told += (
                " Noise that was set for it kept it before it was drawn who takes "
                "part; the agent that happened to take part most has spent more."
            )
    return told


def banner(run: Run, publishable: bool) -> str:
    """What no epsilon covers."""
    found = unprotected(run)
    if not found:
        return ""
    words = "This is computed from rows without noise, and no epsilon covers it."
    if not publishable:
        words += (
            " The page is for whoever holds the rows; one for others leaves it out: "
            "tacita report --publishable."
        )
    return html.banner("Not protected", words, found)


def rows(report: PrivacyReport) -> Table:
    """The table of the report, with the delta and the relation of every row."""
    columns, cells = report.table()
    lines = []
    for row, line in zip(report.rows, cells, strict=True):
        observer, unit, epsilon, *rest = (
            MISSING if word == "-" else word for word in line
        )
        shown = f"{unit} ({row.relation.replace('_', ' ')})"
        lines.append((observer, shown, epsilon, short(row.delta), *rest))
    return Table((*columns[:3], "delta", *columns[3:]), tuple(lines))


def burn_down(curves: dict[str, Any], theme: Theme) -> Figure:
    """Epsilon over rounds, a line per agent, with the budget that ends it.

    The largest spenders have names; the others are drawn in one quiet colour.
    """
    figure, axes = one_axes(theme, 6.2, 3.9)
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
