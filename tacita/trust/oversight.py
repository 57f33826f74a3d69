"""A run under watch: errors on held-out rows at every node, alarms, snapshots.

A. Jung, "Federated Learning: From Theory to Practice", 8.1 and 8.4: people can only
step in if they are told which node went wrong, and since when.
"""

from __future__ import annotations

import dataclasses
import os
import tempfile
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tacita import check
from tacita.algorithm.base import Algorithm, GraphAlgorithm
from tacita.privacy.letters import is_private
from tacita.problem.held_out import node_losses
from tacita.problem.problem import Problem
from tacita.runtime.simulate import simulate
from tacita.trace import Run
from tacita.trust.page_hinkley import Alarm, alarms
from tacita.trust.snapshots import Snapshots


@dataclass(frozen=True, eq=False)
class Overseen:
    """A run with what was seen of it on the way.

    Attributes:
        run: The run, as far as it went. Its folder tells of the head, and of alarms
            unless it is private: they come from rows without noise.
        rounds: When errors were taken.
        errors: Validation errors, (times, nodes).
        alarms: The first alarm of every node that gave one.
        stopped: Whether the run ended at an alarm.
        head: The last digest of the chain of snapshots, or None.
    """

    run: Run
    rounds: list[int]
    errors: np.ndarray
    alarms: list[Alarm]
    stopped: bool
    head: str | None


def oversee(
    problem: Problem,
    algorithm: Algorithm,
    rounds: int,
    *,
    held_out: Problem,
    every: int,
    slack: float,
    limit: float,
    policy: Literal["stop", "go_on"] = "stop",
    snapshots: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Overseen:
    """Simulate, take every node's error now and then, and sound alarms.

    The numbers are those of one `tacita.simulate`, for a run that is continued gives
    the same bits.

    Args:
        problem: What is solved.
        algorithm: How.
        rounds: All rounds.
        held_out: The same nodes with other rows, see `problem.hold_out`.
        every: Rounds between two looks.
        slack: Of the alarms: rises of an error by less than this do not count.
        limit: How much rises may add up to.
        policy: What an alarm does: "stop" ends the run there, "go_on" tells only. A
            private run is not stopped by private rows: its end would tell of them.
        snapshots: Folder in which models are kept at every look; None keeps none.
        options: Of `tacita.simulate`, such as `participation`.
    """
    check.one_of(("stop", "go_on"), policy=policy)
    rounds, every = check.count(rounds=rounds), check.count(every=every)
    if held_out.n_agents != problem.n_agents or held_out.dim != problem.dim:
        check.refuse("expected held_out with the nodes and features of the problem")
    _refuse_chosen(options)
    ready = algorithm.resolve(problem)
    if policy == "stop" and is_private(ready):
        check.refuse(
            "errors on private rows may not end a private run, for its length would "
            "tell of them; use policy='go_on'"
        )
    kept = None if snapshots is None else Snapshots(snapshots, problem, ready)
    own = isinstance(algorithm, GraphAlgorithm)
    times, errors, found, stopped, run = [], [], [], False, None
    with tempfile.TemporaryDirectory() as folder:
        for until in [*range(every, rounds, every), rounds]:
            again = {"checkpoint": folder, "resume": run is not None}
            run = simulate(problem, algorithm, until, **options, **again)
            times.append(until)
            errors.append(node_losses(held_out, run.agents if own else run.params))
            if kept is not None:
                kept.add(run)
            found = alarms(
                errors, slack=slack, limit=limit, rounds=times, ids=problem.ids
            )
            stopped = bool(found) and policy == "stop"
            if stopped:
                break
    assert run is not None
    head = None if kept is None else kept.head
    told: dict[str, Any] = {"looked_every": every, "snapshots_head": head}
    if run.privacy is None:
        told |= {"alarms": [str(one) for one in found], "stopped_by_alarm": stopped}
    run = dataclasses.replace(run, info={**run.info, "oversight": told})
    return Overseen(run, times, np.array(errors), found, stopped, head)


def _refuse_chosen(options: dict[str, Any]) -> None:
    for name in ("checkpoint", "resume", "seeds", "stop"):
        if name in options:
            check.refuse(f"{name} does not go with oversight; leave it out")
