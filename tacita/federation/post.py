"""The post: deliver these bytes to that address. It may lose, repeat and reorder them.

Nothing more is asked of what carries letters; all that is needed for a run to be right
is done by the parties. `nats_post.py` is the real one. The one here lives inside a
program and misbehaves as it is told, from a seed, on a clock of its own.
"""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass
from typing import Protocol

from tacita import check


class Post(Protocol):
    """What a party needs of the post."""

    def deliver(self, to: str, content: bytes) -> None:
        """Send; no promise that it arrives, arrives once, or arrives in order."""
        ...

    def collect(self, seconds: float) -> list[bytes]:
        """What came to this party, after waiting for something at most so long."""
        ...


@dataclass(frozen=True)
class Faults:
    """How the post misbehaves: chances per letter, and a delay in seconds.

    Letters with different delays overtake each other.
    """

    loss: float = 0.0
    repeat: float = 0.0
    most_delay: float = 0.0

    def __post_init__(self) -> None:
        check.between(0.0, 0.99)(loss=self.loss)
        check.between(0.0, 1.0)(repeat=self.repeat)
        check.not_negative(most_delay=self.most_delay)


class InProcessPost:
    """All letters of a federation inside one program, on a clock of its own."""

    def __init__(self, faults: Faults | None = None, seed: int = 0) -> None:
        self._faults, self._random = faults or Faults(), random.Random(seed)
        self._sacks: list[tuple[float, int, str, bytes]] = []
        self._count = 0
        self.now = 0.0
        self.delivered = 0
        self.lost = 0

    def deliver(self, to: str, content: bytes) -> None:
        """Put a letter on its way, twice or not at all if the faults say so."""
        faults, draw = self._faults, self._random.random
        copies = 1 + (draw() < faults.repeat)
        for _ in range(copies):
            if draw() < faults.loss:
                self.lost += 1
                continue
            self._count += 1
            due = self.now + draw() * faults.most_delay
            heapq.heappush(self._sacks, (due, self._count, to, content))

    def next(self) -> tuple[str, bytes] | None:
        """The next letter that is due now, or None."""
        if not self._sacks or self._sacks[0][0] > self.now:
            return None
        _, _, to, content = heapq.heappop(self._sacks)
        self.delivered += 1
        return to, content

    def next_due(self) -> float | None:
        """When the next letter is due, or None if none is on its way."""
        return self._sacks[0][0] if self._sacks else None
