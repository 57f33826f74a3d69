"""What the programs of an agent and of a coordinator have in common."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np

from tacita.check import printable
from tacita.disk import alone_in, write_private, write_whole
from tacita.federation.description import Description
from tacita.federation.draws import derive
from tacita.federation.hub import Invitation
from tacita.federation.party import (
    MOST_NOTE,
    ChargeLetter,
    Desk,
    Party,
    no_charge,
)
from tacita.federation.post import Post
from tacita.federation.receipts import Pen, folder_number
from tacita.federation.seal import Sealed, private_folder
from tacita.federation.setting import secret_of
from tacita.federation.state_file import StateFile
from tacita.federation.wire import Identity, Letter, LetterRefused, note
from tacita.runtime.progress import Bar

#: Seconds between two looks at the clock where no letter comes.
TICK = 0.25


class Options(TypedDict, total=False):
    """What any party's program may be told.

    Attributes:
        folder: Where state and results are kept; tacita-FEDERATION-NAME by default.
        keys: File with the party's own keys, if the hub did not make them.
        post: What carries its letters, made from the invitation; NATS by default.
        tell: Called with every line that the program has to say; logged by default.
        progress: Whether to draw a progress bar.
    """

    folder: str | Path | None
    keys: str | Path | None
    post: Callable[[Invitation], Post] | None
    tell: Callable[[str], Any]
    progress: bool


@dataclass(frozen=True)
class Result:
    """What a run left at one party.

    Attributes:
        folder: Where it is kept.
        models: "shared" and, at an agent, its "own".
        numbers: Loss, budget, letters, as in the folder's result.json.
    """

    folder: Path
    models: Mapping[str, np.ndarray]
    numbers: Mapping[str, Any]


class Program:
    """One party's program. Abstract: `Agent` and `Coordinator` derive from it.

    Attributes:
        most_greeting: Bytes of a letter outside of any run, at most.
    """

    most_greeting: int = MOST_NOTE

    def __init__(
        self, invitation: Invitation | str | Path, **options: Unpack[Options]
    ) -> None:
        if not isinstance(invitation, Invitation):
            invitation = Invitation.load(invitation, options.get("keys"))
        assert invitation.keys is not None
        self.me, self._keys = invitation, invitation.keys
        usual = f"tacita-{invitation.federation}-{invitation.name}"
        self.home = Path(options.get("folder") or usual)
        self.envelope = Sealed(invitation.name, self._keys, invitation.others)
        log = logging.getLogger("tacita.federation")
        self._say, self._post = options.get("tell", log.info), options.get("post")
        self._progress = options.get("progress", False)

    def tell(self, line: str) -> None:
        """Say a line; whoever wrote parts of it cannot control the terminal."""
        self._say(printable(line))

    @property
    def secret(self) -> bytes:
        """The root of this party's secrets, made at the first call."""
        return secret_of(self.home, self._keys)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """The folder, and no other program in it."""
        with alone_in(private_folder(self.home)):
            yield

    def connect(self) -> Post:
        """The post."""
        if self._post is None:
            from tacita.federation.nats_post import NatsPost  # a library of its own

            return NatsPost(self.me)
        return self._post(self.me)

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
    ) -> Iterator[tuple[bytes, Letter]]:
        """As `await_letters`, with the sealed bytes of each."""
        end = math.inf if seconds is None else time.monotonic() + seconds
        most_bytes = max(most_bytes, self.most_greeting)
        post.expect(most_bytes)
        next_time = 0.0
        while (now := time.monotonic()) < end:
            if now >= next_time:
                next_time = now + patience
                self.deliver(post, say())
            for content in post.collect(0.5):
                try:
                    letter = self.envelope.open(content, most_bytes)
                except LetterRefused as refusal:
                    self.tell(f"a letter was refused: {refusal}")
                    continue
                yield content, letter

    def greet(self, letter: Letter) -> Letter | None:
        """Answer a letter outside of any run."""
        raise NotImplementedError

    def remark(self, kind: str) -> str:
        """What this party tells of itself with a letter of this kind."""
        return ""

    def more_status(self, party: Party) -> dict[str, Any]:
        """What the status tells besides."""
        raise NotImplementedError

    def desk(self, run: Description, charge: ChargeLetter = no_charge) -> Desk:
        """What the party needs besides its mathematics."""
        me = self.me
        who = Identity(me.federation, run.digest, "state", 0, 0, me.name, me.name)
        key = derive(self.secret, f"store {run.digest}")
        return Desk(
            me.name,
            me.federation,
            run.digest,
            self.envelope,
            StateFile(self.home / run.digest, key, who),
            Pen(self._keys.derive("receipts"), run.digest, folder_number(self.secret)),
            charge,
            greet=self.greet,
            remark=self.remark,
            most_greeting=self.most_greeting,
        )

    def drive(
        self, party: Party, post: Post, rounds: int, first: Sequence[bytes] = ()
    ) -> None:
        """Run the party to its end; its status is written each second.

        Args:
            party: The party.
            post: Its post.
            rounds: Of the run.
            first: Letters to it that came before it was made.
        """
        with Bar(self._progress, rounds) as bar:

            def watch() -> None:
                told = _status(party, post, rounds) | self.more_status(party)
                self.write_status(told)
                bar.update(told["round"], None)

            run_party(party, post, watch, first=first)

    def write_status(self, told: Mapping[str, Any]) -> None:
        """Leave a note of how far the party is, for `tacita federation status`."""
        partial = self.home / ".status.json.partial"
        partial.write_text(json.dumps(told, indent=1))
        partial.replace(self.home / "status.json")

    def keep(
        self, run: Description, models: dict[str, np.ndarray], told: dict[str, Any]
    ) -> Result:
        """Keep the result here; with it on the disk the run is over."""
        kept = self.home / run.digest
        told = {"run": run.digest, "name": run.name, **told}

        def save_models(path: Path) -> None:
            with open(path, "wb") as file:
                np.savez(file, **models)  # pyright: ignore

        write_whole(kept / "models.npz", save_models)
        write_private(kept / "result.json", json.dumps(told, indent=1))
        self.tell(f"the run is over; models and numbers are in {kept}")
        return Result(kept, models, told)


