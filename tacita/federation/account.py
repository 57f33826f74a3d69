"""An agent's ledger as its party uses it: each knows how far the other is.

A letter's row names the checkpoint that it was made from, and the checkpoint the row
that was the last. A folder and a ledger of different ages do not belong together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from tacita.federation.receipts import OutOfStep
from tacita.federation.wire import Identity
from tacita.privacy import Guarantee, Ledger

_LEAVE = "or leave the run with --abandon"
#: What stands behind a run's name for letters that count besides its own: of another
#: folder in the same rounds, and of rounds of which another one may have left.
_ELSEWHERE, _AGAIN = "elsewhere", "again"


def rounds_besides(ledger: Ledger, name: str, observer: str, run: str) -> int:
    """How many rounds of a run are charged once more than it has them."""
    runs = (f"{run} {word}" for word in (_ELSEWHERE, _AGAIN))
    return sum(len(ledger.rounds(name, observer, each)) for each in runs)


class Account:
    """Charges the letters of one run; the first letter of a round pays for all of it.

    Args:
        ledger: Where.
        name: The agent.
        run: The run's digest.
        prices: What the letters of a round cost together, by round, against who reads
            them.
        budget: What the policy allows, as arguments of `Ledger.allow`; it binds these
            letters whatever others who share the ledger allow. None for no limit.
    """

    def __init__(
        self,
        ledger: Ledger,
        name: str,
        run: str,
        prices: Mapping[int, Guarantee],
        budget: Mapping[str, Any] | None = None,
    ) -> None:
        self._ledger, self._name, self._run, self._prices = ledger, name, run, prices
        self._budget = budget
        #: Number of the checkpoint that the next letter is made from.
        self.checkpoint = 0

    @property
    def account(self) -> Account:
        """Itself: whoever charges letters has one, or none."""
        return self

    def __call__(self, identity: Identity, content: bytes | None) -> None:
        """Write a release down; without content, one of which no more is known."""
        # What another folder said in the same round is a release of its own.
        mine = identity.kind == "answer"
        run = identity.run if mine else f"{identity.run} {_ELSEWHERE}"
        about = {"round": identity.round, "phase": f"phase-{identity.phase}"}
        if content is not None and self._ledger.unknown(self._name, run=run, **about):
            # It counts as a letter that this folder does not know of: one that was put
            # back, started again and shown no receipt, says another one.
            run = f"{run} {_AGAIN}"
        self._charge(
            run=run,
            content=content,
            checkpoint=None if content is None else self.checkpoint,
            **about,
        )

    def note(self, kind: str, number: int, content: bytes) -> None:
        """Write down, at no cost, a word that must not be given otherwise."""
        self._ledger.note(
            agent=self._name,
            run=self._run,
            round=number,
            phase=kind,
            content=content,
            checkpoint=self.checkpoint,
        )

    def charge_reading(self) -> None:
        """Charge the first round before its letter, which then costs nothing more.

        Once only, however often the rows of a run are read.
        """
        self._charge(run=self._run, round=1, phase="rows are read", content=b"")

    def _charge(self, *, round: int, **letter: Any) -> None:
        with self.together():
            if self._budget is not None:
                self._ledger.allow(**self._budget)
            self._ledger.charge(
                self._prices[round],
                agent=self._name,
                round=round,
                whole_round=True,
                **letter,
            )

    def together(self) -> AbstractContextManager:
        """What is charged inside is written at once."""
        return self._ledger.together()

    def afterwards(self, action: Callable[[], None]) -> None:
        """Do something once all that is charged is written, and never if it is not."""
        self._ledger.afterwards(action)

    @property
    def end(self) -> Sequence[Any]:
        """Where the ledger ends, for the checkpoint."""
        return self._ledger.end

    def holds(self, end: Sequence[Any]) -> bool:
        """Whether the ledger is the one of a checkpoint, or a later one."""
        return self._ledger.holds(*end)

    def require_newest(self, checkpoint: int) -> None:
        """Refuse a checkpoint that is older than one that letters were made from."""
        made = self._ledger.built_on(self._name, self._run)
        if made > checkpoint:
            raise OutOfStep(
                "the folder of this run was put back from a backup, or its notes are "
                f"damaged: its checkpoint is number {checkpoint}, and the ledger "
                f"{self._ledger.path} has a letter made from number {made}; put the "
                f"newest folder back, {_LEAVE}"
            )
        self.checkpoint = checkpoint

    def older(self) -> OutOfStep:
        """The refusal of a ledger that is older than its folder."""
        return OutOfStep(
            f"the ledger {self._ledger.path} was put back from a backup and lacks rows "
            "that this folder's checkpoint knows of; the whole run is charged now, and "
            "what else is missing is not: put the newest ledger back (tacita ledger "
            f"restore counts what may be missing), {_LEAVE}"
        )
