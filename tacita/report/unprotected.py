"""What of a run no epsilon covers: told in a banner, left out of a page for others."""

from __future__ import annotations

import dataclasses
from pathlib import PurePath
from typing import Any

import numpy as np

from tacita import check
from tacita.encoding import SEEN_LABELS
from tacita.trace import Keeping, PrivacyReport, Run, measures, verdict

#: Sections of the page that rows are looked at for, by what a run keeps for them.
_LOOKS = {
    "evaluation": "how models do on the party's own test rows",
    "letters": "every agent's letters: how far they lay from each other",
    "nodes": "every node's errors",
    "trust": "the section on trust",
}
#: What a page for others knows of a run besides its guarantees.
_PUBLIC = ("rounds", "diverged", "seed", "versions", "communication", "finished")
_PUBLIC += ("ledger_head", "signed")
#: Scalings that are learnt from rows; the others treat each row by itself.
_LEARNT = ("standard", "minmax")


def unprotected(run: Run) -> list[str]:
    """What the page, or the run, tells of rows without noise, one sentence each."""
    found = []
    metrics = [measures.words(name) for name in measures.names({"": run})]
    if metrics:
        found.append(f"recorded metrics: {'; '.join(metrics)}")
    found += [words for key, words in _LOOKS.items() if key in run.info]
    asked = run.config.get("problem", {})
    found += _before_the_run(run, asked.get("scale"))
    found += _besides(run)
    classes = set(run.info.get("holdings", {})) - {"agent", "rows"}
    if classes:
        found.append("how many rows of each class every agent holds")
    if run.info.get("data_notes"):
        found.append("notes on the data, under who holds what")
    if _is_table(asked):
        found.append("names of classes, and words of text columns, read from the rows")
    if run.info.get("stopped_early"):
        found.append("the round in which the run stopped, set by a metric")
    if audited(run.privacy):
        found.append("results of audits, which look at the rows")
    return found


def _before_the_run(run: Run, scale: str | None) -> list[str]:
    """What rows were looked at for before the first round."""
    encoding = None if run.card is None else run.card.encoding
    scaled, filled = scale in _LEARNT, False
    if encoding is not None and encoding.mixes_rows:
        # "unit" is a row's own affair for pictures; of tables ranges come before it.
        scaled, filled = scaled or encoding.spread is not None, encoding.fills
    found = []
    if scaled:
        how = f" ({scale})" if scale else ""
        found.append(f"scaling{how}: ranges of columns, learnt from the rows")
    if filled:
        found.append("what stands in for empty cells, learnt from the rows")
    return found


def _besides(run: Run) -> list[str]:
    """What the model's card tells that no encoding does."""
    named = _is_table(run.config.get("problem", {}))  # names are told of anyhow
    words = () if run.card is None else run.card.learnt
    return [one for one in words if not (named and one == SEEN_LABELS)]


def audited(report: PrivacyReport | None) -> bool:
    """Whether a report holds the result of an audit."""
    return report is not None and any(row.audited for row in report.rows)


def publishable(run: Run) -> Run:
    """The run without all that is computed from rows and covered by no epsilon.

    Numbers of rows stay: the theorems take them as public. Refused where what is left
    would tell of rows too, or promises what does not hold.
    """
    report = run.privacy
    if report is None:
        check.refuse(
            f"nothing bounds what {run.name} tells of its rows, so no page can be "
            "published; train it privately first: tacita privacy plan"
        )
    refuted = verdict(report).keeping == Keeping.REFUTED
    if refuted or report.violated():
        found = "refuted by an audit" if refuted else "not proved"
        check.refuse(
            f"what {run.name} promises is {found}, so no page of it can be published; "
            "its own page says why: tacita report"
        )
    if run.info.get("stopped_early"):
        check.refuse(
            f"{run.name} stopped when a metric of its rows said so, and its number of "
            "rounds tells of them; run it without run.stop"
        )
    rows = tuple(dataclasses.replace(row, audited=None) for row in report.rows)
    kept = dataclasses.replace(report, rows=rows, curves=None)
    info = {key: run.info[key] for key in _PUBLIC if key in run.info}
    if _letters_were_drawn(run):
        # How many there were tells who took part, on whose secret bounds may rest.
        info.pop("communication", None)
    config = _without_path(run.config)
    return dataclasses.replace(run, metrics={}, info=info, config=config, privacy=kept)


def _letters_were_drawn(run: Run) -> bool:
    """Whether chance said how many letters there were, not who wrote them only."""
    told = run.config.get("resolved", run.config).get("run", {})
    chance = told.get("participation", 1.0)
    return not isinstance(chance, int) and bool(np.any(np.not_equal(chance, 1.0)))


def _is_table(asked: dict[str, Any]) -> bool:
    """Whether the data are a table of the user's own, from a file."""
    return "target" in asked


def _without_path(config: dict[str, Any]) -> dict[str, Any]:
    """The run file, which names its files without saying where they lie."""
    asked = config.get("problem", {})
    named: dict[str, Any] = {}
    if "data" in asked:
        named["data"] = PurePath(asked["data"]).name
    graph = asked.get("graph")
    if isinstance(graph, dict) and "path" in graph:
        named["graph"] = {**graph, "path": PurePath(graph["path"]).name}
    return {**config, "problem": {**asked, **named}} if named else config
