"""A hub, as its folder and its brokers tell of it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from tacita.federation import certificates
from tacita.federation.broker_config import CONFIG
from tacita.federation.hub import Hub
from tacita.federation.hub_folder import RECORD, ROSTER
from tacita.federation.hub_numbers import BrokerNumbers, HubNumbers, ask
from tacita.federation.roster import HUB, Roster
from tacita.report import numbers
from tacita.watch.kept import Kept, tail
from tacita.watch.view import Cards, Head, Part, Table, View

#: Seconds between two questions to the brokers: each costs them and us a little.
_EVERY = 3.0
#: Lines of a broker's log.
_MOST_LINES = 20


class HubFolder:
    """The source for a hub's folder.

    Args:
        folder: Where `tacita hub init` has made it.
    """

    def __init__(self, folder: Path) -> None:
        self._hub = Hub(folder)
        files = [folder / RECORD, folder / ROSTER]
        self._known = Kept(files, self._read)
        logs = [
            (self._hub.broker_folder(place) / CONFIG).with_suffix(".log")
            for place in range(len(self._hub.brokers))
        ]
        self._log = Kept(logs, lambda: _log(logs))
        self._asked: tuple[float, list[BrokerNumbers]] = (-_EVERY, [])

    def look(self) -> View:
        """Who is connected, and what the brokers carried."""
        known = self._known()
        if known is None:
            why = self._known.fault or "it cannot be read"
            state = Head(title="hub", role="hub", state=why, tone="bad")
            return {"head": state}
        (roster, ends), found = known, self._brokers()
        there = {name for one in found for name in one.parties}
        up = sum(one.numbers is not None for one in found)
        parties = [name for name in roster.names if name != HUB]
        online = sum(name in there for name in parties)
        parts: dict[str, Part] = {
            "head": Head(
                title=roster.federation,
                role="hub",
                lede=f"version {roster.version} of the roster",
                state=f"{up} of {len(found)} brokers answer",
                tone="good" if up == len(found) else "bad",
                warnings=_warnings(ends),
            ),
            "figures": Cards(
                [
                    ("parties connected", f"{online} of {len(parties)}"),
                    ("brokers", f"{up} of {len(found)}"),
                ]
            ),
            "brokers": _broker_table(found),
            "parties": _member_table(roster, ends, there, up > 0),
        }
        log = self._log()
        return parts if log is None else {**parts, "log": log}

    def _read(self) -> tuple[Roster, dict[str, int]]:
        return self._hub.roster, HubNumbers(self._hub).ends()

    def _brokers(self) -> list[BrokerNumbers]:
        now = time.monotonic()
        if now - self._asked[0] >= _EVERY:
            self._asked = (now, [ask(one) for one in self._hub.brokers])
        return self._asked[1]


def _warnings(ends: Mapping[str, int]) -> list[str]:
    soon = {
        name: certificates.days_left(end)
        for name, end in ends.items()
        if certificates.days_left(end) < certificates.WARN_DAYS
    }
    return [
        f"The certificate of {name} ends in {days} days: tacita hub renew"
        for name, days in soon.items()
    ]


def _broker_table(found: list[BrokerNumbers]) -> Table:
    rows = []
    for one in found:
        told = one.numbers or {}
        cells = ["-"] * 5
        if one.numbers is not None:
            cells = [
                numbers.whole(told.get("in_msgs", 0)),
                numbers.size(told.get("in_bytes", 0)),
                numbers.whole(told.get("out_msgs", 0)),
                numbers.size(told.get("out_bytes", 0)),
                numbers.whole(told.get("slow_consumers", 0)),
            ]
        up = "yes" if one.numbers is not None else "no"
        rows.append((one.server, up, str(len(one.parties)), *cells))
    heads = ("broker", "answers", "parties", "messages in", "bytes in")
    more = ("messages out", "bytes out", "readers cut off")
    note = "Letters are sealed: the hub sees how many there are, not what they say."
    return Table("Brokers", (*heads, *more), rows, note)


def _member_table(
    roster: Roster, ends: Mapping[str, int], there: set[str], known: bool
) -> Table:
    rows = []
    for name in roster.names:
        connected = ("yes" if name in there else "no") if known else "-"
        left = str(certificates.days_left(ends[name]))
        rows.append((name, roster.members[name].role, connected, left))
    heads = ("party", "role", "connected", "days left of its certificate")
    return Table("Parties", heads, rows)


def _log(paths: list[Path]) -> Table | None:
    lines = [
        (path.parent.name, line)
        for path in paths
        if path.exists()
        for line in tail(path)[-_MOST_LINES:]
    ]
    if not lines:
        return None
    return Table("Log of the brokers", ("broker", "line"), lines[::-1])
