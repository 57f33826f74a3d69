"""What a metric may be compared with: the optimum, or always the same answer."""

from __future__ import annotations

import numpy as np

from tacita.problem.problem import Problem
from tacita.problem.solve import solvable
from tacita.trace.saved_run import Run


def references_of(problem: Problem, metric: str) -> dict[str, float]:
    """The optimum of a loss, the majority class of an accuracy; nothing of others.

    They are computed from rows, for whoever holds all of them.
    """
    if metric == "loss":
        words = "optimum" if problem.graph is None else "optimum of one model"
        return {words: problem.loss(problem.solve())} if solvable(problem) else {}
    held = problem.population.test
    if metric == "test_accuracy" and held is not None:
        return {"majority class": _largest_share(np.asarray(held.y))}
    if metric == "accuracy":
        _, labels, counts = problem.stacked()
        real = np.arange(labels.shape[1]) < counts[:, None]
        return {"majority class": _largest_share(labels[real])}
    return {}


def majority_of(runs: dict[str, Run]) -> dict[str, float]:
    """The share of the majority class, where all runs tell the same one."""
    found = set()
    for run in runs.values():
        held = run.info.get("holdings", {})
        counts = [np.sum(v) for k, v in held.items() if k not in ("agent", "rows")]
        found.add(float(max(counts) / sum(counts)) if sum(counts) else None)
    one = found.pop() if len(found) == 1 else None
    return {} if one is None else {"majority class": one}


def _largest_share(labels: np.ndarray) -> float:
    counts = np.unique(labels, return_counts=True)[1]
    return float(counts.max() / counts.sum())
