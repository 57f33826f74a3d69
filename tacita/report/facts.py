"""What a report says in words: sentences, warnings, the numbers looked for first."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacita.report import numbers, tables
from tacita.trace import Run, measures, over_seeds


def several(run: Run) -> bool:
    """Whether a run has several seeds."""
    return any(np.ndim(v) > 1 for k, v in run.metrics.items() if k != "round")


def band(runs: dict[str, Run]) -> str:
    """What lines and bands of the curves are; nothing where every run has one seed."""
    for run in runs.values():
        if several(run):
            n = max(len(measures.lanes(run, m)) for m in run.metrics)
            words = (
                f"Lines are medians over {n} seeds, bands span "
                "the lowest to the highest."
            )
            return " ".join(filter(None, (words, _left_out(runs))))
    return ""


def _left_out(runs: dict[str, Run]) -> str:
    """Of which runs seeds diverged, so that lines and bands are of the others."""
    lost = {label: over_seeds.told(_astray(run)) for label, run in runs.items()}
    named = [f"of {label} {words}" for label, words in lost.items() if words]
    if not named:
        return ""
    return (
        "Where a seed has no number any more, they are of the others: "
        f"{', '.join(named)}."
    )


def _astray(run: Run) -> np.ndarray:
    tables = [measures.lanes(run, m) for m in measures.names({"": run})]
    found = [over_seeds.astray(measures.drawable(t)) for t in tables if t.size]
    return np.any(np.broadcast_arrays(*found), axis=0) if found else np.zeros(1, bool)


def sentence(runs: dict[str, Run]) -> str:
    """What was run, in one sentence."""
    problems = list(dict.fromkeys(_problem(run) for run in runs.values()))
    if len(runs) > 1:
        on = f" on {problems[0]}" if len(problems) == 1 else ""
        return f"{', '.join(runs)}: {len(runs)} runs compared{on}."
    (run,) = runs.values()
    algorithm = measures.described(run).get("algorithm", {}).get("name", run.name)
    return f"{algorithm} on {problems[0]}, {numbers.whole(run.rounds)} rounds."


def _problem(run: Run) -> str:
    told = measures.described(run).get("problem", {})
    agents = told.get("agents", run.kept.shape[-2])
    # Of a federation a party knows its own rows only, and the coordinator none.
    where = " at this party" if "federation" in run.config else ""
    rows = f"{numbers.whole(told['rows'])} rows{where}" if "rows" in told else "no rows"
    return (
        f"{told.get('name', 'a problem')} ({told.get('model', 'a model')} with "
        f"{numbers.whole(run.params.shape[-1])} parameters): "
        f"{numbers.whole(agents)} agents, {rows}"
    )


def key_figures(run: Run) -> list[tuple[str, str]]:
    """The few numbers of a run that a reader looks for first."""
    found = []
    for metric in measures.names({"": run})[:2]:
        last = measures.lanes(run, metric)[:, -1:]
        value = numbers.measured(metric, float(over_seeds.of_seeds(last)[0]))
        lost = over_seeds.told(over_seeds.astray(last))
        words = measures.words(metric)
        found.append((f"{words}; {lost}" if lost else words, value))
    sent = run.info.get("communication", {})
    if sent:
        found.append(("letters", numbers.whole(sent["letters"])))
        found.append(("sent in all", numbers.size(sent["bytes"])))
    return found


def warnings(run: Run) -> list[str]:
    """What a reader must know before anything else."""
    found = []
    if run.info.get("diverged"):
        lanes = np.asarray(run.info.get("diverged_lanes", []))
        who = over_seeds.told(lanes) if len(lanes) > 1 else "the run diverged"
        found.append(
            f"{who}: a model holds numbers that are not finite, or a loss ended far "
            "above the start."
        )
    if run.info.get("stopped_early"):
        found.append(
            f"the run stopped after round {run.rounds}, when its tolerance was reached."
        )
    for words in [] if run.privacy is None else run.privacy.violated():
        found.append(
            f"no epsilon of this run is proved, for this is violated: {words}."
        )
    return found


def recorded(runs: dict[str, Run]) -> str:
    """How often runs were recorded, where nobody chose it and it was seldom."""
    found = {label: run.info.get("recorded_by_cost", 1) for label, run in runs.items()}
    seldom = [f"{label} every {n} rounds" for label, n in found.items() if n > 1]
    if not seldom:
        return ""
    return (
        f"Recorded as often as costs little beside the rounds: {', '.join(seldom)}. "
        "record_every chooses otherwise."
    )


def activity(runs: dict[str, Run]) -> list[str]:
    """How often agents were active, each sentence once for the runs that share it."""
    told: dict[str, list[str]] = {}
    for label, run in runs.items():
        turns = np.asarray(run.info.get("turns", []), dtype=float)
        if not turns.size or turns.min() == turns.max():
            continue
        mean = turns.reshape(-1, turns.shape[-1]).mean(axis=0)
        words = (
            f"an agent was active in {numbers.real(mean.mean())} of "
            f"{numbers.whole(run.rounds)} rounds on average, the least active in "
            f"{numbers.real(mean.min())}, the most active in "
            f"{numbers.real(mean.max())}."
        )
        told.setdefault(words, []).append(label)
    return [f"{', '.join(labels)}: {words}" for words, labels in told.items()]


def data_notes(runs: dict[str, Run]) -> list[str]:
    """What was done to the data before they were given to agents."""
    told = [note for run in runs.values() for note in run.info.get("data_notes", [])]
    return [f"{note[:1].upper()}{note[1:]}." for note in dict.fromkeys(told)]


def groups(config: dict[str, Any]) -> dict[str, list[tuple[str, str]]]:
    """The description of a run by table: problem, algorithm, run."""
    found = {}
    for title, content in config.items():
        if isinstance(content, dict):
            pairs = tables.flat(content).items()
            # A budget has a section of its own.
            shown = [(k, v) for k, v in pairs if ".promise." not in k]
            found[title] = [(k.replace("_", " "), v) for k, v in shown]
    return found


def distinct_holdings(runs: dict[str, Run]) -> list[tuple[list[str], dict[str, Any]]]:
    """The holdings of all runs, each shown once, with the runs that share it."""
    found: list[tuple[list[str], dict[str, Any]]] = []
    for label, run in runs.items():
        held = run.info.get("holdings")
        if held is None:
            continue
        for labels, other in found:
            if other == held:
                labels.append(label)
                break
        else:
            found.append(([label], held))
    return found
