"""A post between threads of one program: for notebooks, tests, and as an example."""

from __future__ import annotations

import queue

from tacita.federation.invitation import Invitation
from tacita.federation.post import Post, take_all

Boxes = dict[str, queue.SimpleQueue[bytes]]


class ThreadPost(Post):
    """One party's box.

    Args:
        name: The party.
        boxes: Everybody's.
    """

    def __init__(self, name: str, boxes: Boxes) -> None:
        self._boxes, self._mine = boxes, _box(boxes, name)

    def deliver(self, to: str, content: bytes) -> None:
        """Into the other one's box."""
        _box(self._boxes, to).put(content)

    def collect(self, seconds: float) -> list[bytes]:
        """What is in mine."""
        return take_all(self._mine, seconds)


def _box(boxes: Boxes, name: str) -> queue.SimpleQueue[bytes]:
    # In one step: two threads must not make a box each.
    return boxes.setdefault(name, queue.SimpleQueue())


class PostRoom:
    """Gives every party its post; hand it to `join` and `coordinate` as `post`."""

    def __init__(self) -> None:
        self._boxes: Boxes = {}

    def __call__(self, invitation: Invitation) -> Post:
        """The post of the party that was invited."""
        return ThreadPost(invitation.name, self._boxes)
