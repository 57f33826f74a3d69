"""What a party knows of its federation: the newest roster it has seen, and its place.

The roster is kept in the party's folder, so that an older one is refused after a
restart too.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tacita.check import refuse
from tacita.disk import write_private
from tacita.federation import certificates
from tacita.federation.description import Description
from tacita.federation.invitation import Invitation
from tacita.federation.roster import Roster
from tacita.federation.wire import LetterRefused

NAME = "roster.signed"


class Membership:
    """One party's place in its federation.

    Args:
        invitation: What the hub gave it.
        home: Its folder.
    """

    def __init__(self, invitation: Invitation, home: Path) -> None:
        self.me, self._path = invitation, home / NAME
        if self._path.exists():
            kept, told = self._kept(), invitation.roster
            older, newer = (told, kept) if kept.version > told.version else (kept, told)
            older.require_successor(newer)
            self.me = invitation.with_roster(newer)
        self._require_place()

    def _kept(self) -> Roster:
        try:
            kept = Roster.load(self._path, self.me.owner)
        except LetterRefused as refusal:
            refuse(
                f"{self._path}: {refusal}; it is damaged or of another federation: "
                "remove it, or choose another folder"
            )
        if kept.federation != self.me.federation:
            refuse(f"{self._path} is of another federation; choose another folder")
        return kept

    def take(self, signed: str) -> bool:
        """Take a roster in; whether it is news. An older one is refused."""
        new, known = Roster.verify(signed, self.me.owner), self.me.roster
        known.require_successor(new)
        if new.version == known.version:
            return False
        write_private(self._path, signed)
        self.me = self.me.with_roster(new)
        self._require_place()
        return True

    def _require_place(self) -> None:
        """Refuse to go on as somebody whom the others do not know any more."""
        me, roster = self.me, self.me.roster
        if me.name not in roster.members:
            refuse(
                f"{me.name!r} was removed from the federation (version "
                f"{roster.version} of the roster); ask the hub's owner"
            )
        if roster.keys[me.name] != me.keys.public:
            refuse(
                f"{me.name!r} has other keys in version {roster.version} of the "
                "roster; start with its newest invitation and --keys"
            )


def require_partners(run: Description, me: Invitation) -> None:
    """Refuse to go on with a run that needs somebody who was removed."""
    known = me.roster.members
    left = sum(name in known for name in run.agents)
    # Who waits for nobody needs as many as end a round, whoever they are.
    enough = run.run.get("asynchronous", False) and left >= run.fewest
    needed = [] if enough or "deadline" in run.run else list(run.agents)
    if me.name != run.starter and "graph" not in run.tables:
        needed = [run.starter]  # an agent writes to nobody else
    gone = [name for name in needed if name not in known]
    if gone:
        refuse(
            f"{', '.join(gone)} was removed from the federation, and the run "
            f"{run.name} ({run.digest}) cannot end without; propose a new one"
        )


def announce_end(certificate: bytes, tell: Callable[[str], object]) -> None:
    """Say so if a certificate ends soon; refuse one that has ended."""
    left = certificates.days_left(certificates.expires(certificate))
    if left < 0:
        refuse("this party's certificate has ended; ask the hub's owner to renew it")
    if left < certificates.WARN_DAYS:
        tell(f"this party's certificate ends in {left} days; have the hub renew it")
