"""A budget that a run has to keep: its report is held against it, its forecast too."""

from __future__ import annotations

from typing import Any

from tacita import check
from tacita.algorithm.wrapper import Wrapper
from tacita.privacy import inputs
from tacita.privacy.clipped import Clipped, Promise, clipping_of
from tacita.privacy.noisy import Noisy
from tacita.privacy.scope import Scope
from tacita.privacy.spend import known_observer
from tacita.privacy.statement import relation_of
from tacita.problem.problem import Problem
from tacita.problem.quantised import inside
from tacita.trace import PrivacyReport, exceeds, short
from tacita.trees import replace


def promised(
    problem: Problem,
    algorithm: Any,
    *,
    epsilon: float,
    delta: float,
    observer: str,
    unit: str = "record",
) -> Any:
    """The same algorithm, whose runs report against a budget; its noise stays.

    One without clipped gradients has no report, and is returned as it is.
    """
    epsilon, delta = inputs.positive(epsilon=epsilon), inputs.inside_unit(delta=delta)
    ready = algorithm.resolve(problem)
    scope = Scope(known_observer(ready, observer), unit, relation_of(ready))
    if clipping_of(algorithm.oracle) is None:
        return algorithm
    return _with(algorithm, Promise(epsilon=epsilon, delta=delta, scope=scope))


def _with(algorithm: Any, promise: Promise) -> Any:
    if isinstance(algorithm, Wrapper):
        return replace(algorithm, algorithm=_with(algorithm.algorithm, promise))

    def kept(oracle: Any) -> Any:
        if not isinstance(oracle, Noisy):
            return replace(oracle, promise=promise)
        assert isinstance(oracle.oracle, Clipped)
        return replace(oracle, oracle=replace(oracle.oracle, promise=promise))

    return replace(algorithm, oracle=inside(algorithm.oracle, kept))


def require_kept(planned: PrivacyReport, epsilon: float, **scope: str) -> None:
    """Refuse a plan that would cost more than a budget.

    Args:
        planned: What the run would cost, at the delta of the budget.
        epsilon: What it may cost.
        **scope: Against which `observer`, of which `unit`.
    """
    row = planned.row(**scope)
    if not exceeds(row, epsilon):
        return
    costs = "nothing bounds it" if row.epsilon is None else f"epsilon={row.epsilon:.4g}"
    check.refuse(
        f"what this run tells of one {row.unit} against the {row.observer} is beyond "
        f"the budget of epsilon={epsilon:g} at delta={short(row.delta)}: {costs} "
        f"({row.theorem}); have the noise set by tacita privacy plan, or change "
        "[privacy]"
    )
