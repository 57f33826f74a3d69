"""Tables in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

#: Without a terminal nobody wraps lines, and a cut-off number would be a wrong one.
_WIDE = 400


def show(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    justify: Literal["left", "right"] = "left",
) -> None:
    """Show a table; the first column names the row, the others are set as told."""
    shown = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for number, head in enumerate(columns):
        align = "left" if number == 0 else justify
        shown.add_column(_plain(head), justify=align, overflow="fold")
    for row in rows:
        shown.add_row(*map(_plain, row))
    # As wide as the terminal, or as wide as they are.
    wide = None if sys.stdout.isatty() else _WIDE
    Console(width=wide, highlight=False).print(shown)


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
