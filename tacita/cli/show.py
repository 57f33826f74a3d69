"""Tables in the terminal."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

#: Without a terminal nobody wraps lines, and a cut-off number would be a wrong one.
_WIDE = 400
#: Between two columns.
_GAP = 3

Rows = Sequence[Sequence[str]]
Piece = tuple[Sequence[str], Rows]


def show(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    justify: Literal["left", "right"] = "left",
) -> None:
    """Show a table; the first column names the row, the others are set as told."""
    shown = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    for number, head in enumerate(columns):
        align = "left" if number == 0 else justify
        shown.add_column(_plain(head), justify=align, overflow="fold")
    for row in rows:
        shown.add_row(*map(_plain, row))
    # As wide as the terminal, or as wide as they are.
    wide = None if sys.stdout.isatty() else _WIDE
    Console(width=wide, highlight=False).print(shown)


def show_within(columns: Sequence[str], rows: Rows) -> None:
    """Show a table of numbers within the terminal's width, 80 where there is none.

    One that is too wide is turned, a line per column, and cut into pieces that fit.
    """
    width = shutil.get_terminal_size((80, 24)).columns
    for number, (heads, lines) in enumerate(pieces(columns, rows, width)):
        if number:
            print()
        show(heads, lines, "right")


def pieces(columns: Sequence[str], rows: Rows, width: int) -> list[Piece]:
    """The table, or if it is too wide its turned pieces: (headings, lines) each.

    >>> pieces(("run", "loss"), [("a", "1"), ("b", "2")], 80)
    [(('run', 'loss'), [('a', '1'), ('b', '2')])]
    >>> pieces(("run", "loss"), [("a", "1"), ("b", "2")], 9)
    [(('run', 'a'), [('loss', '1')]), (('run', 'b'), [('loss', '2')])]
    """
    if _width([columns, *rows]) <= width:
        return [(columns, rows)]
    first, *turned = [tuple(line) for line in zip(columns, *rows, strict=True)]
    made, begin, end = [], 1, 2
    while begin < len(first):
        while (
            end < len(first)
            and _width(_some([first, *turned], begin, end + 1)) <= width
        ):
            end += 1
        head, *lines = _some([first, *turned], begin, end)
        made.append((head, lines))
        begin, end = end, end + 1
    return made


def _some(lines: Rows, begin: int, end: int) -> list[tuple[str, ...]]:
    """The first column, and a few others."""
    return [(line[0], *line[begin:end]) for line in lines]


def _width(lines: Rows) -> int:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return sum(widths) + _GAP * (len(widths) - 1)


def _plain(words: str) -> str:
    """Words as they are: square brackets are no markup, gaps may break."""
    return words.replace("[", r"\[").replace("\N{NO-BREAK SPACE}", " ")


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int, str], None]]:
    """A line on the terminal that says how far something is; nothing without one.

    Yields what to call with how much is done, of how much, and what was last.
    """
    columns = (TextColumn(what), MofNCompleteColumn(), BarColumn())
    console = Console(stderr=True)
    shown = Progress(
        *columns,
        TextColumn("{task.description}"),
        console=console,
        transient=True,
        disable=not sys.stderr.isatty(),
    )
    with shown:
        task = shown.add_task("", total=None)

        def tell(done: int, total: int, words: str) -> None:
            shown.update(task, completed=done, total=total, description=_plain(words))

        yield tell
