"""The recorded metrics of a run: their names in words, their values by seed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tacita import check
from tacita.trace.saved_run import Run

#: What the metrics of the simulator are called in tables and on axes.
WORDS = {
    "loss": "loss, summed over agents",
    "grad_norm_sq": "squared norm of the gradient",
    "mean_grad_norm_sq": "squared norm of the gradient at the mean model",
    "disagreement": "disagreement between agents",
    "accuracy": "accuracy on training rows",
    "test_loss": "loss on test rows",
    "test_accuracy": "accuracy on test rows",
    "error": "distance to the reference point",
    "gap": "gap to the dual value",
    "own_loss": "loss on this party's rows",
    "own_accuracy": "accuracy on this party's rows",
    "took_part": "agents that took part",
}
#: What a reader looks for first comes first.
_FIRST = ("test_accuracy", "accuracy", "own_accuracy", "test_loss", "loss", "own_loss")
#: Metrics that range over more than this factor are drawn on a logarithmic axis.
_LOG_FACTOR = 20.0
#: A run that diverges passes through numbers that an axis cannot hold.
_LARGEST = 1e60


def words(metric: str) -> str:
    """A metric's name for people; a function's own name with spaces.

    >>> words("test_accuracy"), words("my_metric")
    ('accuracy on test rows', 'my metric')
    """
    return WORDS.get(metric, metric.replace("_", " "))


def is_share(metric: str) -> bool:
    """Whether a metric is a share between 0 and 1, of which more is better."""
    return metric.endswith("accuracy")


def names(runs: dict[str, Run]) -> list[str]:
    """The metrics of all runs, the ones most looked for first."""
    return ordered(m for run in runs.values() for m in run.metrics)


def ordered(metrics: Iterable[str]) -> list[str]:
    """The names of metrics, each once, the ones most looked for first.

    >>> ordered(["round", "loss", "error", "accuracy", "loss"])
    ['accuracy', 'loss', 'error']
    """
    found = dict.fromkeys(metrics)
    found.pop("round", None)
    first = [m for m in _FIRST if m in found]
    return [*first, *(m for m in found if m not in first)]


def lanes(run: Run, metric: str) -> np.ndarray:
    """A metric as a table, one line per seed."""
    return np.atleast_2d(np.asarray(run.metrics[metric], dtype=float))


def rounds_of(run: Run) -> np.ndarray:
    """The rounds at which metrics were recorded."""
    return np.asarray(run.metrics["round"])


def described(run: Run) -> dict[str, Any]:
    """What was run, numbers set by theory included.

    A run made from a run file keeps that file as its configuration, and the
    description under "resolved".
    """
    return run.config.get("resolved", run.config)


def drawable(table: np.ndarray) -> np.ndarray:
    """The values that a picture can show; NaN, a gap, in place of the others."""
    with np.errstate(invalid="ignore"):
        return np.where(np.abs(table) < _LARGEST, table, np.nan)


def wants_log(tables: list[np.ndarray], metric: str) -> bool:
    """Whether a metric is better read on a logarithmic axis."""
    values = np.concatenate([drawable(t).ravel() for t in tables])
    values = values[np.isfinite(values)]
    if is_share(metric) or not values.size or values.min() <= 0:
        return False
    return bool(values.max() > _LOG_FACTOR * values.min())


def rounds_to_reach(run: Run, metric: str, value: float) -> int | None:
    """The first recorded round at which a metric has reached a value, or None.

    Accuracies reach a value from below, everything else from above. Of several seeds
    the median counts, and those that diverged have not reached it.
    """
    if metric not in run.metrics or metric == "round":
        known = [m for m in run.metrics if m != "round"]
        check.refuse(
            f"{run.name} has not recorded {metric!r}; {check.nearest(metric, known)}"
        )
    table, worst = lanes(run, metric), -np.inf if is_share(metric) else np.inf
    middle = np.median(np.where(np.isnan(table), worst, table), axis=0)
    hit = middle >= value if is_share(metric) else middle <= value
    return int(rounds_of(run)[np.argmax(hit)]) if hit.any() else None
