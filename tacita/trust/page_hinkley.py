"""Alarms about errors that rise: the test of Page and Hinkley, for every node.

E. S. Page, "Continuous Inspection Schemes", Biometrika 1954. With the errors e_1, e_2,
... of a node,

    g_t = sum_{s <= t} (e_s - mean(e_1 .. e_s) - slack),   alarm where
    g_t - min_{s <= t} g_s > limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacita import check


@dataclass(frozen=True)
class Alarm:
    """One node whose error rose.

    Attributes:
        node: Its id.
        round: The round in which it was noticed.
        since: The first round of the rise: the one after the smallest g.
        error: The error when it was noticed.
        usual: The mean error before the rise.
    """

    node: Any
    round: int
    since: int
    error: float
    usual: float

    def __str__(self) -> str:
        return (
            f"node {self.node}: alarm in round {self.round}, rising since round "
            f"{self.since}: error {self.error:.4g}, before that {self.usual:.4g}"
        )


def alarms(
    errors: Any,
    *,
    slack: float,
    limit: float,
    rounds: Sequence[int] | None = None,
    ids: Sequence[Any] | None = None,
) -> list[Alarm]:
    """The first alarm of every node, in the order of rounds.

    Args:
        errors: (times,) of one node or (times, nodes). A time at which a node has no
            error (NaN) is passed over.
        slack: Rises of less than this do not count.
        limit: How much they may add up to.
        rounds: To which round each time belongs; 0, 1, ... if left out.
        ids: The nodes; their numbers if left out.

    >>> print(*alarms([1.0, 1.1, 0.9, 1.8, 1.9], slack=0.05, limit=0.5))
    node 0: alarm in round 3, rising since round 3: error 1.8, before that 1
    """
    check.not_negative(slack=slack)
    check.not_negative(limit=limit)
    table = np.asarray(errors, float)
    table = table[:, None] if table.ndim == 1 else table
    check.shape((None, None), errors=table)
    times, nodes = table.shape
    rounds = range(times) if rounds is None else rounds
    ids = range(nodes) if ids is None else ids
    if len(rounds) != times or len(ids) != nodes:
        check.refuse(
            f"expected {times} rounds and {nodes} ids for errors of shape "
            f"{table.shape}, got {len(rounds)} and {len(ids)}"
        )
    known = np.isfinite(table)
    filled = np.where(known, table, 0.0)
    counts = np.cumsum(known, axis=0)
    means = np.cumsum(filled, axis=0) / np.maximum(counts, 1)
    rise = np.cumsum(np.where(known, filled - means - slack, 0.0), axis=0)
    # g before the first error is no minimum: a single error is no rise.
    rise = np.where(counts > 0, rise, np.finfo(float).max)
    lowest = np.minimum.accumulate(rise, axis=0)
    over = known & (rise - lowest > limit)
    found = []
    for node in np.flatnonzero(over.any(axis=0)):
        time = int(over[:, node].argmax())
        low = int(rise[: time + 1, node].argmin())
        since = low + 1 + int(known[low + 1 :, node].argmax())
        found.append(
            Alarm(
                node=ids[int(node)],
                round=int(rounds[time]),
                since=int(rounds[since]),
                error=float(table[time, node]),
                usual=float(means[low, node]),
            )
        )
    return sorted(found, key=lambda alarm: alarm.round)
