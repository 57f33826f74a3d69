"""A run file as a run description."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tacita.algorithm.base import Algorithm
from tacita.check import refuse
from tacita.federation.description import Description
from tacita.federation.invitation import Invitation
from tacita.job import run_file, table_of
from tacita.trace import plain_values


def tables_of(run: Mapping[str, Any] | str | Path) -> dict[str, Any]:
    """The tables of a run file, or a copy of those given."""
    return dict(run) if isinstance(run, Mapping) else run_file.read(Path(run))


def describe(run: Mapping[str, Any] | str | Path, me: Invitation) -> Description:
    """The run of a file or of its tables, as the coordinator would offer it."""
    table = tables_of(run)
    _refuse_code(table.get("problem"))
    for key, value in table.items():
        object_given = isinstance(value, Algorithm)
        table[key] = table_of(value) if object_given else plain_values(value)
    usual = "run" if isinstance(run, Mapping) else Path(run).stem
    name = str(table.pop("name", usual))
    agents = tuple(table.pop("agents", me.agents))
    return Description(me.federation, name, me.coordinator, agents, table)


def _refuse_code(problem: Any) -> None:
    """Refuse a model that is not named: others would have to run its code."""
    model = problem.get("model") if isinstance(problem, Mapping) else None
    if not isinstance(model, str | Mapping | None):
        refuse(
            f"a federation cannot carry the code of problem.model, a "
            f"{type(model).__name__}; name one, such as 'logistic', or give the table "
            "of a network, such as {'name': 'mlp', 'hidden': [32]}"
        )
