"""One agent's part in agreeing to a run, from its acceptance to its first letter."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tacita.check import refuse
from tacita.disk import write_private
from tacita.federation import consent
from tacita.federation.audit_log import AuditLog
from tacita.federation.description import Description, read_signed
from tacita.federation.invitation import Invitation
from tacita.federation.party import Withdrawn
from tacita.federation.seal import PrivateKeys
from tacita.federation.wire import Letter, LetterRefused, note

_CONSENTS = "consents.json"


class Agreement:
    """What an agent says and hears outside of any run, once it accepted one.

    Args:
        run: What it accepted.
        me: Its invitation as it stands now.
        keys: Its own keys.
        home: Its folder.
        least: How many agents must have agreed to the same.
        log: Where it is written down.
        tell: Called with every line for its own people.
    """

    def __init__(
        self,
        run: Description,
        me: Callable[[], Invitation],
        keys: PrivateKeys,
        home: Path,
        least: int,
        log: AuditLog,
        tell: Callable[[str], Any],
    ) -> None:
        self.run, self._me, self._keys, self._log, self._tell = run, me, keys, log, tell
        self._path = home / run.digest / _CONSENTS
        self._least = max(run.least_agents, least)
        self._complaints: set[str] = set()
        #: Whether enough agents were seen to have agreed to this very run.
        self.agreed = self._path.exists()
        if self.agreed:
            self._require_kept()
        #: Whether a letter of the run has left.
        self.spoken = False
        #: What is told beside the word that consents came: a number of rows.
        self.more: Callable[[], dict[str, Any]] = dict

    def _require_kept(self) -> None:
        """Refuse consents in the folder that are not those that were checked once.

        Their keys may be former ones by now, so signatures are not looked at again.
        """
        try:
            known = consent.read(self.run, self._path.read_bytes())
        except (LetterRefused, OSError):
            known = {}
        if len(known) < self._least:
            refuse(f"{self._path} was changed; delete it, and it is sent again")

    def acceptance(self) -> Letter:
        """The consent, signed."""
        signature = consent.sign(self.run, self._me().name, self._keys)
        return self._letter("accept", consent=signature)

    def greet(self, letter: Letter) -> Letter | None:
        """Answer the coordinator: who agreed, an offer again, a run taken back.

        Raises:
            Withdrawn: The run does not take place.
        """
        me, one = self._me(), letter.identity
        if one.sender != me.coordinator:
            return None
        if one.kind == "consents":
            return self._see(letter.text)
        if one.kind == "withdraw" and letter.text == self.run.digest:
            if self.spoken:  # an old letter that somebody sends again
                return None
            raise Withdrawn(f"{me.coordinator} withdrew it")
        if one.kind != "offer":
            return None
        other = read_signed(letter.text, me.federation, me.others, me.coordinator)
        if other.digest == self.run.digest:
            return self.acceptance()
        # Nothing was said yet, so nothing is lost by turning to the new one.
        if not self.spoken:
            raise Withdrawn(f"{me.coordinator} offers another run instead")
        return None

    def _see(self, text: str) -> Letter | None:
        """Look at everybody's consents, and keep them; what is wrong is told here."""
        run = self.run
        if not self.agreed:
            try:
                roster = self._me().roster
                who = consent.require_enough(run, text, roster, self._least)
            except LetterRefused as refusal:
                self._complain(str(refusal))
                return None
            self._log.note("consents", run=run.digest, agents=len(who))
            write_private(self._path, text)
            self.agreed = True
        return self._letter("done", **self.more())

    def _complain(self, reason: str) -> None:
        """Once for each reason, however often the same is sent."""
        if reason not in self._complaints:
            self._complaints.add(reason)
            self._log.note("consents refused", run=self.run.digest, reason=reason)
            self._tell(f"nothing is sent: {reason}")

    def _letter(self, kind: str, **words: Any) -> Letter:
        me, told = self._me(), {"run": self.run.digest, **words}
        return note(kind, me.federation, me.name, me.coordinator, json.dumps(told))
