"""Copies of a ledger, and how one is put back without counting too little.

A backup is one file: all rows, and a last line that says where they end. Put back, it
may be older than what was spent. Nobody knows what left in between, except that no
budget was passed: so where rows may be missing, every budget counts as spent in full.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tacita.check import refuse
from tacita.disk import sync_folder, write_private
from tacita.privacy.accounting.curve import LossCurve
from tacita.privacy.accounting.guarantee import Guarantee, believed
from tacita.privacy.accounting.pure_releases import RandomisedResponse
from tacita.privacy.ledger.charges import Ledger
from tacita.privacy.ledger.end import End, path_of, read_end
from tacita.privacy.ledger.rows import BrokenLedger, Row
from tacita.privacy.scope import Observer, Scope

_LAST_LINE = b"end of ledger "
#: How the run is called that a restored ledger is charged for.
RESTORED = "restored after "


class Restored(NamedTuple):
    """What was put back: its rows, the agents whose budgets count as spent."""

    rows: int
    spent: list[str]


def back_up(ledger: str | Path, copy: str | Path) -> int:
    """Copy a ledger, also one that is being written to; returns the number of rows."""
    copy = Path(copy)
    if copy.exists():
        refuse(f"{copy} exists; name a new file for the backup")
    with Ledger(ledger, read_only=True) as opened:
        content, end = opened.content(), End(*opened.end)
    write_private(copy, content + _LAST_LINE + end.line())
    return end.rows


def restore(copy: str | Path, ledger: str | Path) -> Restored:
    """Put a backup in the place of a ledger that is lost or damaged.

    What was there is kept under another name.

    Args:
        copy: What `back_up` wrote, or a copy of the ledger's file alone.
        ledger: Where the ledger is to be.
    """
    copy, ledger = Path(copy), Path(ledger)
    content, told = _read(copy)
    end = told or _end_of(content)
    # Made whole beside its place: a restore that is killed has changed nothing.
    made = ledger.with_name(f".{ledger.name}.restored")
    write_private(made, content)
    write_private(path_of(made), end.line())
    try:
        with Ledger(made, read_only=True) as found:
            found.verify()
    except BrokenLedger as error:
        refuse(f"the backup {copy} is damaged: {error}")
    _require_needed(ledger, end)
    # Nothing is missing only where the ledger that was here is known to end there.
    spent = [] if _kept_end(ledger) == end else _spend_all(made)
    _put(made, ledger)
    return Restored(end.rows, spent)


def _read(copy: Path) -> tuple[bytes, End | None]:
    try:
        content = copy.read_bytes()
    except OSError as error:
        refuse(f"cannot read {copy}: {error.strerror}; check the path")
    body, mark, line = content.rpartition(_LAST_LINE)
    if not mark:
        return content[: content.rfind(b"\n") + 1], None
    words = line.decode("ascii", "replace").split(" ")
    told = End(int(words[0]), words[1]) if words[0].isdecimal() else End(0, "")
    if told.line() != line:
        refuse(f"the backup {copy} is damaged: its last line was changed")
    return body, told


def _end_of(content: bytes) -> End:
    lines = content.splitlines()
    head = lines[-1][:64].decode("ascii", "replace") if lines else ""
    return End(max(len(lines) - 1, 0), head)


def _kept_end(ledger: Path) -> End | None:
    """Where the ledger ended that the backup replaces, if that is still known."""
    try:
        file = os.open(path_of(ledger), os.O_RDONLY)
    except OSError:
        return None
    try:
        return read_end(file)
    finally:
        os.close(file)


def _require_needed(ledger: Path, end: End) -> None:
    """Refuse to replace a ledger that is whole."""
    try:
        with Ledger(ledger, read_only=True) as found:
            rows, holds = found.verify(), found.holds(*end)
    except ValueError:
        return  # missing or damaged
    if holds:
        refuse(
            f"{ledger} is whole, with {rows} rows where the backup has {end.rows}; "
            "there is nothing to put back"
        )
    refuse(
        f"{ledger} is whole, and the backup is of another ledger; move the ledger "
        "away if it is the wrong one"
    )


def _spend_all(made: Path) -> list[str]:
    """Charge every budget in full: more cannot have left since the backup."""
    spent = []
    with Ledger(made) as ledger:
        head = ledger.head()
        for agent in dict.fromkeys(agent for agent, _, _ in ledger.accounts()):
            budget = ledger.budget(agent)
            if budget is None:
                continue
            whole = [_whole_budget(budget, observer) for observer in Observer]
            run = f"{RESTORED}{head[:16]}"
            ledger.charge(whole, agent=agent, run=run, round=0, content=None)
            spent.append(agent)
    return spent


def _whole_budget(budget: Row, observer: Observer) -> Guarantee:
    """A release that alone costs what the budget allows."""
    epsilon, delta = budget.epsilon or 0.0, budget.delta or 0.0
    # Its privacy profile passes through the budget's (epsilon, delta).
    pure = float(np.logaddexp(epsilon, np.log(delta)) - np.log1p(-delta))
    scope = Scope(observer, budget.unit or "", budget.relation or "")
    return Guarantee(
        curve=LossCurve(((RandomisedResponse(pure, 2), 1),)),
        scope=scope,
        theorem="a backup was put back: what may be missing counts as the whole budget",
        assumptions=(believed("no budget was raised after the backup"),),
    )


def _put(made: Path, ledger: Path) -> None:
    """Move what is there away, and the new one into its place."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    for file in (ledger, path_of(ledger)):
        if file.exists():
            file.rename(file.with_name(f"{file.name}.replaced-{stamp}"))
    # Without its end a ledger is refused: killed in between, nothing is counted less.
    made.rename(ledger)
    path_of(made).rename(path_of(ledger))
    sync_folder(ledger.absolute().parent)
