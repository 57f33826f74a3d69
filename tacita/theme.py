"""The look of the pictures, on light and on dark paper.

Figures are objects of their own, drawn without a window and without global state.
"""

from __future__ import annotations

import io
import math
import textwrap
import warnings
from dataclasses import dataclass
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

#: Sharp on screens with two dots per pixel at the width that the page shows.
DPI = 150


@dataclass(frozen=True)
class Theme:
    """Colours of one paper.

    Attributes:
        paper: Background.
        ink: Text.
        soft: Axis labels, ticks.
        line: Grid.
        series: One colour per run, told apart by readers with any colour vision.
        pale: The empty end of a shaded table.
    """

    paper: str
    ink: str
    soft: str
    line: str
    series: tuple[str, ...]
    pale: str


LIGHT = Theme(
    paper="#ffffff",
    ink="#1d2733",
    soft="#5b6775",
    line="#e6e9ee",
    series=(
        "#1f6f8b",
        "#d1603d",
        "#6a4c93",
        "#3f8f4f",
        "#c9a227",
        "#a23b72",
        "#5b6775",
    ),
    pale="#f4f7f9",
)
DARK = Theme(
    paper="#171c22",
    ink="#e6eaef",
    soft="#9aa6b4",
    line="#2b333d",
    series=(
        "#5cb8d6",
        "#f0906c",
        "#b296e0",
        "#7fce8e",
        "#e8c85a",
        "#e07fb4",
        "#9aa6b4",
    ),
    pale="#1d242c",
)
THEMES = {"light": LIGHT, "dark": DARK}
DASHES = ("-", (0, (5, 1.6)), (0, (1, 1.1)), (0, (5, 1.4, 1, 1.4)), (0, (8, 2, 2, 2)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
#: Marks on a line, about.
_MARKS = 8
#: Of a legend: the size of its letters, the inches that the sample of a line takes with
#: what is left free beside it, those at the sides, and those of a further line.
_LETTERS, _SAMPLE, _SIDES, _LINE = 9, 0.76, 0.15, 0.19
#: What measures letters, on screens and in files.
_COARSE, _FINE = RendererAgg(1, 1, 100), RendererAgg(1, 1, DPI)


class Picture(Figure):
    """A figure that shows itself in a notebook, with no backend switched on."""

    def _repr_png_(self) -> bytes:
        return png(self)


def style_of(theme: Theme, number: int) -> dict[str, Any]:
    """Colour and dashes of the run with this number: either alone tells runs apart."""
    colours = theme.series
    return {
        "color": colours[number % len(colours)],
        "linestyle": DASHES[number % len(DASHES)],
    }


def marks_of(number: int, points: int) -> dict[str, Any]:
    """Marks on a line of so many points, at other places on every line."""
    step = max(1, points // _MARKS)
    return {
        "marker": MARKERS[number % len(MARKERS)],
        "markersize": 4.5,
        "markevery": (number * max(1, step // 3) % step, step),
    }


def new_figure(theme: Theme, width: float, height: float) -> Figure:
    """An empty figure on the theme's paper."""
    return Picture(figsize=(width, height), facecolor=theme.paper, layout="constrained")


def dress(axes: Any, theme: Theme) -> None:
    """Quiet axes: a grid, no frame, small soft labels."""
    axes.set_facecolor(theme.paper)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(theme.line)
    axes.tick_params(which="both", length=0, colors=theme.soft, labelsize=9)
    axes.xaxis.label.set(color=theme.soft, fontsize=9.5)
    axes.yaxis.label.set(color=theme.soft, fontsize=9.5)
    axes.grid(color=theme.line, linewidth=0.8)
    axes.set_axisbelow(True)


def one_axes(theme: Theme, width: float, height: float) -> tuple[Figure, Any]:
    """An empty figure with one dressed pair of axes."""
    figure = new_figure(theme, width, height)
    axes = figure.subplots()
    dress(axes, theme)
    return figure, axes


def percent(value: float, _: Any = None) -> str:
    """A share on an axis, with the digits that it needs.

    >>> percent(0.855), percent(0.9)
    ('85.5%', '90%')
    """
    return f"{100 * value:g}%"


def title(axes: Any, theme: Theme, words: str) -> None:
    """A title above the left end of the axes."""
    axes.set_title(words, loc="left", pad=8, color=theme.ink, fontsize=11)


def legend(figure: Figure, theme: Theme, columns: int) -> Any:
    """What lines and marks stand for, below the axes, all of it.

    Long names get fewer columns and are broken into lines, and the picture grows by
    what they need.
    """
    handles, labels = _named(figure)
    width = figure.get_figwidth() - _SIDES
    told, longest = _wrapped(labels, width - _SAMPLE)
    columns = max(1, min(columns, int(width // (longest + _SAMPLE))))
    made = figure.legend(
        handles,
        told,
        loc="outside lower left",
        ncols=columns,
        frameon=False,
        labelcolor=theme.ink,
        fontsize=_LETTERS,
        handlelength=3.2,
    )
    for words in made.get_texts():
        words.set_parse_math(False)  # a dollar sign in a name starts no formula
    lines = sum(words.count("\n") + 1 for words in told) / columns
    figure.set_figheight(figure.get_figheight() + _LINE * max(0, math.ceil(lines) - 1))
    return made


def _wrapped(labels: list[str], room: float) -> tuple[list[str], float]:
    """Names in lines of at most so many inches, and how long the longest line is."""
    letters = max([1, *map(len, labels)])
    while True:
        told = ["\n".join(textwrap.wrap(words, letters)) or " " for words in labels]
        lines = [line for words in told for line in words.split("\n")]
        longest = max(map(_inches, lines), default=0.0)
        if longest <= room or letters == 1:
            return told, longest
        letters = max(1, min(letters - 1, int(letters * room / longest)))


def _inches(line: str) -> float:
    """How long a line of a legend is, its letters on the grid of pixels or not."""
    font = FontProperties(size=_LETTERS)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+ .*missing from", UserWarning)
        return max(
            one.get_text_width_height_descent(line, font, False)[0] / dots
            for one, dots in ((text_to_path, 72), (_COARSE, 100), (_FINE, DPI))
        )


def _named(figure: Figure) -> tuple[list[Any], list[str]]:
    """Everything in the figure that has a name."""
    parts = [axes.get_legend_handles_labels() for axes in figure.axes]
    return [h for part in parts for h in part[0]], [
        w for part in parts for w in part[1]
    ]


def png(figure: Figure) -> bytes:
    """The figure as a picture."""
    FigureCanvasAgg(figure)
    body = io.BytesIO()
    with warnings.catch_warnings():
        # A name in letters that the font lacks is drawn as boxes; tables spell it out.
        warnings.filterwarnings("ignore", r"Glyph \d+ .*missing from", UserWarning)
        figure.savefig(body, format="png", dpi=DPI, metadata={"Software": None})
    return body.getvalue()
