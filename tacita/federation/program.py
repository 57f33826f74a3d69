"""What the programs of an agent and of a coordinator have in common."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypedDict, Unpack

import numpy as np

from tacita.check import refuse
from tacita.disk import (
    alone_in,
    refused_if_unwritable,
    write_private,
    write_whole,
)
from tacita.federation.correspondence import Correspondence
from tacita.federation.description import Description
from tacita.federation.desk import ChargeLetter, Desk, Signer, no_charge
from tacita.federation.diary import Diary
from tacita.federation.draws import derive
from tacita.federation.driving import run_party
from tacita.federation.invitation import Invitation
from tacita.federation.kept_run import KeptRun
from tacita.federation.membership import require_partners
from tacita.federation.party import Party
from tacita.federation.post import Post
from tacita.federation.receipts import Pen, folder_number
from tacita.federation.seal import private_folder
from tacita.federation.setting import secret_of
from tacita.federation.state_file import StateFile
from tacita.federation.wire import Identity
from tacita.runtime.progress import Bar


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


class Program(Correspondence):
    """One party's program. Abstract: `Agent` and `Coordinator` derive from it."""

    def __init__(
        self, invitation: Invitation | str | Path, **options: Unpack[Options]
    ) -> None:
        if not isinstance(invitation, Invitation):
            invitation = Invitation.load(invitation, options.get("keys"))
        self.home = Path(options.get("folder") or invitation.usual_folder)
        post, metrics = options.get("post"), options.get("metrics")
        log = logging.getLogger("tacita.federation")
        say = options.get("tell", log.info)
        super().__init__(invitation, self.home, post, say, metrics)
        self._progress = options.get("progress", False)
        self.silence = options.get("silence")
        #: Its notes on the run in progress; None before one.
        self.diary: Any = None

    @property
    def secret(self) -> bytes:
        """The root of this party's secrets, made at the first call."""
        return secret_of(self.home, self._keys)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """The folder, and no other program in it."""
        with alone_in(private_folder(self.home)):
            yield

    def remark(self, kind: str, to: str) -> str:
        """What this party tells somebody of itself with a letter of this kind."""
        return ""

    def more_status(self, party: Party) -> dict[str, Any]:
        """What the status tells besides."""
        raise NotImplementedError

    def look_at(self, party: Party) -> None:
        """Measure how far the run has come; called after letters were answered."""

    def desk(self, run: Description, charge: ChargeLetter = no_charge) -> Desk:
        """What the party needs besides its mathematics."""
        me, self._running = self.me, run
        require_partners(run, me)
        self.diary = Diary(self.home / run.digest, run.agents, run.rounds)
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
            ended=self.diary.ended,
            most_greeting=self.most_greeting,
            signer=Signer(self._keys.sign, self._key_of),
        )

    def _key_of(self, name: str) -> bytes | None:
        """With what somebody signs by now: keys change while a run goes on."""
        keys = self.me.others.get(name)
        return None if keys is None else keys.sign

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
        begun, self.diary.counts = time.monotonic(), party.counts
        with Bar(self._progress, rounds) as bar:

            def watch() -> None:
                told = _status(party, post, rounds) | self.more_status(party)
                self.write_status(told)
                self.pulse.beat(post, told)
                self._remind_hub(post)
                bar.update(told["round"], None)
                heard = max(party.heard_at.values(), default=begun)
                self._require_life(party, time.monotonic() - heard)

            def look() -> None:
                self.look_at(party)
                self.require_going_on()

            try:
                run_party(party, post, watch, first=first, look=look)
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
        self, made: KeptRun, models: dict[str, np.ndarray], told: dict[str, Any]
    ) -> Result:
        """Keep the result here; with it on the disk the run is over.

        Args:
            made: The run as this party knows it.
            models: The models, by name.
            told: Numbers, by name.
        """
        run = made.run
        kept = self.home / run.digest
        told = {"run": run.digest, "name": run.name, **told}

        def save_models(path: Path) -> None:
            with open(path, "wb") as file:
                np.savez(file, **models)  # pyright: ignore

        write_whole(kept / "models.npz", save_models)
        with refused_if_unwritable(kept):
            made.save(kept)
        write_private(kept / "result.json", json.dumps(told, indent=1))
        self.tell(f"the run is over; see it with: tacita report {kept}")
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
