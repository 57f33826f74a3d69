"""From the last carry to a `Run`: what was run, what came out, what it sent."""

from __future__ import annotations

import dataclasses
import functools
import platform
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

import jax
import numpy as np

from tacita.algorithm.base import GraphAlgorithm
from tacita.problem.problem import Problem
from tacita.robust.detection import SIGNS
from tacita.runtime import traffic
from tacita.runtime.divergence import diverged
from tacita.runtime.engine import RunPlan
from tacita.runtime.measure import name_of
from tacita.runtime.seeds import Seeds
from tacita.runtime.world import World
from tacita.trace import Run
from tacita.trained import card_of

#: Beyond this many agents a run folder keeps totals, not one row per agent.
_MANY_AGENTS = 2000


def describe(item: Any) -> Any:
    """A record as a table of plain values: its name and its fields."""
    if dataclasses.is_dataclass(item) and not isinstance(item, type):
        table: dict[str, Any] = {"name": type(item).__name__}
        for field in dataclasses.fields(item):
            value = describe(getattr(item, field.name))
            if value is not None:
                table[field.name] = value
        return table
    if callable(item):
        return getattr(item, "__name__", type(item).__name__)
    if isinstance(item, tuple):
        return [describe(part) for part in item]
    if isinstance(item, jax.Array | np.ndarray):
        array = np.asarray(item)
        return float(array) if array.ndim == 0 else array.tolist()
    return item


@functools.cache
def _made_with() -> dict[str, str]:
    named = {name: version(name) for name in ("tacita", "jax", "numpy", "scipy")}
    return {"python": platform.python_version(), **named}


def versions() -> dict[str, str]:
    """What a run was made with."""
    return dict(_made_with())


def to_run(
    problem: Problem,
    algorithm: Any,
    world: World,
    plan: RunPlan,
    chunks: Any,
    carry: Any,
    models: tuple[Any, Any],
    seeds: Seeds,
    told: dict[str, Any],
    at_start: Callable[[], np.ndarray],
) -> Run:
    """Put the run together; of a private one without seeds and counts of classes."""
    params, agents = (np.asarray(m) for m in models)
    book = np.concatenate(chunks.metrics, axis=-1)
    metrics = {name_of(item): book[..., k, :] for k, item in enumerate(plan.record)}
    metrics["round"] = np.asarray(chunks.record_rounds)
    config = {
        "problem": problem.describe(),
        "algorithm": describe(algorithm),
        "run": {
            "rounds": chunks.rounds,
            **seeds.settings,
            **told,
            "record": list(metrics)[:-1],
        },
    }
    judged = "loss" in plan.record and not seeds.private
    losses = metrics["loss"] if judged else None
    astray = diverged(problem, params, losses, at_start)
    turns = np.asarray(carry.turns)
    info = {
        "rounds": chunks.rounds,
        "stopped_early": chunks.stopped,
        "diverged": bool(np.any(astray)),
        "seed": seeds.told,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
        "seconds": {
            "total": chunks.seconds,
            "first_chunk_with_compilation": chunks.first_seconds,
        },
        "communication": traffic.count(
            world,
            algorithm_of_first_lane(plan, algorithm),
            chunks.rounds,
            turns,
            problem.dim,
            problem.dtype,
        ),
    }
    if told.get("record_every_chosen"):
        info["recorded_by_cost"] = told["record_every"]
    if plan.lanes:
        info["diverged_lanes"] = astray.tolist()
    if problem.n_agents <= _MANY_AGENTS and problem.whole:
        info["holdings"] = problem.holdings(by_class=not seeds.private)
        info["turns"] = turns
    if plan.watch:
        seen = book[len(plan.record) :].reshape(len(SIGNS), problem.n_agents, -1)
        told = {sign: rows.round(6) for sign, rows in zip(SIGNS, seen, strict=True)}
        info["letters"] = {"round": metrics["round"], **told}
    name = config["algorithm"]["name"]
    personal = isinstance(algorithm, GraphAlgorithm)
    card = card_of(problem, personal=personal, algorithm=name)
    return Run(params, agents, metrics, config, info, card=card)


def algorithm_of_first_lane(plan: RunPlan, algorithm: Any) -> Any:
    """Of a sweep, the first configuration; letters have the same shape in all."""
    if not plan.sweep:
        return algorithm
    return jax.tree.map(lambda leaf: leaf[0], algorithm)


def by_configuration(run: Run, algorithm: Any, configurations: int) -> Run:
    """A sweep with seeds: the lanes as configurations, and in each its seeds."""

    def parted(lanes: Any) -> np.ndarray:
        array = np.asarray(lanes)
        return array.reshape(configurations, -1, *array.shape[1:])

    metrics = {k: v if k == "round" else parted(v) for k, v in run.metrics.items()}
    info = dict(run.info)
    if "turns" in info:
        info["turns"] = parted(info["turns"])
    return dataclasses.replace(
        run,
        params=parted(run.params),
        kept=parted(run.kept),
        metrics=metrics,
        config={**run.config, "algorithm": describe(algorithm)},
        info=info,
    )
