"""What all parties share: opening letters, refusing and counting, keeping an outbox.

A party is a machine without clock, threads or network: it is handed letters and the
time, and leaves letters in its outbox. Whoever drives it takes them out *after* the
call returned, hence after everything they depend on was written to the disk.

A letter that does not come is asked for with a note. Its writer answers with a note
too: it is "ready". What carries letters keeps the order of two between the same parties
as a rule, so whoever reads that note and still has no letter knows that it was lost,
and only then "fetches" it. Whole letters are thus sent twice only where one was lost.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from tacita.check import TacitaError, printable, refuse
from tacita.federation import wire
from tacita.federation.desk import REMARK, Counts, Desk
from tacita.federation.patience import Patience
from tacita.federation.receipts import (
    OutOfStep,
    Receipts,
    When,
    require_stamps,
)
from tacita.federation.wire import Identity, Letter, LetterRefused, Repeated

#: Bytes that everybody together may have on the way to one party.
WINDOW = 128 << 20
#: Bytes that a letter has besides its numbers, and so its numbers at most.
_HEADS = 1 << 16
MOST_NUMBERS = wire.MOST_BYTES - _HEADS
#: Whole letters that a peer may fetch again at once; then one each second.
_FETCHES = 3
_NOTHING = (-1, 0)


class Diverged(TacitaError):
    """This party's own numbers grew beyond all bounds."""


class Withdrawn(Exception):
    """The run that this party is in does not take place."""


