"""Offers that wait for a person, and the log: what only an agent's folder has."""

from __future__ import annotations

import getpass
import json
import time
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from tacita.check import refuse
from tacita.federation.audit_log import NAME, AuditLog
from tacita.federation.offers import Offer, OfferBook
from tacita.federation.preview import in_one_line, releases_of
from tacita.watch.kept import Kept, tail
from tacita.watch.view import Offers, Table, Waiting

_WORDS = {None: "waits", True: "accepted", False: "declined"}
#: Lines of the log that are shown, and fields that are none of a reader's business.
_MOST_LINES = 40
_HIDDEN = {"number", "time", "event", "previous", "digest"}


class AgentDesk:
    """A person's part in an agent's folder.

    Args:
        home: The agent's folder.
    """

    def __init__(self, home: Path) -> None:
        self._book = OfferBook(home, AuditLog(home))
        #: What each run would release, by its digest: that takes a moment to compute.
        self._releases: dict[str, list[tuple[str, str]]] = {}
        self._offers = Kept([home / "offers"], self._read_offers)
        path = home / NAME
        self._log = Kept([path], lambda: _log(tail(path)))

    def offers(self) -> Offers | None:
        """The offers, those that wait first; None where there are none."""
        return self._offers()

    def log(self) -> Table | None:
        """The end of the log."""
        return self._log()

    @property
    def fault(self) -> str | None:
        """Why the offers cannot be read."""
        return self._offers.fault

    def decide(self, run: str, accept: bool) -> str:
        """Write a person's word down, as `tacita accept` and `tacita decline` do."""
        if all(offer.run.digest != run for offer in self._book.all()):
            refuse("this offer is not here any more")
        offer = self._book.decide(run, accept, getpass.getuser())
        return f"{offer.run.name} is {_WORDS[accept]}"

    def _read_offers(self) -> Offers | None:
        found = self._book.all()
        if not found:
            return None
        found.sort(key=lambda offer: (offer.decision is not None, -offer.came))
        for run in (offer.run for offer in found):
            if run.digest not in self._releases:
                self._releases[run.digest] = releases_of(run)
        told = [_waiting(offer, self._releases[offer.run.digest]) for offer in found]
        return Offers("Offers", told)


def _waiting(offer: Offer, releases: list[tuple[str, str]]) -> Waiting:
    run = offer.run
    came = time.strftime("%Y-%m-%d %H:%M", time.localtime(offer.came))
    facts = [
        *releases,
        ("proposed by", run.starter),
        ("rounds", str(run.rounds)),
        ("algorithm", str(run.tables["algorithm"]["name"])),
        ("columns", ", ".join(map(str, run.problem["columns"]))),
        ("target", str(run.problem["target"])),
        ("agents", f"{len(run.agents)}: {', '.join(run.agents)}"),
        ("came", came),
        ("digest", run.digest),
    ]
    decision, terms = _WORDS[offer.decision], in_one_line(releases)
    return Waiting(run.digest, str(run.name), decision, terms, facts)


def _log(lines: list[str]) -> Table:
    """The newest events; letters that left one after the other are one line."""
    shown = []
    for event, group in groupby(_events(lines), key=lambda told: told["event"]):
        several = list(group)
        together = event == "release" and len(several) > 1
        for told in several[-1:] if together else several:
            count = f" ({len(several)} letters)" if together else ""
            rest = {k: v for k, v in told.items() if k not in _HIDDEN}
            details = ", ".join(f"{k}: {json.dumps(v)}" for k, v in rest.items())
            when = str(told.get("time", ""))[:19].replace("T", " ")
            shown.append((when, f"{event}{count}", details))
    note = "The last lines, times in UTC; tacita log shows all and checks their chain."
    return Table(
        "Log", ("time", "event", "details"), shown[: -_MOST_LINES - 1 : -1], note
    )


def _events(lines: list[str]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            told = json.loads(line)
        except (ValueError, RecursionError):
            continue  # torn by a power cut; the chain vouches for it elsewhere
        if isinstance(told, dict) and "event" in told:
            yield {**told, "event": str(told["event"])}
