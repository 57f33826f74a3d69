"""The hub's voice: it tells parties the roster when they ask, and when it changes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from tacita.federation.invitation import Invitation
from tacita.federation.roster import HUB, Roster
from tacita.federation.seal import Sealed
from tacita.federation.wire import LetterRefused, note

#: Seconds between two looks at the roster's file.
_LOOK = 0.2
#: Seconds within which a party is answered once, however often it asks.
_PAUSE = 0.1
#: Seconds in which somebody who was removed may still be told so.
_FAREWELL = 0.1
_MOST_BYTES = 1 << 16


class Registrar:
    """A thread that answers for the hub.

    Args:
        invitation: The hub's own.
        file: Where the signed roster is; looked at now and then.
        changed: Called when there is a newer one.
    """

    def __init__(
        self, invitation: Path, file: Path, changed: Callable[[], None]
    ) -> None:
        from tacita.federation.nats_post import NatsPost  # a library of its own

        self._me = Invitation.load(invitation)
        self._file, self._changed = file, changed
        self.roster = Roster.load(file, self._me.owner)
        self._seen, self._text = 0, file.read_text()
        self._envelope = Sealed(HUB, self._me.keys, self.roster.keys)
        self._answered: dict[str, float] = {}
        self._post = NatsPost(self._me.with_roster(self.roster))
        self._post.expect(_MOST_BYTES)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    @property
    def connected(self) -> bool:
        """Whether a broker is reached right now."""
        return self._post.connected

    def close(self) -> None:
        """Stop telling."""
        self._over.set()
        self._thread.join(5)
        self._post.close()

    def _serve(self) -> None:
        while not self._over.is_set():
            for content in self._post.collect(_LOOK):
                self._answer(content)
            self._look()

    def _look(self) -> None:
        """Tell everybody of a newer roster."""
        try:
            time_of = self._file.stat().st_mtime_ns
            if time_of == self._seen:
                return
            text = self._file.read_text()
            new = Roster.verify(text, self._me.owner)
        except (OSError, ValueError):
            return  # it is being written
        self._seen = time_of
        if new.version > self.roster.version:
            gone = sorted(set(self.roster.names) - set(new.names))
            self.roster, self._text = new, text
            for name in gone:
                self._tell(name)
            self._over.wait(_FAREWELL if gone else 0.0)
            self._envelope.know(new.keys)
            self._post.know(self._me.with_roster(new))
            self._changed()
            for name in new.names:
                self._tell(name)

    def _answer(self, content: bytes) -> None:
        try:
            one = self._envelope.open(content, _MOST_BYTES).identity
        except LetterRefused:
            return
        now = time.monotonic()
        early = now - self._answered.get(one.sender, -_PAUSE) < _PAUSE
        if one.kind == "ask" and not one.run and not early:
            self._answered[one.sender] = now
            self._tell(one.sender)

    def _tell(self, name: str) -> None:
        # The text as its owner signed it: whoever runs the hub cannot sign another.
        # The time is for those who doubt their clock.
        letter = note("roster", self.roster.federation, HUB, name, self._text)
        letter = replace(letter, arrays=(np.asarray(time.time()),))
        self._post.deliver(name, self._envelope.close(letter))
