"""A coordinator played by hand, honest or not, against the real program of an agent."""

from __future__ import annotations

import json
import threading
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tacita.federation import Hub, Invitation, PostRoom, Result, consent, join
from tacita.federation.description import Description
from tacita.federation.post import Post
from tacita.federation.receipts import BLANK
from tacita.federation.seal import Sealed
from tacita.federation.thread_post import Boxes, ThreadPost
from tacita.federation.wire import Identity, Letter, note
from tests.federation.towns import NAMES
from tests.patience import HANG

MOST = 1 << 24


class TheTestIsOver(BaseException):
    """Nothing that an agent survives: its thread must end with its test."""


class _PostOfATest(ThreadPost):
    def __init__(self, name: str, boxes: Boxes, over: threading.Event) -> None:
        super().__init__(name, boxes)
        self._over = over

    def collect(self, seconds: float) -> list[bytes]:
        if self._over.is_set():
            raise TheTestIsOver
        return super().collect(seconds)


class _RoomOfATest(PostRoom):
    """A room that is left by all when it closes."""

    def __init__(self) -> None:
        super().__init__()
        self.over = threading.Event()

    def __call__(self, invitation: Invitation) -> Post:
        return _PostOfATest(invitation.name, self._boxes, self.over)


class ByHand:
    """A town whose coordinator is the test itself; all that agents send is kept.

    Attributes:
        sent: Every letter that came from an agent, opened.
    """

    towns: ClassVar[list[ByHand]] = []  # of the test that runs, see conftest.py

    def __init__(self, folder: Path) -> None:
        self.folder, self.room = folder, _RoomOfATest()
        self._threads: list[threading.Thread] = []
        self.towns.append(self)
        self.hub = Hub.create(folder / "hub", "town", NAMES, port=0)
        self.me = self.invitation("coordinator")
        assert self.me.keys is not None
        self.keys = self.me.keys
        self._post = self.room(self.me)
        self._envelope = Sealed("coordinator", self.keys, self.me.others)
        self.sent: list[Letter] = []
        self.said: list[str] = []

    def invitation(self, who: str) -> Invitation:
        return Invitation.load(self.hub.invitations[who])

    def describe(self, tables: dict[str, Any], agents: Any = NAMES) -> Description:
        return Description("town", "try", "coordinator", tuple(agents), tables)

    def join(self, who: str, rows: Any, policy: Any, **more: Any) -> Future[Result]:
        """An agent's own program, in a thread."""
        options: Any = {
            "folder": self.folder / f"{who}-home",
            "post": self.room,
            "tell": self.said.append,
            **more,
        }
        path = self.hub.invitations[who]
        done: Future[Result] = Future()

        def work() -> None:
            try:
                done.set_result(join(path, rows, policy, HANG, **options))
            except BaseException as error:
                done.set_exception(error)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        self._threads.append(thread)
        return done

    @classmethod
    def end_all(cls) -> None:
        """Agents that still wait end here, not in the middle of another test."""
        for town in cls.towns:
            town.room.over.set()
        for town in cls.towns:
            for thread in town._threads:
                thread.join(HANG)
                assert not thread.is_alive(), "an agent outlives its test"
        cls.towns.clear()

    def say(self, kind: str, to: str, text: str) -> None:
        """A letter outside of any run."""
        self.deliver(note(kind, "town", "coordinator", to, text))

    def offer(self, run: Description, to: str = "ada") -> None:
        self.say("offer", to, run.signed(self.keys))

    def consents(self, run: Description, to: str = "ada", **other: Any) -> None:
        """Hand out the consents of all, honestly made, or others."""
        given = {}
        for name in run.agents:
            keys = self.invitation(name).keys
            assert keys is not None
            given[name] = consent.sign(run, name, keys)
        self.say("consents", to, consent.bundle(run, {**given, **other}))

    def ask(self, run: Description, *numbers: np.ndarray, to: str = "ada") -> None:
        """The question of round 1."""
        name = Identity("town", run.digest, "question", 1, 0, "coordinator", to)
        self.deliver(Letter(name, (*numbers, np.asarray(0), BLANK, BLANK)))

    def deliver(self, letter: Letter) -> None:
        to = letter.identity.receiver
        self._post.deliver(to, self._envelope.close(letter))

    def hear(self, *kinds: str, seconds: float = HANG) -> Letter:
        """The next letter of these kinds; all others are kept too."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = None
            for content in self._post.collect(0.05):
                letter = self._envelope.open(content, MOST)
                self.sent.append(letter)
                if letter.identity.kind in kinds and found is None:
                    found = letter
            if found is not None:
                return found
        raise AssertionError(f"no {kinds} came; said here: {self.said[-3:]}")

    def answer_of(self, run: Description, to: str = "ada") -> dict[str, Any]:
        """Offer a run; what the agent answers."""
        self.offer(run, to)
        letter = self.hear("accept", "refuse")
        while json.loads(letter.text)["run"] != run.digest:
            letter = self.hear("accept", "refuse")
        return {"kind": letter.identity.kind, **json.loads(letter.text)}

    def drain(self, seconds: float) -> None:
        """Whatever else comes."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for content in self._post.collect(0.05):
                self.sent.append(self._envelope.open(content, MOST))
