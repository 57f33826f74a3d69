"""The table [privacy] of a run file: a budget that a run is held to."""

from __future__ import annotations

from typing import Any

from tacita import privacy
from tacita.job.calls import told_of
from tacita.job.run_file import PrivacyTable
from tacita.privacy.letters.question import ARRIVALS_DRAWN
from tacita.problem import Problem
from tacita.runtime import Pace
from tacita.trace import PrivacyReport


def held_to(table: PrivacyTable, problem: Problem, algorithm: Any) -> Any:
    """The algorithm, whose runs report against the budget."""
    with told_of("privacy"):
        return privacy.promised(problem, algorithm, **dict(table))


def require_kept(table: PrivacyTable, told: PrivacyReport) -> None:
    """Refuse a run that would cost more than the budget."""
    scope = {"observer": table.observer, "unit": table.unit}
    privacy.require_kept(told, table.epsilon, **scope)


def forecast(
    problem: Problem,
    algorithm: Any,
    delta: float | None,
    asynchronous: Any,
    plan: dict[str, Any],
) -> PrivacyReport:
    """What a run would cost; of one that waits for nobody, what it rests on too."""
    assumed = (ARRIVALS_DRAWN,) if isinstance(asynchronous, Pace) else ()
    return privacy.forecast(problem, algorithm, delta=delta, assumed=assumed, **plan)
