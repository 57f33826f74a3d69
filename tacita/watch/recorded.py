"""What was recorded of a run, for the live page: curves, numbers, privacy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tacita.report import guarantees, numbers
from tacita.trace import PrivacyReport, Run, measures, over_seeds, terms
from tacita.watch.view import Cards, Curve, Curves, Line, Pairs, Part, Table

#: Points of a line, at most: a page is not wider.
_MOST_POINTS = 240
#: Records in the table of numbers.
_MOST_RECORDS = 12
#: Agents whose epsilon is drawn, the largest spenders.
_MOST_AGENTS = 4

#: Metrics by name, each (..., records); "round" names the rounds.
Metrics = Mapping[str, np.ndarray]


def parts(metrics: Metrics, note: str = "") -> dict[str, Part]:
    """Curves and numbers of what was recorded; nothing where nothing was."""
    names, rounds = measures.ordered(metrics), metrics["round"]
    if not names or not len(rounds):
        return {}
    found = [_curve(name, rounds, _lanes(metrics, name)) for name in names]
    last = range(len(rounds) - 1, max(-1, len(rounds) - 1 - _MOST_RECORDS), -1)
    rows = [
        (
            numbers.whole(rounds[k]),
            *(numbers.spread(name, _lanes(metrics, name)[:, k]) for name in names),
        )
        for k in last
    ]
    heads = ("round", *map(measures.words, names))
    newest = list(zip(heads[1:], rows[0][1:], strict=True))
    return {
        "last": Cards(newest),
        "curves": Curves("Learning curves", found, note),
        "numbers": Table("Numbers, the newest first", heads, rows),
    }


def parts_of(run: Run, note: str) -> dict[str, Part]:
    """All that a finished run says; the note is for the curves of a private one."""
    if run.privacy is None:
        return parts(run.metrics)
    return parts(run.metrics, note) | privacy_parts(run.privacy)


def privacy_parts(report: PrivacyReport) -> dict[str, Part]:
    """What each observer may have learnt, with theorems and assumptions."""
    table = guarantees.rows(report)
    made: dict[str, Part] = {
        "privacy": Table("Privacy", table.columns, table.rows, guarantees.lede(report))
    }
    if told := report.curves:
        made["epsilon"] = Curves("Epsilon spent", [_spent(told)], told["theorem"])
    made["reasons"] = Pairs("Theorems and assumptions", report.notes())
    return made


def spent_so_far(told: Mapping[str, Any]) -> Curves:
    """How epsilon grew in a run that goes on, and what it rests on."""
    values = np.array([np.nan if e is None else e for e in told["epsilon"]])
    rounds, lines = np.asarray(told["rounds"]), {"spent most": values}
    curve = drawn("epsilon so far", rounds, lines, from_zero=True)
    note = f"Of the agent that took part most, {terms(told)}."
    return Curves("Epsilon spent", [curve], note)


def _lanes(metrics: Metrics, name: str) -> np.ndarray:
    return np.atleast_2d(np.asarray(metrics[name], dtype=float))


def _curve(name: str, rounds: np.ndarray, lanes: np.ndarray) -> Curve:
    """One line, or the middle and the ends of what several seeds gave."""
    seen = measures.drawable(lanes)
    shown = {"": seen[0]}
    if len(seen) > 1:
        lost = over_seeds.told(over_seeds.astray(seen))
        middle = f"median of the others, {lost}" if lost else "median of seeds"
        shown = {
            middle: over_seeds.of_seeds(seen),
            "lowest": over_seeds.of_seeds(seen, np.nanmin),
            "highest": over_seeds.of_seeds(seen, np.nanmax),
        }
    log = measures.wants_log([lanes], name)
    return drawn(measures.words(name), rounds, shown, log)


def _spent(told: Mapping[str, Any]) -> Curve:
    name = (
        f"epsilon against the {told['observer']} at delta = {told['delta']:g}, "
        f"{told['unit']} ({told['relation']})"
    )
    rounds = np.asarray(told["rounds"])
    spenders = zip(told["agents"], told["epsilon"], strict=True)
    lines = {f"agent {agent}": np.asarray(line) for agent, line in spenders}
    shown = dict(list(lines.items())[:_MOST_AGENTS])
    if told.get("budget") is not None:
        shown["budget"] = np.full(len(rounds), told["budget"])
    return drawn(name.replace("_", " "), rounds, shown, from_zero=True)


def drawn(
    name: str,
    rounds: np.ndarray,
    lines: Mapping[str, np.ndarray],
    log: bool = False,
    from_zero: bool = False,
) -> Curve:
    """A curve of as many points as can be told apart, its ends among them."""
    count = len(rounds)
    chosen = np.unique(np.linspace(0, count - 1, min(count, _MOST_POINTS)).astype(int))
    made = [
        Line(label, [float(f"{v:.5g}") for v in np.asarray(values)[chosen]])
        for label, values in lines.items()
    ]
    return Curve(name, np.asarray(rounds)[chosen].tolist(), made, log, from_zero)
