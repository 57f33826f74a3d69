"""A sweep is many runs in one; a report shows each of them as a run of its own."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tacita.trace.saved_run import Run


def apart(runs: dict[str, Run]) -> dict[str, Run]:
    """Replace every sweep by its configurations, named by the numbers that differ."""
    found: dict[str, Run] = {}
    for label, run in runs.items():
        n = run.config.get("run", {}).get("configs")
        if n is None:
            found[label] = run
            continue
        parts = [_part(run, k, n) for k in range(n)]
        names = _names(label, [part.config["algorithm"] for part in parts])
        found |= dict(zip(names, parts, strict=True))
    return found


def _part(run: Run, k: int, n: int) -> Run:
    config = {**run.config, "algorithm": _pick(run.config["algorithm"], k, n)}
    config["run"] = {key: v for key, v in config["run"].items() if key != "configs"}
    info = dict(run.info)
    if "turns" in info:
        info["turns"] = np.asarray(info["turns"])[k].tolist()
    astray = info.pop("diverged_lanes", None)
    finite = bool(np.all(np.isfinite(run.params[k])))
    info["diverged"] = not finite or (astray is not None and bool(astray[k]))
    return dataclasses.replace(
        run,
        params=run.params[k],
        kept=run.kept[k],
        metrics={m: v if m == "round" else v[k] for m, v in run.metrics.items()},
        config=config,
        info=info,
    )


def _pick(value: Any, k: int, n: int) -> Any:
    """The k-th of every number that has one entry per configuration."""
    if isinstance(value, dict):
        return {key: _pick(inner, k, n) for key, inner in value.items()}
    if isinstance(value, list) and len(value) == n:
        return value[k]
    return value


def _names(label: str, algorithms: list[dict[str, Any]]) -> list[str]:
    differ = [
        key
        for key, value in algorithms[0].items()
        if isinstance(value, float) and any(a[key] != value for a in algorithms)
    ]
    told = [", ".join(f"{k}={f'{a[k]:.4g}'}" for k in differ) for a in algorithms]
    if len(set(told)) < len(told):
        told = [f"configuration {k + 1}" for k in range(len(told))]
    return [f"{label} {words}" for words in told]
