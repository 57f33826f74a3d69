"""The table [privacy] of a run file: a budget that a run is held to."""

from __future__ import annotations

from typing import Any

from tacita import privacy
from tacita.job.calls import told_of
from tacita.job.run_file import PrivacyTable
from tacita.problem import Problem


def held_to(table: PrivacyTable, problem: Problem, algorithm: Any) -> Any:
    """The algorithm, whose runs report against the budget."""
    with told_of("privacy"):
        return privacy.promised(problem, algorithm, **dict(table))


def require_kept(
    table: PrivacyTable, problem: Problem, algorithm: Any, plan: dict[str, Any]
) -> None:
    """Refuse a run that would cost more than the budget."""
    told = privacy.forecast(problem, algorithm, delta=table.delta, **plan)
    scope = {"observer": table.observer, "unit": table.unit}
    privacy.require_kept(told, table.epsilon, **scope)