class Party:
    """One party of a run. Abstract: the three kinds of parties derive from it.

    Args:
        desk: What it needs besides its mathematics.
        most_bytes: Of the numbers of the largest letter that it gets.
        peers: Whose letters it reads.
    """

    def __init__(self, desk: Desk, most_bytes: int, peers: Container[str]) -> None:
        require_size(most_bytes)
        self.desk = desk
        self.name, self._peers = desk.name, peers
        self.outbox: list[Letter] = []
        self.counts = Counts()
        self.heard_at: dict[str, float] = {}
        self.remarks: dict[str, str] = {}
        self.receipts = Receipts()
        #: What it had said when it started.
        self._began: When = (0, 0)
        #: Number of its newest checkpoint; a note beside one counts as the next.
        self._checkpoint = 0
        self.patience = Patience()
        #: Bytes of the largest letter that is read: one of the run, or an offer.
        self.most_bytes = max(most_bytes + _HEADS, desk.most_greeting)
        #: Peers who were sent a whole letter, and were not heard since.
        self._owing: set[str] = set()
        #: The newest whole letter to every peer; how many it fetched, and when.
        self._newest_to: dict[str, tuple[int, int]] = {}
        self._fetched: dict[str, tuple[float, float]] = {}
        #: What is being fetched from whom.
        self._fetching: dict[str, tuple[int, int]] = {}

    def _read_from(self, peers: Container[str], most_bytes: int) -> None:
        """Read letters of these, and larger ones too."""
        self._peers = peers
        self.most_bytes = max(self.most_bytes, most_bytes + _HEADS)

    @property
    def finished(self) -> bool:
        """Whether nobody needs this party any more."""
        raise NotImplementedError

    @property
    def round(self) -> int:
        """The round that it is in."""
        raise NotImplementedError

    @property
    def said(self) -> When:
        """The last exchange that it answered; what it says of itself in letters."""
        raise NotImplementedError

    def model(self) -> np.ndarray:
        """Its own model; the coordinator's is the shared one."""
        raise NotImplementedError

    def known(self) -> tuple[int, np.ndarray] | None:
        """What the run has brought so far: after how many rounds, which model."""
        return None

    def start(self, now: float) -> None:
        """Begin, or go on from the checkpoint."""
        raise NotImplementedError

    def receive(self, content: bytes, now: float) -> None:
        """Take one letter in; what is not acceptable is counted and forgotten."""
        try:
            letter = self.desk.envelope.open(content, self.most_bytes)
            if not letter.identity.run:
                self._greet(letter)
                return
            self._require_mine(letter.identity)
            letter = self._with_receipt(letter)
            sender = letter.identity.sender
            self.heard_at[sender] = now
            self._owing.discard(sender)
            if letter.text:
                self.remarks[sender] = printable(letter.text, REMARK)
            self.counts.received += 1
            self.counts.received_bytes += len(content)
            self._take(letter, now)
        except Repeated:
            self.counts.repeated += 1
        except LetterRefused as refusal:
            self.counts.refuse(str(refusal))

    def tick(self, now: float) -> None:
        """Look at the clock: ask for what has not come."""
        for peer, stage in self.patience.due(now):
            if stage == "fetch":  # that note, or the letter, was lost too
                self._arrived(peer, now)
            self._ask(peer, now)

    def take_out(self) -> Iterator[tuple[str, bytes]]:
        """Empty the outbox: (receiver, envelope) of every letter in it.

        Closed one by one as they are taken, for many large ones would fill the memory.
        """
        out, self.outbox = self.outbox, []
        return map(self._close_letter, out)

    def _close_letter(self, letter: Letter) -> tuple[str, bytes]:
        content = self.desk.envelope.close(letter)
        if letter.identity.run:
            self.counts.sent += 1
            self.counts.sent_bytes += len(content)
        return letter.identity.receiver, content

    def _greet(self, letter: Letter) -> None:
        reply = self.desk.greet(letter)
        if reply is not None:
            self.outbox.append(reply)

    def _take(self, letter: Letter, now: float) -> None:
        raise NotImplementedError

    def _with_receipt(self, letter: Letter) -> Letter:
        """Look at a letter's stamp and receipt, and take them off."""
        sender = letter.identity.sender
        stamp, receipt = require_stamps(letter.arrays)
        warning = letter.identity.kind == "refuse"
        self._heed(receipt, warning)
        known = self.receipts.of(sender)
        if not self.receipts.hear(sender, stamp):
            for other in (known, stamp):  # both programs read both letters
                self._send("refuse", sender, self.said, receipt=other)
            raise LetterRefused(f"{sender} writes from two folders")
        if warning:
            raise LetterRefused("a warning of what is over")
        return replace(letter, arrays=letter.arrays[:-2])

    def _heed(self, receipt: np.ndarray, warning: bool) -> None:
        """Stop where something was said in this party's name that it does not know."""
        pen = self.desk.pen
        told = pen.read(receipt)
        if told is None or pen.remembers(told, self._began):
            return
        if warning and told.started < pen.started:
            return  # of a program that was there before this one was started again
        self._settle(elsewhere=told.folder != pen.folder)
        if told.when <= self.said:
            raise OutOfStep(
                f"another program writes as {self.name} in this run, with the same "
                "keys; end one of the two, and start the other again"
            )
        raise OutOfStep(
            f"{self.name} has spoken in round {told.when[0]} of this run, and this "
            f"folder ends with round {self.said[0]}: it was put back from a backup, or "
            f"another program has the same keys; {self._remedy}"
        )

    #: What to do about a folder that is too old.
    _remedy = (
        "whatever may have left since, to the end of the run, is in the ledger; put "
        "the newest folder back, or leave the run with --abandon"
    )

    #: Rounds with letters that are charged, and the exchanges of each.
    _rounds, _phases = 0, 1

    def _settle(self, elsewhere: bool) -> None:
        """Charge whatever may have left, known to nobody here: the rest of the run.

        A receipt may be older than the last letter, so nothing less is certain. What
        another folder said in rounds that this one answered too is a second letter.
        """
        rounds, account = range(1, self._rounds + 1), self.desk.account
        with nullcontext() if account is None else account.together():
            for when in ((r, p) for r in rounds for p in range(self._phases)):
                if when > self.said:
                    self.desk.charge(self._identity("answer", "", when), None)
                elif elsewhere:
                    self.desk.charge(self._identity("elsewhere", "", when), None)

    def _keep(self, words: dict[str, Any], **groups: Sequence[np.ndarray]) -> None:
        """Write the checkpoint."""
        names, stamps = self.receipts.as_group()
        account, self._checkpoint = self.desk.account, self._checkpoint + 1
        words = {**words, "heard_from": names, "checkpoint": self._checkpoint}
        words |= {"ledger": account and account.end, "started": self.desk.pen.started}
        self.desk.state_file.save(words, receipts=stamps, **groups)
        if account is not None:
            account.checkpoint = self._checkpoint

    def _note(self, content: bytes) -> None:
        """Write down what changed since the checkpoint.

        It has a number as checkpoints do: what the ledger holds of later steps shows
        that a note is missing, or was changed.
        """
        self.desk.state_file.note(content)
        account, self._checkpoint = self.desk.account, self._checkpoint + 1
        if account is not None:
            account.checkpoint = self._checkpoint

    def _recall(self) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """The checkpoint, if there is one."""
        saved, account = self.desk.state_file.load(), self.desk.account
        if saved is not None:
            words, groups = saved
            self.receipts.restore(words["heard_from"], groups["receipts"])
            self._checkpoint = words["checkpoint"] + len(self.desk.state_file.noted)
            # Later than the program before it, though the clock may have been set back.
            latest = max(self.desk.pen.started, words["started"] + 1)
            self.desk.pen = replace(self.desk.pen, started=latest)
            if account is not None and not account.holds(words["ledger"]):
                self._settle(elsewhere=False)
                raise account.older()
        if account is not None:
            account.require_newest(self._checkpoint)
        return saved

    def _ask(self, peer: str, now: float) -> None:
        """Ask a peer for what is waited for."""
        raise NotImplementedError

    def _fetch(self, peer: str, when: tuple[int, int], now: float) -> None:
        """Have a letter sent that is ready and not here; once, until it is overdue."""
        if self._fetching.get(peer) != when:
            self._fetching[peer] = when
            self.patience.wait((peer, "fetch"), now)
            self._send("fetch", peer, when)

    def _arrived(self, peer: str, now: float) -> None:
        """Nothing is being fetched from this peer any more."""
        if self._fetching.pop(peer, None) is not None:
            self.patience.came((peer, "fetch"), now)

    def _may_fetch(self, peer: str, now: float) -> bool:
        """Whether to send a letter once more; nobody can have it sent all the time."""
        count, last = self._fetched.get(peer, (0.0, now))
        count = max(0.0, count - (now - last)) + 1
        if count > _FETCHES:
            return False
        self._fetched[peer] = count, now
        return True

    def _note_news(self, peer: str) -> None:
        """There is a new letter for this peer, which it may fetch."""
        count, last = self._fetched.get(peer, (0.0, 0.0))
        self._fetched[peer] = max(0.0, count - 1), last

    def _require_mine(self, identity: Identity) -> None:
        if identity.federation != self.desk.federation:
            raise LetterRefused("a letter of another federation")
        if identity.run != self.desk.run:
            raise LetterRefused("a letter of another run")
        if identity.receiver != self.name:
            raise LetterRefused("a letter to another party")
        if identity.sender not in self._peers:
            raise LetterRefused("a letter of somebody who does not write here")

    def _send(
        self,
        kind: str,
        to: str,
        when: tuple[int, int],
        arrays: Sequence[np.ndarray] = (),
        receipt: np.ndarray | None = None,
    ) -> None:
        if arrays:
            self._owing.add(to)
            self.counts.resent += when <= self._newest_to.get(to, _NOTHING)
            self._newest_to[to] = max(when, self._newest_to.get(to, when))
        self._put_out(kind, to, when, arrays, receipt)

    def _put_out(
        self,
        kind: str,
        to: str,
        when: tuple[int, int],
        arrays: Sequence[np.ndarray] = (),
        receipt: np.ndarray | None = None,
    ) -> None:
        """Stamp a letter and leave it in the outbox."""
        name = self._identity(kind, to, when)
        about = self.receipts.of(to) if receipt is None else receipt
        stamped = (*arrays, self.desk.pen.stamp(self.said), about)
        self.outbox.append(Letter(name, stamped, self.desk.remark(kind, to)))

    def _identity(self, kind: str, to: str, when: tuple[int, int]) -> Identity:
        desk = self.desk
        return Identity(desk.federation, desk.run, kind, *when, self.name, to)


def require_size(most_bytes: int) -> None:
    """Refuse a run with letters that no envelope can hold."""
    if most_bytes > MOST_NUMBERS:
        refuse(
            f"a letter of this run has {most_bytes / 1e9:.2f} GB, and at most "
            f"{MOST_NUMBERS / 1e9:.2f} GB can be sent; choose a smaller model"
        )


def require_own(arrays: Sequence[np.ndarray]) -> None:
    """Stop where this party's own letter is one that nobody would accept."""
    try:
        wire.require_bounded(arrays)
    except LetterRefused:
        raise Diverged(
            "the run has diverged: this agent's own numbers are not finite, or beyond "
            "2^50; begin a new run with smaller steps, or with run.most_norm"
        ) from None


def bytes_of(arrays: Sequence[Any]) -> bytes:
    """The numbers of a letter, for its entry in the ledger."""
    return b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)
