"""A progress bar with rounds, loss and time left, drawn between chunks only."""

from __future__ import annotations

from typing import Any, Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
)


class Bar:
    """A bar that is drawn, or nothing at all."""

    def __init__(self, shown: bool, rounds: int, done: int = 0) -> None:
        self._progress: Progress | None = None
        if shown:
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

    def update(self, done: int, loss: float | None) -> None:
        """Tell how many rounds are done and the last loss, if it is recorded."""
        if self._progress is not None:
            told = "" if loss is None else f"loss {loss:.6g}"
            self._progress.update(self._task, completed=done, loss=told)

    def __enter__(self) -> Self:
        if self._progress is not None:
            self._progress.start()
        return self

    def __exit__(self, *_: Any) -> None:
        if self._progress is not None:
            self._progress.stop()
