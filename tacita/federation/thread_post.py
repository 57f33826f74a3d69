"""A post between threads of one program: for notebooks, tests, and as an example."""

from __future__ import annotations

import collections
import queue

from tacita.federation.hub import Invitation
from tacita.federation.post import Post, take_all

Boxes = collections.defaultdict[str, queue.SimpleQueue[bytes]]


class ThreadPost(Post):
    """One party's box.

    Args:
        name: The party.
        boxes: Everybody's.
    """

    def __init__(self, name: str, boxes: Boxes) -> None:
        self._mine, self._boxes = boxes[name], boxes

    def deliver(self, to: str, content: bytes) -> None:
        """Into the other one's box."""
        self._boxes[to].put(content)

    def collect(self, seconds: float) -> list[bytes]:
        """What is in mine."""
        return take_all(self._mine, seconds)


class PostRoom:
    """Gives every party its post; hand it to `join` and `coordinate` as `post`."""

    def __init__(self) -> None:
        self._boxes: Boxes = collections.defaultdict(queue.SimpleQueue)

    def __call__(self, invitation: Invitation) -> Post:
        """The post of the party that was invited."""
        return ThreadPost(invitation.name, self._boxes)
