"""The post: deliver these bytes to that address. It may lose, repeat and reorder them.

Nothing more is asked of what carries letters; all that is needed for a run to be right
is done by the parties. One that keeps the order of two letters between the same parties
lets them see at once that a letter was lost. A transport is a class with `deliver` and
`collect`, made from a party's invitation: `nats_post.py` is the real one,
`thread_post.py` joins threads.
"""

from __future__ import annotations

import queue
from abc import ABC, abstractmethod
from typing import Self, TypeVar

from tacita.federation.invitation import Invitation

T = TypeVar("T")


class Post(ABC):
    """One party's post: all that its program and its status need of a transport."""

    @abstractmethod
    def deliver(self, to: str, content: bytes) -> None:
        """Send; no promise that it arrives, arrives once, or arrives in order."""

    @abstractmethod
    def collect(self, seconds: float) -> list[bytes]:
        """What came to this party, after waiting for something at most so long."""

    def expect(self, most_bytes: int) -> None:  # noqa: B027 - most need no bound
        """Larger letters than this need not be brought: nobody here reads them."""

    @property
    def connected(self) -> bool:
        """Whether the others can be reached right now."""
        return True

    @property
    def dropped(self) -> int:
        """Messages that were no letters, and letters given up half-way."""
        return 0

    def under_way(self) -> dict[str, tuple[int, int]]:
        """Large letters that are coming in: pieces here and in all, by sender."""
        return {}

    def know(self, invitation: Invitation) -> None:  # noqa: B027 - few need to know
        """Members came or went: this is what the party knows now."""

    def close(self) -> None:  # noqa: B027 - most transports have something to close
        """Send what is still under way, and leave."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def take_all(letters: queue.SimpleQueue[T], seconds: float) -> list[T]:
    """Everything in a queue, after waiting for something at most so long."""
    found = []
    try:
        found.append(letters.get(timeout=seconds))
        while True:
            found.append(letters.get_nowait())
    except queue.Empty:
        return found
