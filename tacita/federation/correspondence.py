"""What a party's program says and hears outside of any run, and its newest roster."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tacita.check import TacitaError, printable
from tacita.federation import certificates
from tacita.federation.description import Description
from tacita.federation.desk import MOST_NOTE, Counts
from tacita.federation.invitation import Invitation
from tacita.federation.membership import (
    Membership,
    announce_end,
    require_partners,
)
from tacita.federation.metrics import MetricsServer, Pulse
from tacita.federation.post import Post
from tacita.federation.roster import HUB
from tacita.federation.seal import Sealed
from tacita.federation.wire import MOST_TEXT, Letter, LetterRefused, note

#: Seconds to wait for the hub's roster before going on with the one that is known.
_HUB_PATIENCE = 2.0
#: Seconds between two questions for a newer one.
_HUB_PAUSE = 60.0
#: Seconds of one try to reach a broker, at most and at least.
_BROKER_PATIENCE, _LEAST_PATIENCE = 10.0, 3.0


class Ended(Exception):
    """The program was asked to end."""


def left_of(wait: float | None, begun: float) -> float | None:
    """What is left of the seconds to wait, since a moment of the monotonic clock."""
    return None if wait is None else max(0.0, wait - (time.monotonic() - begun))


class Correspondence:
    """One party's letters outside of runs. Abstract: programs derive from it.

    Args:
        invitation: The party's own.
        home: Its folder.
        post: What carries letters, made from the invitation; None for NATS.
        say: Called with every line for its own people.
        metrics: Port on loopback at which it tells its numbers; None for nowhere.

    Attributes:
        most_greeting: Bytes of a letter outside of any run, at most.
    """

    most_greeting: int = MOST_TEXT["roster"] + MOST_NOTE

    def __init__(
        self,
        invitation: Invitation,
        home: Path,
        post: Callable[[Invitation], Post] | None,
        say: Callable[[str], Any],
        metrics: int | None,
    ) -> None:
        self.membership = Membership(invitation, home)
        self._keys = invitation.keys
        self.envelope = Sealed(self.me.name, self._keys, self.me.others)
        self._post, self._say, self._port = post, say, metrics
        self._complaints = Counts()
        self._running: Description | None = None
        #: When the hub was asked for its roster; None where there is no hub to ask.
        self._asked_at: float | None = None
        self._hub_heard = False
        self._live: Post | None = None
        self._ending = threading.Event()
        self.pulse = Pulse(invitation.name, self._ends)

    @property
    def me(self) -> Invitation:
        """This party, and what it knows of the others by now."""
        return self.membership.me

    def tell(self, line: str) -> None:
        """Say a line; whoever wrote parts of it cannot control the terminal."""
        self._say(printable(line))

    def end(self) -> None:
        """Have the program end soon, at a moment when nothing is half done."""
        self._ending.set()

    def require_going_on(self) -> None:
        """Raise `Ended` if the program was asked to end."""
        if self._ending.is_set():
            raise Ended

    def complain(self, line: str) -> None:
        """Say a line about others' letters once, however often they send such."""
        known = len(self._complaints.refused)
        self._complaints.refuse(line)
        if len(self._complaints.refused) > known:
            self.tell(line)

    @contextmanager
    def connect(self, wait: float | None = None) -> Iterator[Post]:
        """The post, and the newest roster.

        Args:
            wait: Seconds to try to reach a broker; None for ever.
        """
        announce_end(self.me.access.certificate, self.tell)
        with ExitStack() as stack:
            if self._port is not None:
                stack.enter_context(MetricsServer(self._port, self.pulse))
            if self._post is not None:
                yield stack.enter_context(self._post(self.me))
                return
            post = self._live = stack.enter_context(self._reach_broker(wait))
            self._ask_for_roster(post)
            yield post

    def _reach_broker(self, wait: float | None) -> Post:
        """Try until the time is over; meanwhile say what is wrong."""
        from tacita.federation.nats_post import NatsPost  # a library of its own

        end = time.monotonic() + (math.inf if wait is None else wait)
        while True:
            self.require_going_on()
            left = max(end - time.monotonic(), _LEAST_PATIENCE)
            try:
                return NatsPost(self.me, min(left, _BROKER_PATIENCE))
            except TacitaError as error:
                if time.monotonic() >= end:
                    raise
                self.complain(f"{error}; trying again")

    def _ask_for_roster(self, post: Post) -> None:
        """Wait a moment for the hub; it may be away, and the brokers there."""
        self._asked_at = time.monotonic()
        post.expect(self.most_greeting)
        end = self._asked_at + _HUB_PATIENCE
        while time.monotonic() < end:
            self.deliver(post, [self.note("ask", HUB)])
            for content in post.collect(_HUB_PATIENCE / 4):
                self._open(content, self.most_greeting)
                if self._hub_heard:
                    return
        known = self.me.roster.version
        self.tell(f"the hub does not answer; going on with version {known} of its list")

    def _remind_hub(self, post: Post) -> None:
        """Ask for the roster now and then: the hub's own word may have been lost."""
        now = time.monotonic()
        if self._asked_at is not None and now - self._asked_at >= _HUB_PAUSE:
            self._asked_at = now
            self.deliver(post, [self.note("ask", HUB)])

    def _is_roster(self, letter: Letter) -> bool:
        """Take the roster out of a letter, if it is one of the hub's."""
        if letter.identity.kind != "roster":
            return False
        if letter.identity.sender != HUB:
            raise LetterRefused("only the hub tells the roster")
        self._hub_heard = True
        if self.membership.take(letter.text):
            self.envelope.know(self.me.others)
            if self._live is not None:
                self._live.know(self.me)
            roster = self.me.roster
            self.tell(f"version {roster.version} of the roster is known now")
            if self._running is not None:
                require_partners(self._running, self.me)
        return True

    def _open(self, content: bytes, most_bytes: int) -> Letter | None:
        """A letter; None if it was the hub's, or, with a line, if it is refused."""
        try:
            letter = self.envelope.open(content, most_bytes)
            return None if self._is_roster(letter) else letter
        except LetterRefused as refusal:
            self.complain(f"a letter was refused: {refusal}")
            return None

    def note(self, kind: str, to: str, text: str = "") -> Letter:
        """A letter of this party's outside of any run."""
        return note(kind, self.me.federation, self.me.name, to, text)

    def deliver(self, post: Post, letters: Iterable[Letter]) -> None:
        """Seal letters, and send them."""
        for letter in letters:
            post.deliver(letter.identity.receiver, self.envelope.close(letter))

    def await_letters(
        self,
        post: Post,
        say: Callable[[], Iterable[Letter]],
        seconds: float | None,
        patience: float,
    ) -> Iterator[Letter]:
        """Letters as they come, until the time is over; `say` is sent now and then."""
        for _, letter in self.await_contents(post, say, seconds, patience):
            yield letter

    def await_contents(
        self,
        post: Post,
        say: Callable[[], Iterable[Letter]],
        seconds: float | None,
        patience: float,
        most_bytes: int = 0,
        anew: bool = False,
    ) -> Iterator[tuple[bytes, Letter]]:
        """As `await_letters`, with the sealed bytes of each.

        Args:
            post: Where they come.
            say: What is sent now and then.
            seconds: How long to wait; None for ever.
            patience: Seconds between two times of saying it.
            most_bytes: Of a letter, if that is more than outside of runs.
            anew: Whether every letter begins the time anew.
        """
        patient = math.inf if seconds is None else seconds
        end = time.monotonic() + patient
        most_bytes = max(most_bytes, self.most_greeting)
        post.expect(most_bytes)
        next_time = 0.0
        while (now := time.monotonic()) < end:
            self.require_going_on()
            if now >= next_time:
                next_time = now + patience
                self.deliver(post, say())
            self.pulse.beat(post)
            self._remind_hub(post)
            for content in post.collect(0.5):
                letter = self._open(content, most_bytes)
                if letter is not None:
                    end = time.monotonic() + patient if anew else end
                    yield content, letter

    def _outside(self, letter: Letter) -> Letter | None:
        """Answer a letter that belongs to no run."""
        return None if self._is_roster(letter) else self.greet(letter)

    def greet(self, letter: Letter) -> Letter | None:
        """Answer a letter outside of any run."""
        raise NotImplementedError

    def _ends(self) -> dict[str, float]:
        """What the metrics tell besides the status."""
        ends = certificates.expires(self.me.access.certificate)
        version = self.me.roster.version
        return {"certificate_ends": ends, "roster_version": version}