def _status(party: Party, post: Post, rounds: int) -> dict[str, Any]:
    """What every party's status tells."""
    now = time.monotonic()
    return {
        "party": party.name,
        "run": party.desk.run,
        "round": min(party.round, rounds),
        "rounds": rounds,
        "finished": party.finished,
        "written": time.time(),
        **vars(party.counts),
        "connected": post.connected,
        "seconds_since": {k: now - v for k, v in party.heard_at.items()},
        "under_way": post.under_way(),
        "dropped": post.dropped,
    }


def send(party: Party, deliver: Callable[[str, bytes], None]) -> None:
    """Send what the party has left in its outbox."""
    for to, content in party.take_out():
        deliver(to, content)


def run_party(
    party: Party,
    post: Post,
    watch: Callable[[], None] | None = None,
    seconds: float | None = None,
    first: Sequence[bytes] = (),
) -> bool:
    """Run one party on the real clock until it is finished; False if time ran out.

    Args:
        party: The party.
        post: Its post.
        watch: Called now and then, for progress and the status file.
        seconds: Longest time to run; None for any.
        first: Letters to it that came before.
    """
    begun = time.monotonic()
    post.expect(party.most_bytes)
    party.start(begun)
    for content in first:
        party.receive(content, begun)
    send(party, post.deliver)
    looked = 0.0
    while not party.finished:
        for content in post.collect(TICK):
            party.receive(content, time.monotonic())
            send(party, post.deliver)
        now = time.monotonic()
        party.tick(now)
        send(party, post.deliver)
        if watch is not None and now - looked >= 1.0:
            looked = now
            watch()
        if seconds is not None and now - begun > seconds:
            return False
    if watch is not None:
        watch()
    return True
