"""The privacy of an estimator: what is set for a budget, refused, or stated."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tacita import check
from tacita.privacy import private
from tacita.privacy.blind import looks_at_rows
from tacita.privacy.inputs import inside_unit
from tacita.privacy.scope import Scope
from tacita.problem import Problem
from tacita.trace import PrivacyReport

#: What an estimator cannot see and its epsilon does not cover.
_BEFORE = (
    "what happened to the rows before fit (scaling, filling of gaps, choice of "
    "columns, as in the steps of a pipeline) and how the settings were chosen did not "
    "look at these rows: the guarantee does not cover it"
)
_AGAIN = (
    "these rows are fitted once: every further fit, as in a cross-validation or a "
    "search, spends as much again"
)


def check_words(estimator: Any) -> None:
    """Refuse what no private fit could take, also where no epsilon is given yet."""
    Scope(estimator.observer, estimator.unit)
    if estimator.delta is not None:
        inside_unit(delta=estimator.delta)


def private_for(estimator: Any, problem: Problem, algorithm: Any) -> Any:
    """The algorithm with noise for the estimator's budget."""
    check.given(delta=estimator.delta)
    if looks_at_rows(algorithm, problem):
        check.refuse(
            f"epsilon is set, and step sizes of {type(algorithm).__name__} would be "
            "read off the rows, which no epsilon covers; give bound=, a public number "
            "to which longer rows are cut, or an algorithm with its step_size"
        )
    return private(
        problem,
        algorithm,
        epsilon=estimator.epsilon,
        delta=estimator.delta,
        observer=estimator.observer,
        unit=estimator.unit,
        rounds=estimator.rounds,
        participation=estimator.participation,
    )


def refuse_learnt_scale(estimator: Any) -> None:
    """Refuse scales that are computed from rows where an epsilon is promised."""
    if estimator.epsilon is not None:
        check.refuse(
            f"scale={estimator.scale!r} is computed from the rows, which no epsilon "
            "covers; give scale=(centre, spread), numbers that were public before, or "
            "scale=None with a bound="
        )


def public_scale(scale: Any) -> dict[str, Any]:
    """Numbers that somebody knew: fields of an encoding."""
    if scale is None:
        return {}
    if not isinstance(scale, tuple | list) or len(scale) != 2:
        check.refuse(
            "expected scale 'standard', 'minmax', 'unit', or (centre, spread) with one "
            f"number per column each, got scale={scale!r}"
        )
    centre, spread = (np.asarray(check.finite(scale=part), float) for part in scale)
    check.positive(spread=spread)
    return {"centre": tuple(centre.tolist()), "spread": tuple(spread.tolist())}


def stated(report: PrivacyReport | None) -> PrivacyReport:
    """The report of a fit: its epsilons hold under what an estimator cannot see."""
    if report is None:
        check.refuse("the run has no report of privacy; give epsilon and delta")
    unseen = tuple(
        {"statement": statement, "status": "believed"}
        for statement in (_BEFORE, _AGAIN)
    )
    rows = tuple(
        row
        if row.epsilon is None
        else dataclasses.replace(row, assumptions=(*row.assumptions, *unseen))
        for row in report.rows
    )
    return dataclasses.replace(report, rows=rows)
