"""The tables of a report, as words: shown on the page and in the terminal alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tacita.report import numbers
from tacita.trace import Run, measures, over_seeds

MISSING = "–"


@dataclass(frozen=True)
class Table:
    """A heading per column and a line per row; the first column names the row."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def final_metrics(runs: dict[str, Run]) -> Table:
    """The last recorded value of every metric, one line per run."""
    metrics = measures.names(runs)
    rows = []
    for label, run in runs.items():
        cells = [label, numbers.whole(run.rounds)]
        for metric in metrics:
            cells.append(_last(run, metric))
        rows.append(tuple(cells))
    heads = ("run", "rounds", *(measures.words(m) for m in metrics))
    return Table(heads, tuple(rows))


def metrics_of_one(run: Run) -> Table:
    """First, best and last value of every metric of one run, one line per metric."""
    rows = []
    for metric in measures.names({"": run}):
        table = measures.lanes(run, metric)
        if not table.size:
            continue
        middle = over_seeds.of_seeds(table)
        rows.append(
            (
                measures.words(metric),
                numbers.measured(metric, float(middle[0])),
                *_best(run, metric, middle),
                numbers.spread(metric, table[:, -1]),
            )
        )
    first = numbers.whole(measures.rounds_of(run)[0]) if rows else "1"
    heads = ("metric", f"round {first}", "best", "in round", "last")
    return Table(heads, tuple(rows))


def _best(run: Run, metric: str, middle: np.ndarray) -> tuple[str, str]:
    if not np.isfinite(middle).any():
        return MISSING, MISSING
    pick = np.nanargmax if measures.is_share(metric) else np.nanargmin
    place = int(pick(middle))
    value = numbers.measured(metric, float(middle[place]))
    return value, numbers.whole(measures.rounds_of(run)[place])


def _last(run: Run, metric: str) -> str:
    if metric not in run.metrics or not np.size(run.metrics[metric]):
        return MISSING
    return numbers.spread(metric, measures.lanes(run, metric)[:, -1])


def communication(runs: dict[str, Run]) -> Table:
    """Letters and bytes, one line per run; of several seeds, the mean of one."""
    sent = {label: run.info.get("communication", {}) for label, run in runs.items()}
    by_way = any("bytes_up" in told for told in sent.values())
    heads = ["run", "rounds", "letters"]
    heads += ["to the coordinator", "from the coordinator"] if by_way else []
    heads += ["bytes in all", "bytes a round"]
    rows = []
    for label, told in sent.items():
        rounds = runs[label].rounds
        cells = [label, numbers.whole(rounds), _or_missing(told, "letters", "whole")]
        if by_way:
            cells += [_or_missing(told, "bytes_up"), _or_missing(told, "bytes_down")]
        cells.append(_or_missing(told, "bytes"))
        each = told.get("bytes", 0) / max(rounds, 1)
        cells.append(numbers.size(each) if told else MISSING)
        rows.append(tuple(cells))
    return Table(tuple(heads), tuple(rows))


def _or_missing(told: dict[str, Any], key: str, kind: str = "size") -> str:
    if key not in told:
        return MISSING
    return getattr(numbers, kind)(told[key])


def reached(runs: dict[str, Run], tolerance: dict[str, float]) -> Table:
    """The first recorded round in which each run reaches each value, and its bytes."""
    heads, columns = [], []
    for metric, value in tolerance.items():
        sign = ">=" if measures.is_share(metric) else "<="
        told = f"{measures.words(metric)} {sign} {numbers.measured(metric, value)}"
        heads += [f"rounds to {told}", "bytes until then"]
        first = [measures.rounds_to_reach(run, metric, value) for run in runs.values()]
        columns += [
            ["not reached" if n is None else numbers.whole(n) for n in first],
            [_bytes_until(run, n) for run, n in zip(runs.values(), first, strict=True)],
        ]
    rows = tuple(zip(runs, *columns, strict=True))
    return Table(("run", *heads), rows)


def _bytes_until(run: Run, rounds: int | None) -> str:
    told = run.info.get("communication", {})
    if rounds is None or "bytes" not in told:
        return MISSING
    # Who is active is drawn alike in all rounds, so bytes grow evenly on average.
    return "about " + numbers.size(told["bytes"] * rounds / max(run.rounds, 1))


EVALUATION_NOTE = (
    "Test rows never train and never leave their party. Alone: a model that the party "
    "learns from its own rows, without noise."
)


def evaluation(runs: dict[str, Run]) -> Table:
    """The model of a federation on a party's test rows, beside what it has alone."""
    rows = []
    for label, run in runs.items():
        told = dict(run.info.get("evaluation", {}))
        if told:
            count, measure = told.pop("rows"), told.pop("measure")
            cells = (
                f"{name} {numbers.measured(measure, v)}" for name, v in told.items()
            )
            rows.append((label, numbers.whole(count), measure, ", ".join(cells)))
    return Table(("run", "test rows", "measure", "model"), tuple(rows))


def holdings(held: dict[str, Any]) -> Table:
    """Who holds what, one line per agent."""
    heads = tuple(held)
    lines = zip(*(held[name] for name in heads), strict=True)
    return Table(heads, tuple((str(a), *map(numbers.whole, n)) for a, *n in lines))


def flat(config: dict[str, Any], prefix: str = "") -> dict[str, str]:
    """A nested configuration as dotted keys and words.

    >>> flat({"run": {"rounds": 5}, "name": "a"})
    {'run.rounds': '5', 'name': 'a'}
    """
    found: dict[str, str] = {}
    for key, value in config.items():
        if isinstance(value, dict):
            found |= flat(value, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = numbers.plain(value)
    return found


def settings(runs: dict[str, Run]) -> tuple[Table, Table]:
    """The settings in which runs differ, and those that all share."""
    told = {label: flat(measures.described(run)) for label, run in runs.items()}
    keys = dict.fromkeys(key for one in told.values() for key in one)
    differ, same = [], []
    for key in keys:
        values = [one.get(key, MISSING) for one in told.values()]
        if len(set(values)) > 1:
            differ.append((key, *values))
        else:
            same.append((key, values[0]))
    return (
        Table(("setting", *runs), tuple(differ)),
        Table(("setting", "value"), tuple(same)),
    )
