"""A party of a federation, as its own folder tells of it; of others, what it heard."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tacita.federation import diary
from tacita.federation.audit_log import NAME as LOG
from tacita.report import numbers
from tacita.trace import load_run, reasons, short, terms
from tacita.watch import recorded
from tacita.watch.desk import AgentDesk
from tacita.watch.kept import UNREADABLE, Kept
from tacita.watch.own_ledger import Budget
from tacita.watch.view import Cards, Curves, Head, Part, Table, View

STATUS, LEDGER = "status.json", "ledger.db"
#: Bytes of a status, at most; it has a line for every party.
_MOST_STATUS = 16 << 20
#: Seconds after which a status is old: it is written every second.
_QUIET = 5.0
#: Seconds after which its program is likely gone: a step may take long before.
_GONE = 60.0
#: Seconds without a letter after which a party counts as away: whoever waits for one
#: asks for it sooner (`tacita/federation/patience.py`).
_AWAY = 45.0
#: What is told of letters; the last is over all exchanges.
_SIGNS = ("distance", "cosine", "length", "rank", "used")
_OWN = "Measured here on own rows, without noise: for this house only."
_LEAGUE = "Over all runs of these rows and all who may be in league"


class PartyFolder:
    """The source for the folder of an agent or a coordinator.

    Args:
        home: The folder.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._status = Kept([home / STATUS], self._read_status)
        self._budget = Budget(home / LEDGER)
        self._desk = AgentDesk(home)
        #: The run that is shown, and its curves.
        self._run, self._curves = "", Kept[dict[str, Part]]([], dict)
        #: Epsilon by round of the run in progress, as far as somebody looked.
        self._spent: tuple[str, dict[int, float]] = ("", {})

    def decide(self, run: str, accept: bool) -> str:
        """Write a person's word on an offer down."""
        return self._desk.decide(run, accept)

    def look(self) -> View:
        """How far it is, what it heard, what it spent, what waits."""
        told, offers = self._status(), self._desk.offers()
        budget, log = self._budget.table(), self._desk.log()
        fault, parts = self._status.fault, dict[str, Part]()
        if offers is not None:
            parts["offers"] = offers
        if told is not None and "note" not in told:
            try:
                parts |= self._progress(told, told_by_ledger=budget is not None)
            except UNREADABLE as error:
                told, fault = None, f"{STATUS} lacks or mistakes {error}"
        if budget is not None:
            parts["budget"] = budget
        if told is not None:
            parts |= self._recorded(told)
        if log is not None:
            parts["log"] = log
        return {"head": self._head(told, fault), **parts}

    def _read_status(self) -> dict[str, Any]:
        with open(self._home / STATUS, "rb") as file:
            return dict(json.loads(file.read(_MOST_STATUS)))

    def _head(self, told: dict[str, Any] | None, fault: str | None) -> Head:
        agent = any((self._home / name).exists() for name in (LOG, LEDGER))
        # Before the first run there is no status, which is no fault.
        faults = {
            "Status": fault if (self._home / STATUS).exists() else None,
            "Ledger": self._budget.fault,
            "Offers": self._desk.fault,
        }
        about: dict[str, Any] = {
            "title": str((told or {}).get("party", self._home.resolve().name)),
            "role": "agent" if agent else "coordinator",
            "warnings": [f"{what}: {why}" for what, why in faults.items() if why],
        }
        if told is None:
            return Head(**about, state="waits for a run", tone="wait")
        about["lede"] = f"run {told['run']}" if "run" in told else ""
        if "note" in told:
            return Head(**about, state=str(told["note"]), tone="wait")
        about |= {"done": int(told["round"]), "of": int(told["rounds"])}
        if told["finished"]:
            return Head(**about, state="finished", tone="done")
        if not _alive(told):
            age, tone = _age(told), "bad" if _age(told) > _GONE else "wait"
            return Head(**about, state=f"no sign of life for {age:.0f} s", tone=tone)
        if not told.get("connected"):
            return Head(**about, state="not connected to the broker", tone="bad")
        return Head(**about, state="running", tone="good")

    def _progress(self, told: dict[str, Any], told_by_ledger: bool) -> dict[str, Part]:
        """What the status says of the run in progress, or of the last one."""
        parts: dict[str, Part] = {"figures": Cards(list(_figures(told)))}
        if "epsilon_spent" in told:
            parts["epsilon"] = self._burnt(told)
            if not told_by_ledger:
                parts["budget"] = _budget_of(told)
        if rows := list(_parties(told)):
            heads = ("party", "is there", "last letter", "round", "epsilon left")
            promise = told.get("promise")
            note = f"Epsilon as each agent tells, {terms(promise)}." if promise else ""
            parts["parties"] = Table("Parties", heads, rows, note)
        if refused := told.get("refused"):
            rows = [(str(why), str(count)) for why, count in refused.items()]
            parts["refused"] = Table("Refused letters", ("reason", "letters"), rows)
        if letters := told.get("letters"):
            note = (
                "For people to look at: honest agents with unusual data look like "
                "liars, and nobody is left out."
            )
            heads = ("party", *_SIGNS, "times used")
            rows = list(_signs(letters))
            title = "Letters of the last exchange"
            parts["letters"] = Table(title, heads, rows, note)
        return parts

    def _burnt(self, told: dict[str, Any]) -> Curves:
        """Epsilon by round, of the rounds in which somebody looked."""
        run = str(told["run"])
        if self._spent[0] != run:
            self._spent = (run, {})
        seen = self._spent[1]
        seen[int(told["round"])] = float(told["epsilon_spent"])
        lines = {
            "spent": np.array(list(seen.values())),
            "allowed": np.full(len(seen), float(told["epsilon_allowed"])),
        }
        curve = recorded.drawn("epsilon", np.array(list(seen)), lines, from_zero=True)
        note = f"{_LEAGUE}, {terms(told)}. Drawn while this page runs."
        return Curves("Epsilon spent", [curve], note)

    def _recorded(self, told: Mapping[str, Any]) -> dict[str, Part]:
        """Curves of what this party knows of the run, in progress or over."""
        run = Path(str(told.get("run", ""))).name
        if not run:
            return {}
        if self._run != run:
            folder, rounds = self._home / run, int(told.get("rounds", 1))
            files = [folder / "run.json", folder / diary.NAME]
            self._run = run
            self._curves = Kept(files, lambda: _curves_in(folder, rounds))
        return self._curves() or {}


