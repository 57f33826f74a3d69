"""A run file as a run description."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tacita.algorithm.base import Algorithm
from tacita.federation.description import Description
from tacita.federation.hub import Invitation
from tacita.job import run_file, table_of
from tacita.trace import plain_values


def describe(run: Mapping[str, Any] | str | Path, me: Invitation) -> Description:
    """The run of a file or of its tables, as the coordinator would offer it."""
    given = isinstance(run, Mapping)
    table = dict(run) if given else run_file.read(Path(run))
    for key, value in table.items():
        object_given = isinstance(value, Algorithm)
        table[key] = table_of(value) if object_given else plain_values(value)
    name = str(table.pop("name", "run" if given else Path(run).stem))
    agents = tuple(table.pop("agents", me.agents))
    return Description(me.federation, name, me.coordinator, agents, table)
