"""What a party notes of a run, round by round, in its own folder; never sent.

One line of JSON a note, appended; notes of one round are one when they are read. They
are for people: a line that a power cut tore is passed over, and nothing waits for the
disk. Traffic is counted over all programs that worked on the run.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tacita.disk import refused_if_unwritable, write_all
from tacita.federation.desk import Counts

NAME = "rounds.jsonl"
#: Rounds whose models are measured, at most: measuring takes a pass over all rows.
_MOST_POINTS = 100
#: Beyond so many agents a round is noted with their number, not their names.
_MANY_AGENTS = 2_000
_TRAFFIC = ("sent", "sent_bytes", "received", "received_bytes")


class Diary:
    """The notes of one party on one run.

    Args:
        folder: The run's folder.
        agents: All agents of the run.
        rounds: How many it has.
    """

    def __init__(self, folder: Path, agents: Sequence[str], rounds: int) -> None:
        self._path, self._agents = folder / NAME, list(agents)
        self._every = -(-rounds // _MOST_POINTS)
        self._rounds = rounds
        self._notes = _read(self._path)
        notes = self._notes.values()
        self._before = {
            way: max((int(note.get(way, 0)) for note in notes), default=0)
            for way in _TRAFFIC
        }
        #: What the party has sent and received since this program was started.
        self.counts = Counts()

    def ended(self, number: int, who: Sequence[str]) -> None:
        """A round is over, in which these agents took part."""
        few = len(self._agents) <= _MANY_AGENTS
        self._note(number, who=list(who) if few else len(who))

    def wants(self, number: int) -> bool:
        """Whether what there is after so many rounds is to be measured."""
        due = number % self._every == 0 or number == self._rounds
        return due and "measured" not in self._notes.get(number, {})

    def measured(self, number: int, numbers: dict[str, float]) -> None:
        """What was measured after so many rounds."""
        self._note(number, measured=numbers)

    def traffic(self) -> dict[str, int]:
        """Letters and bytes since the run began here."""
        now = vars(self.counts)
        return {way: self._before[way] + now[way] for way in _TRAFFIC}

    def metrics(self) -> dict[str, np.ndarray]:
        """Everything that was measured, by name, as in `Run.metrics`."""
        kept = {k: n["measured"] for k, n in self._in_order() if "measured" in n}
        names = dict.fromkeys(name for told in kept.values() for name in told)
        found = {
            name: np.asarray([told.get(name, np.nan) for told in kept.values()], float)
            for name in names
        }
        return {**found, "round": np.asarray(list(kept), int)}

    def attendance(self) -> dict[str, np.ndarray]:
        """How many agents took part in every round, as in `Run.metrics`."""
        kept = {k: n["who"] for k, n in self._in_order() if "who" in n}
        heads = [who if isinstance(who, int) else len(who) for who in kept.values()]
        return {
            "took_part": np.asarray(heads, float),
            "round": np.asarray(list(kept), int),
        }

    def arrivals(self) -> list[list[int]] | None:
        """Whose letters every round took, as `tacita.Arrivals`; None of many agents.

        None as well where a power cut took the note of a round, or one was changed:
        without it another run would be played again.
        """
        if len(self._agents) > _MANY_AGENTS:
            return None
        place = {name: number for number, name in enumerate(self._agents)}
        heard = {k: note["who"] for k, note in self._in_order() if "who" in note}
        whole = [*heard] == [*range(1, self._rounds + 1)]
        names = (name for who in heard.values() for name in who)
        if not whole or not all(name in place for name in names):
            return None
        return [[place[name] for name in who] for who in heard.values()]

    def turns(self) -> list[int] | None:
        """In how many rounds every agent took part; None of very many agents."""
        if len(self._agents) > _MANY_AGENTS:
            return None
        present = Counter(
            name for note in self._notes.values() for name in note.get("who", ())
        )
        return [present[agent] for agent in self._agents]

    def _in_order(self) -> list[tuple[int, dict[str, Any]]]:
        return sorted(self._notes.items())

    def _note(self, number: int, **told: Any) -> None:
        told |= self.traffic()
        self._notes.setdefault(number, {}).update(told)
        line = json.dumps({"round": number, **told}).encode() + b"\n"
        with refused_if_unwritable(self._path):
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
            file = os.open(self._path, flags, 0o600)
            try:
                # Behind a line that was torn this one would be lost too.
                write_all(file, b"\n" + line if _torn(file) else line)
            finally:
                os.close(file)


def _torn(file: int) -> bool:
    """Whether an open file ends in the middle of a line."""
    size = os.fstat(file).st_size
    return size > 0 and os.pread(file, 1, size - 1) != b"\n"


def _read(path: Path) -> dict[int, dict[str, Any]]:
    """All notes by round; what is no note is passed over."""
    found: dict[int, dict[str, Any]] = {}
    lines = path.read_bytes().splitlines() if path.exists() else []
    for line in lines:
        try:
            told = json.loads(line)
            found.setdefault(int(told.pop("round")), {}).update(told)
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
    return found
