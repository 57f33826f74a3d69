"""What a source says, asked only while somebody looks; and what changed in it."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping

from tacita.check import TacitaError
from tacita.watch.view import Head, Source, View, plain

#: Seconds between two updates of the page.
EVERY = 1.0
#: Parts that are as the page begins with them.
NOTHING: Mapping[str, str] = {}


class Feed:
    """The newest parts of a page, for however many look at it.

    Args:
        source: Who looks at the folder.
        every: Seconds that an answer is good for.
    """

    def __init__(self, source: Source, every: float = EVERY) -> None:
        self._source, self._every = source, every
        self._lock = threading.Lock()
        self._parts: Mapping[str, str] = NOTHING
        self._until = 0.0

    def parts(self) -> Mapping[str, str]:
        """Every part as JSON; "order" says in which order the page shows them."""
        with self._lock:
            now = time.monotonic()
            if now >= self._until:
                view = self._look()
                self._parts = {n: json.dumps(plain(part)) for n, part in view.items()}
                self._parts["order"] = json.dumps(list(view))
                # A little less: those who come back after a whole time find news.
                self._until = now + 0.9 * self._every
            return self._parts

    def forget(self) -> None:
        """Ask anew next time: something was decided."""
        with self._lock:
            self._until = 0.0

    def _look(self) -> View:
        try:
            return self._source.look()
        except (TacitaError, OSError) as error:
            told = str(error).split("\n")[0]
            role, state = "folder", "cannot be read"
            head = Head(
                title="Tacita", role=role, state=state, tone="bad", warnings=[told]
            )
            return {"head": head}


def changes(before: Mapping[str, str], now: Mapping[str, str]) -> str | None:
    """One JSON object with the parts that changed, null for those that are gone.

    >>> changes({"a": "1", "b": "2"}, {"a": "1", "c": "3"})
    '{"c":3,"b":null}'
    """
    found = [(n, told) for n, told in now.items() if before.get(n) != told]
    found += [(name, "null") for name in before if name not in now]
    if not found:
        return None
    return "{" + ",".join(f"{json.dumps(name)}:{told}" for name, told in found) + "}"
