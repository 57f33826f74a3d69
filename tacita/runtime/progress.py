"""A progress bar with rounds, loss and time left, drawn between chunks only."""

from __future__ import annotations

import sys
import time
from typing import Any, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)

#: Seconds after which a run that is not over has a bar in a notebook.
_SOON = 1.0


def wanted(progress: bool | None) -> bool:
    """Whether to show a bar: as told, else where somebody looks on."""
    return _shell() is not None or sys.stderr.isatty() if progress is None else progress


def _shell() -> Any:
    """The notebook that this process is the kernel of, or None."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell if hasattr(shell, "kernel") else None


class Bar:
    """A bar in a terminal or a notebook, or nothing at all.

    Args:
        shown: Whether there is one.
        rounds: In all.
        done: Of these, before now.
        note: Said behind the loss.
    """

    def __init__(self, shown: bool, rounds: int, done: int = 0, note: str = "") -> None:
        self._note = f", {note}" if note else ""
        self._drawn: _Terminal | _Notebook | None = None
        if shown:
            kind = _Terminal if _shell() is None else _Notebook
            self._drawn = kind(rounds, done)

    def update(self, done: int, loss: float | None) -> None:
        """Tell how many rounds are done and the last loss, if it is recorded."""
        if self._drawn is not None:
            told = "" if loss is None else f"loss {loss:.6g}{self._note}"
            self._drawn.update(done, told)

    def __enter__(self) -> Self:
        if self._drawn is not None:
            self._drawn.start()
        return self

    def __exit__(self, *_: Any) -> None:
        if self._drawn is not None:
            self._drawn.stop()


class _Terminal:
    """A line that is drawn over and over."""

    def __init__(self, rounds: int, done: int) -> None:
        self._progress = Progress(
            TextColumn("round"),
            MofNCompleteColumn(),
            BarColumn(),
            TextColumn("{task.fields[loss]}"),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._task = self._progress.add_task(
            "run", total=rounds, completed=done, loss=""
        )
        self.start, self.stop = self._progress.start, self._progress.stop

    def update(self, done: int, loss: str) -> None:
        self._progress.update(self._task, completed=done, loss=loss)


class _Notebook:
    """One output of a cell, replaced whole; a kernel has no line to draw over."""

    def __init__(self, rounds: int, done: int) -> None:
        self._rounds, self._from, self._done = rounds, done, done
        self._began, self._told = 0.0, ""
        self._handle: Any = None

    def start(self) -> None:
        self._began = time.perf_counter()

    def stop(self) -> None:
        if self._handle is not None:
            took = time.perf_counter() - self._began
            self._tell(f"{self._told}, {took:.0f} s")

    def update(self, done: int, loss: str) -> None:
        took = time.perf_counter() - self._began
        self._done, self._told = done, f"round {done} of {self._rounds}"
        self._told += f", {loss}" if loss else ""
        late = took >= _SOON and done < self._rounds
        if late or self._handle is not None:
            left = took * (self._rounds - done) / max(1, done - self._from)
            self._tell(f"{self._told}, {left:.0f} s left")

    def _tell(self, words: str) -> None:
        bar = f'<progress value="{self._done}" max="{self._rounds}"></progress>'
        told = {"text/plain": words, "text/html": f"{bar} {words}"}
        if self._handle is None:
            from IPython.display import display  # there, as the kernel is

            self._handle = display(told, raw=True, display_id=True)
        else:
            self._handle.update(told, raw=True)
