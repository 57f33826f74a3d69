"""Whether a run is accepted: by its description, the policy, the ledger and a person.

Rows are not looked at here, nor is the file that holds them opened: what a coordinator
learns from an answer, and from how long it takes, does not depend on them. It is told
one of three words; the reason stays here, in the log and on the terminal.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from tacita.check import printable, refuse
from tacita.disk import Unwritable, write_private
from tacita.federation.audit_log import AuditLog
from tacita.federation.consent import Refusal
from tacita.federation.description import Description
from tacita.federation.invitation import Invitation
from tacita.federation.offers import OfferBook
from tacita.federation.policy import PolicyInForce
from tacita.federation.rehearsal import (
    rehearse,
    require_allowed,
    require_still_allowed,
)
from tacita.privacy import BrokenLedger, Ledger

OFFER = "offer.json"
#: Seconds between two lines about offers that come too often.
_QUIET = 3600.0
#: Answers that are kept at hand, so that an offer that is repeated is judged once.
_MOST_KNOWN = 1_000


class Verdict(NamedTuple):
    """Whether an offer is accepted, and all that may be told if it is not."""

    accepted: bool
    code: Refusal | None = None


class Judge:
    """Judges the offers that come to one agent.

    Args:
        me: Its invitation as it stands now.
        home: Its folder.
        in_force: Its policy.
        tell: Called with every line for its own people.
    """

    def __init__(
        self,
        me: Callable[[], Invitation],
        home: Path,
        in_force: PolicyInForce,
        tell: Callable[[str], Any],
    ) -> None:
        self._me, self._home, self._in_force, self._tell = me, home, in_force, tell
        self.log = AuditLog(home)
        self.book = OfferBook(home, self.log)
        #: Refusals, with what they depend on besides the policy.
        self._known: dict[tuple[str, int, bool | None], Verdict] = {}
        self._said: set[tuple[str, str]] = set()
        self._busy_at = -_QUIET

    @property
    def account(self) -> str:
        """What the rows are called in the ledger."""
        return self._in_force.policy.data_name or self._me().name

    @property
    def allowance(self) -> dict[str, Any]:
        """What the ledger allows the rows, as arguments of `plan_of`."""
        return {"limit": self._in_force.policy.max_epsilon, "account": self.account}

    def verdict(self, run: Description, offer: str, ledger: Ledger) -> Verdict:
        """Accept a run, or say no more than a word of why not.

        An accepted offer is kept in the run's folder.
        """
        if self._in_force.changed() or len(self._known) > _MOST_KNOWN:
            self._known, self._said = {}, set()
        by = (run.digest, self._me().roster.version, self.book.decision(run.digest))
        if by in self._known:
            return self._known[by]
        most = self._in_force.policy.max_offers
        if not self.book.admit(self._me().coordinator, run.digest, most):
            return self._busy(most)
        self._say(
            run, "offer", f"offered: {run.name} ({run.digest})", name=str(run.name)
        )
        try:
            answer = self._judge(run, offer, ledger)
        except (Unwritable, BrokenLedger):
            raise  # no word on the run: it is looked at once there is room again
        except Exception as error:  # whatever a description does to us, we go on
            answer = Verdict(False, Refusal.REFUSED)
            reason = str(error) or type(error).__name__
            self._say(run, "refused", f"refused: {reason}", reason=reason)
        if answer.code is Refusal.REFUSED:
            self._known[by] = answer
        return answer

    def _judge(self, run: Description, offer: str, ledger: Ledger) -> Verdict:
        policy = self._in_force.policy
        require_allowed(run, self._me(), policy)
        kept = self._home / run.digest
        if (kept / "result.json").exists():
            refuse("this run is over already; give the new one another name")
        if policy.approval and not self.book.decision(run.digest):
            if self.book.decision(run.digest) is False:
                refuse("a person here declined it")
            self.book.keep(run, offer)
            word = f"tacita accept {run.digest[:8]} --folder {self._home}"
            self._say(run, "waiting", f"a person has to agree to it: {word}")
            return Verdict(False, Refusal.WAITING)
        self.rehearse(run, ledger)
        write_private(kept / OFFER, offer)
        told = {"rounds": run.rounds, "privacy": dict(run.privacy or {})}
        words = f"accepted: {run.name} ({run.digest}), {run.rounds} rounds"
        self._say(run, "accepted", words, **told)
        return Verdict(True)

    def rehearse(self, run: Description, ledger: Ledger) -> None:
        """Refuse a run by what shows once it is built for rows of zeros."""
        policy = self._in_force.policy
        rehearse(run, self._me(), policy, ledger, **self.allowance)

    def require_still_allowed(self, run: Description) -> None:
        """Refuse to go on with a run that the policy of today does not allow."""
        self._in_force.changed()
        policy = self._in_force.policy
        try:
            require_still_allowed(run, self._me(), policy)
            if policy.approval and not self.book.decision(run.digest):
                refuse(f"a person has to agree to it: tacita accept {run.digest[:8]}")
        except ValueError as error:
            self.stop(run, str(error))

    def stop(self, run: Description, reason: str) -> None:
        """End a run here that was begun under another policy; its state is kept."""
        self.log.note("stopped", run=run.digest, reason=reason)
        refuse(
            f"{run.name} ({run.digest}) was begun, and the policy does not allow it "
            f"any more: {reason}; its state is kept: allow it again, or --abandon it"
        )

    def _busy(self, most: int | None) -> Verdict:
        now = time.monotonic()
        if now - self._busy_at >= _QUIET:
            self._busy_at = now
            self.log.note("busy", starter=self._me().coordinator, most=most)
            self._tell(f"more than {most} offers in an hour; further ones wait")
        return Verdict(False, Refusal.BUSY)

    def _say(self, run: Description, event: str, words: str, **told: Any) -> None:
        """Write an event down and tell it, once for each run and reason."""
        if (run.digest, words) not in self._said:
            self._said.add((run.digest, words))
            self.log.note(event, run=run.digest, **told)
            self._tell(printable(words))
