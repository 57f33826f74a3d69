"""A bar for long loops, drawn on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TypeVar

from rich.console import Console
from rich.progress import track

T = TypeVar("T")


def watched(items: Sequence[T], words: str) -> Iterator[T]:
    """Go through `items` with a bar that says what is done and how long it takes."""
    yield from track(
        items,
        description=words,
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
    )
