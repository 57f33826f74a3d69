"""What the programs of an agent and of a coordinator have in common."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypedDict, Unpack

import numpy as np

from tacita.check import printable, refuse
from tacita.disk import (
    alone_in,
    refused_if_unwritable,
    write_private,
    write_whole,
)
from tacita.federation import certificates
from tacita.federation.description import Description
from tacita.federation.desk import MOST_NOTE, ChargeLetter, Desk, no_charge
from tacita.federation.draws import derive
from tacita.federation.driving import run_party
from tacita.federation.invitation import Invitation
from tacita.federation.membership import (
    Membership,
    announce_end,
    require_partners,
)
from tacita.federation.metrics import MetricsServer, Pulse
from tacita.federation.party import Party
from tacita.federation.post import Post
from tacita.federation.receipts import Pen, folder_number
from tacita.federation.roster import HUB
from tacita.federation.seal import Sealed, private_folder
from tacita.federation.setting import secret_of
from tacita.federation.state_file import StateFile
from tacita.federation.wire import MOST_TEXT, Identity, Letter, LetterRefused, note
from tacita.runtime.progress import Bar

#: Seconds to wait for the hub's roster before going on with the one that is known.
_HUB_PATIENCE = 2.0
#: Seconds between two questions for a newer one.
_HUB_PAUSE = 60.0


class Options(TypedDict, total=False):
    """What any party's program may be told.

    Attributes:
        folder: Where state and results are kept; tacita-FEDERATION-NAME by default.
        keys: File with the party's own keys, if the hub did not make them.
        post: What carries its letters, made from the invitation; NATS by default.
        tell: Called with every line that the program has to say; logged by default.
        progress: Whether to draw a progress bar.
        silence: Seconds without a letter from anybody after which a run is left, its
            state kept; None waits for ever.
        metrics: Port on loopback at which the program tells its numbers; see
            `metrics.py`.
    """

    folder: str | Path | None
    keys: str | Path | None
    post: Callable[[Invitation], Post] | None
    tell: Callable[[str], Any]
    progress: bool
    silence: float | None
    metrics: int | None


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

    most_greeting: int = MOST_TEXT["roster"] + MOST_NOTE

    def __init__(
        self, invitation: Invitation | str | Path, **options: Unpack[Options]
    ) -> None:
        if not isinstance(invitation, Invitation):
            invitation = Invitation.load(invitation, options.get("keys"))
        self.home = Path(options.get("folder") or invitation.usual_folder)
        self.membership = Membership(invitation, self.home)
        self._keys = invitation.keys
        self.envelope = Sealed(self.me.name, self._keys, self.me.others)
        log = logging.getLogger("tacita.federation")
        self._say, self._post = options.get("tell", log.info), options.get("post")
        self._progress = options.get("progress", False)
        self.silence, self._port = options.get("silence"), options.get("metrics")
        self._running: Description | None = None
        #: When the hub was asked for its roster; None where there is no hub to ask.
        self._asked_at: float | None = None
        self._hub_heard = False
        self._live: Post | None = None
        self.pulse = Pulse(invitation.name, self._ends)

    @property
    def me(self) -> Invitation:
        """This party, and what it knows of the others by now."""
        return self.membership.me

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

    @contextmanager
    def connect(self) -> Iterator[Post]:
        """The post, and the newest roster."""
        announce_end(self.me.access.certificate, self.tell)
        with ExitStack() as stack:
            if self._port is not None:
                stack.enter_context(MetricsServer(self._port, self.pulse))
            if self._post is not None:
                yield stack.enter_context(self._post(self.me))
                return
            from tacita.federation.nats_post import NatsPost  # a library of its own

            post = self._live = stack.enter_context(NatsPost(self.me))
            self._ask_for_roster(post)
            yield post

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
            self.tell(f"a letter was refused: {refusal}")
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

    def remark(self, kind: str) -> str:
        """What this party tells of itself with a letter of this kind."""
        return ""

    def more_status(self, party: Party) -> dict[str, Any]:
        """What the status tells besides."""
        raise NotImplementedError

    def desk(self, run: Description, charge: ChargeLetter = no_charge) -> Desk:
        """What the party needs besides its mathematics."""
        me, self._running = self.me, run
        require_partners(run, me)
        self.envelope.know(me.others, run.agents)
        who = Identity(me.federation, run.digest, "state", 0, 0, me.name, me.name)
        key = derive(self.secret, f"store {run.digest}")
        return Desk(
            me.name,
            me.federation,
            run.digest,
            self.envelope,
            StateFile(self.home / run.digest, key, who),
            Pen(self._keys.lasting("receipts"), run.digest, folder_number(self.secret)),
            charge,
            greet=self._outside,
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
        begun = time.monotonic()
        with Bar(self._progress, rounds) as bar:

            def watch() -> None:
                told = _status(party, post, rounds) | self.more_status(party)
                self.write_status(told)
                self.pulse.beat(post, told)
                self._remind_hub(post)
                bar.update(told["round"], None)
                heard = max(party.heard_at.values(), default=begun)
                self._require_life(party, time.monotonic() - heard)

            try:
                run_party(party, post, watch, first=first)
            finally:
                self._running = None

    def _require_life(self, party: Party, silent: float) -> None:
        """Leave a run whose other parties are gone for good."""
        if self.silence is not None and silent > self.silence and not party.finished:
            self.leave(silent)

    def leave(self, silent: float) -> NoReturn:
        """End the program after so many seconds of silence."""
        refuse(
            f"nothing was heard from anybody for {silent:.0f} s; the state is kept "
            f"in {self.home}: start again to go on, or with --abandon to give up"
        )

    def _ends(self) -> dict[str, float]:
        """What the metrics tell besides the status."""
        ends = certificates.expires(self.me.access.certificate)
        version = self.me.roster.version
        return {"certificate_ends": ends, "roster_version": version}

    def write_status(self, told: Mapping[str, Any]) -> None:
        """Leave a note of how far the party is, for `tacita federation status`."""
        path = self.home / "status.json"
        with refused_if_unwritable(path):
            partial = path.with_name(".status.json.partial")
            partial.unlink(missing_ok=True)
            partial.touch(0o600)
            partial.write_text(json.dumps(told, indent=1))
            partial.replace(path)

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