def _curves_in(folder: Path, rounds: int) -> dict[str, Part]:
    """What the run left, or what was noted of it so far."""
    if (folder / "run.json").exists():
        return recorded.parts_of(load_run(folder), _OWN)
    notes = diary.Diary(folder, (), rounds)
    measured = notes.metrics()
    if len(measured["round"]):
        return recorded.parts(measured, _OWN)
    return recorded.parts(notes.attendance())


def _age(told: Mapping[str, Any]) -> float:
    return time.time() - float(told.get("written", 0.0))


def _alive(told: Mapping[str, Any]) -> bool:
    return _age(told) < _QUIET


def _figures(told: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    done, of = int(told["round"]), int(told["rounds"])
    yield "rounds", f"{numbers.whole(done)} of {numbers.whole(of)}"
    for way in ("sent", "received"):
        size = numbers.size(told[f"{way}_bytes"])
        yield f"letters {way}", f"{numbers.whole(told[way])} ({size})"
    yield "letters refused", numbers.whole(sum(told.get("refused", {}).values()))
    if repeated := told.get("repeated"):
        yield "came late or twice", numbers.whole(repeated)
    if dropped := told.get("dropped"):
        yield "messages that were no letters", numbers.whole(dropped)


def _parties(told: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """A line for every other party; who is there is known only while we are."""
    since = told.get("seconds_since", {})
    here = _alive(told) and not told["finished"]
    for name in told.get("agents") or sorted(since):
        said = told.get("told", {}).get(name, {})
        heard = since[name] + max(0.0, _age(told)) if name in since else None
        there = "yes" if heard is not None and heard < _AWAY else "no"
        left = said["allowed"] - said["spent"] if "spent" in said else None
        yield (
            str(name),
            there if here else "-",
            _ago(heard) if not told["finished"] else "-",
            f"{said['round']:.0f}" if "round" in said else "-",
            "-" if left is None else numbers.real(left),
        )


def _ago(heard: float | None) -> str:
    return "never" if heard is None else f"{heard:.0f} s ago"


def _signs(letters: Mapping[str, Mapping[str, float]]) -> Iterator[tuple[str, ...]]:
    for name, seen in letters.items():
        signs = (f"{float(seen[sign]):.3g}" for sign in _SIGNS)
        used = f"{float(seen['times_used']):.4g} of {int(seen['letters'])}"
        yield (str(name), *signs, used)


def _budget_of(told: Mapping[str, Any]) -> Table:
    """The agent's budget as its program tells, where the ledger is elsewhere."""
    spent, allowed = float(told["epsilon_spent"]), float(told["epsilon_allowed"])
    left = numbers.real(max(0.0, allowed - spent))
    cells = (
        str(told["observer"]),
        f"{told['unit']} ({told['relation']})".replace("_", " "),
        numbers.real(spent),
        numbers.real(allowed),
        left,
        short(told["delta"]),
    )
    heads = ("against", "unit", "epsilon spent", "allowed", "left", "delta")
    note = f"{_LEAGUE}, {reasons(told)}."
    return Table("Budget", heads, [cells], note)
