"""Runs that were offered to a site: how many lately, which wait for a person's word."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path

from tacita.check import refuse
from tacita.disk import write_private
from tacita.federation.audit_log import AuditLog
from tacita.federation.description import Description, unsigned
from tacita.federation.json_words import read_table
from tacita.federation.wire import LetterRefused

#: Seconds within which offers are counted.
_HOUR = 3600.0
#: Offers that wait here at most; older ones are dropped.
_MOST_WAITING = 100


@dataclass(frozen=True)
class Offer:
    """An offer that is kept here.

    Attributes:
        run: The description.
        decision: What a person said: True, False, or None for nothing yet.
        came: When it came, in seconds since 1970.
    """

    run: Description
    decision: bool | None
    came: float


class OfferBook:
    """The offers in a party's folder.

    Args:
        home: The party's folder.
        log: Where what happens is written down.
    """

    def __init__(self, home: Path, log: AuditLog) -> None:
        self._folder, self._log = home / "offers", log

    def admit(self, starter: str, digest: str, most: int | None) -> bool:
        """Count an offer that came; False if there were too many within an hour.

        The count is kept: a restarted program does not forget it. The same run offered
        again does not count twice.
        """
        path = self._folder / "lately"
        now = time.time()
        seen = _seen(path)
        # A time in the future is that of a clock which was wrong: it counts, for an
        # hour from now, not for the years that the clock was ahead.
        lately = {k: min(t, now) for k, t in seen.items() if t > now - _HOUR}
        if any(t > now for t in seen.values()):
            write_private(path, json.dumps(lately))
        name = f"{starter} {digest}"
        if name in lately:
            return True
        if (
            most is not None
            and sum(k.startswith(f"{starter} ") for k in lately) >= most
        ):
            return False
        write_private(path, json.dumps({**lately, name: now}))
        return True

    def keep(self, run: Description, offer: str) -> None:
        """Let an offer wait for a person."""
        path = self._folder / f"{run.digest}.json"
        if path.exists():
            return
        waiting = sorted(self._folder.glob("*.json"), key=lambda p: p.stat().st_mtime)
        for old in waiting[:-_MOST_WAITING]:
            old.unlink()
        write_private(path, offer)

    def all(self) -> list[Offer]:
        """Every offer that is kept, the oldest first."""
        found = []
        for path in self._folder.glob("*.json"):
            try:
                run = unsigned(path.read_bytes().decode(errors="replace"))
            except (OSError, LetterRefused):
                refuse(f"{path} is damaged; remove it, and it will be offered again")
            if run.digest != path.stem:
                refuse(f"{path} holds another run than its name says; remove it")
            came = path.stat().st_mtime
            found.append(Offer(run, self.decision(run.digest), came))
        return sorted(found, key=lambda offer: offer.came)

    def find(self, digest: str) -> Offer:
        """The offer whose digest begins so."""
        fits = [o for o in self.all() if digest and o.run.digest.startswith(digest)]
        if len(fits) != 1:
            what = "several offers begin" if fits else "no offer begins"
            refuse(f"{what} with {digest!r}; see: tacita offers")
        return fits[0]

    def decide(self, digest: str, accept: bool, who: str) -> Offer:
        """Write a person's word down; it may be changed until letters have left."""
        offer = self.find(digest)
        word = "accept" if accept else "decline"
        run = offer.run
        self._log.note("decision", run=run.digest, name=run.name, word=word, who=who)
        write_private(self._folder / f"{run.digest}.decision", word)
        return offer

    def decision(self, digest: str) -> bool | None:
        """What a person said about a run."""
        try:
            word = (self._folder / f"{digest}.decision").read_bytes()
        except OSError:
            return None
        return {b"accept": True, b"decline": False}.get(word)


def _seen(path: Path) -> dict[str, float]:
    if not path.exists():
        return {}
    try:
        told = read_table(path.read_bytes(), "the file")
        return {name: float(time) for name, time in told.items()}
    except (OSError, ValueError, TypeError):
        refuse(f"{path} is damaged; remove it to begin counting offers anew")
