"""What letters gave away: rows beside what was read of them, members beside bounds."""

from __future__ import annotations

import math
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from tacita.report import html
from tacita.report.tables import MISSING, Table
from tacita.theme import THEMES, Theme, new_figure, png

if TYPE_CHECKING:
    from tacita.audits import Members, ReadBack, Reading
    from tacita.trace import PrivacyRow

#: Rows that are drawn, at most.
_DRAWN = 8


def picture_shape(row: tuple[int, ...], ones: bool) -> tuple[int, ...] | None:
    """Height and width of a row that may be a picture, None for others.

    >>> picture_shape((65,), ones=True), picture_shape((30,), ones=False)
    ((8, 8), None)
    """
    if len(row) != 1:
        return row or None
    pixels = row[0] - ones
    side = math.isqrt(pixels)
    return (side, side) if side > 3 and side**2 == pixels else None


def reading_table(read: ReadBack) -> Table:
    """One line for every noise: what is allowed, and what was found."""
    rows = [
        (
            one.noise,
            _epsilon(one.privacy),
            f"{one.error:.3f}",
            f"{1 - min(1.0, one.error / read.blind):.0%}" if read.blind else MISSING,
            f"{_labels(one, read)} of {len(read.y)}",
        )
        for one in read.readings
    ]
    rows.append(("no letter: a guess", MISSING, f"{read.blind:.3f}", "0%", MISSING))
    heads = ("letters with", "epsilon", "error", "better than a guess", "labels right")
    return Table(heads, tuple(rows))


def _labels(one: Reading, read: ReadBack) -> int:
    """How many labels were found, whichever row they belong to."""
    left, hits = [round(float(v), 2) for v in read.y], 0
    for found in one.y:
        label = round(float(found), 2)
        if label in left:
            left.remove(label)
            hits += 1
    return hits


def _epsilon(row: PrivacyRow) -> str:
    return MISSING if row.epsilon is None else f"{row.epsilon:.3g}"


def members_table(found: dict[str, Members]) -> Table:
    """True positives at several shares of false ones, beside what is allowed."""
    first = next(iter(found.values()))
    rates = [rate for rate, _, _ in first.rates()]
    heads = ("letters with", "epsilon", "auc")
    heads += tuple(f"found at {rate:.1%} false (allowed)" for rate in rates)
    rows = [
        (
            noise,
            _epsilon(one.privacy),
            f"{one.auc:.2f}",
            *(f"{hit:.1%} ({most:.1%})" for _, hit, most in one.rates()),
        )
        for noise, one in found.items()
    ]
    return Table(heads, tuple(rows))


def draw_rows(read: ReadBack, shape: tuple[int, ...] | None, theme: Theme) -> Figure:
    """The true rows, and below them what was read at every noise."""
    count = min(len(read.x), _DRAWN)
    named = [("the agent's rows", read.x)] + [
        (f"{one.noise}\nerror {one.error:.2f}", one.x) for one in read.readings
    ]
    high = 1.05 if shape else 0.6
    figure = new_figure(
        theme, 1.9 + (1.05 if shape else 2.4) * count, high * len(named)
    )
    grid = figure.subplots(len(named), count, squeeze=False)
    low, top = float(read.x.min()), float(read.x.max())
    for axes_row, (words, rows) in zip(grid, named, strict=True):
        for axes, row in zip(axes_row, rows[:count], strict=True):
            shown = _pixels(row, shape)
            aspect = "equal" if shape else "auto"
            axes.imshow(shown, cmap="gray", vmin=low, vmax=top, aspect=aspect)
            axes.set_xticks([])
            axes.set_yticks([])
            for side in axes.spines.values():
                side.set_color(theme.line)
        axes_row[0].set_ylabel(
            words, rotation=0, ha="right", va="center", color=theme.ink, fontsize=9
        )
    return figure


def _pixels(row: np.ndarray, shape: tuple[int, ...] | None) -> np.ndarray:
    if shape is None:
        return row.reshape(1, -1)
    return np.clip(row.ravel()[: math.prod(shape)].reshape(shape), 0, None)


def write_reading(
    read: ReadBack,
    members: dict[str, Members],
    folder: Path,
    title: str,
    shape: tuple[int, ...] | None,
) -> Path:
    """Write `letters-read.html` and its picture; returns the page's path."""
    drawn = {name: png(draw_rows(read, shape, theme)) for name, theme in THEMES.items()}
    shown = html.picture(
        drawn["light"], drawn["dark"], "rows and what was read of them"
    )
    parts = (
        '<header><p class="kicker">Tacita report</p>'
        f"<h1>{html.text(title)}</h1>\n"
        + html.paragraph(reading_lede(read), "lede")
        + "</header>\n",
        html.section(
            "rows",
            "Rows read back",
            html.paragraph(ROWS_NOTE, "note"),
            html.figure(shown, "The rows, and what was read at every noise"),
            html.table(reading_table(read)),
        ),
        html.section(
            "members",
            "Members found",
            html.paragraph(MEMBERS_NOTE, "note"),
            html.table(members_table(members)),
        )
        if members
        else "",
        html.section(
            "theorems",
            "What every epsilon rests on",
            html.notes(reading_basis(read, members)),
        ),
    )
    style = resources.files("tacita.report").joinpath("style.css").read_text()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "letters-read.png").write_bytes(drawn["light"])
    path = folder / "letters-read.html"
    path.write_text(html.document(title, style, "\n".join(parts)), encoding="utf-8")
    return path


ROWS_NOTE = (
    "The reader looks for rows whose letters would be those that came. It is taken to "
    "know the algorithm, how many rows there are, the range of every feature and the "
    "mean of the other agents' rows. Better readers may exist; epsilon bounds them."
)
MEMBERS_NOTE = (
    "Shadow runs with and without every record teach the reader what a final model "
    "looks like (LiRA). Found: the share of members that are recognised while so many "
    "others are taken for members. Allowed: e^epsilon times that share, plus delta."
)


def reading_lede(read: ReadBack) -> str:
    """What was done, in a sentence or two."""
    letters = "first letter" if read.letters == 1 else f"first {read.letters} letters"
    told = (
        f"What the {letters} of agent {read.agent} would tell of its rows if it held "
        f"{len(read.x)} of them. Every epsilon is for {read.rounds} rounds."
    )
    if read.signed:
        return told
    return (
        f"{told} Letters of this model do not tell a row from minus itself: rows are "
        "taken up to their sign."
    )


def reading_basis(read: ReadBack, members: dict[str, Members]) -> list[tuple[str, str]]:
    """Observer, unit, theorem and assumptions of all epsilons; what is alike, once."""
    told: dict[tuple[str, str], dict[str, None]] = {}
    for one in (*read.readings, *members.values()):
        row = one.privacy
        held = "; ".join(f"{a['statement']} ({a['status']})" for a in row.assumptions)
        basis = row.theorem + (f". Assumes: {held}" if held else "")
        whom = f"{row.observer}, one {row.unit}, {row.relation}"
        if row.agent is not None:
            whom += f", agent {row.agent}"
        if row.epsilon is not None:
            whom = f"(delta {row.delta:g}), {whom}"
        told.setdefault((whom, basis), {})[_epsilon(row)] = None
    return [
        (
            f"epsilon {', '.join(bounds)} {whom}"
            if MISSING not in bounds
            else f"no epsilon, {whom}",
            basis,
        )
        for (whom, basis), bounds in told.items()
    ]
