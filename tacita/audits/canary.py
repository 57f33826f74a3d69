"""Canaries: two data sets that differ in one record, as far as a record can differ."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from tacita import check
from tacita.privacy.clipped import clipping_of
from tacita.privacy.letters.question import longest_row
from tacita.privacy.scope import Relation, word
from tacita.problem.features import clipped
from tacita.problem.model.linear import Linear, Logistic, Softmax
from tacita.problem.problem import Problem
from tacita.trees import in_double_precision


@dataclass(frozen=True)
class Canary:
    """One place in the data, and the two records that are put there in turn.

    Attributes:
        record: Features and label of the record in the data D.
        neighbour: Those of the record that replaces it in the neighbour D'.
        agent: The number of the agent that holds it.
        row: Which of the agent's rows it is.
    """

    record: tuple[Any, Any]
    neighbour: tuple[Any, Any]
    agent: int = 0
    row: int = 0


@in_double_precision
def with_record(
    problem: Problem, agent: int, row: int, record: tuple[Any, Any]
) -> Problem:
    """The same problem with one row of one agent replaced."""
    agent, row = check.count(0, agent=agent), check.count(0, row=row)
    if agent >= problem.n_agents or row >= problem.counts[agent]:
        check.refuse(f"there is no row {row} of agent number {agent} to replace")
    population = problem.population
    rows = population.rows
    given = np.asarray(record[0], rows.x.dtype)
    if problem.bound is not None:  # as the problem does with all its rows
        given = clipped(given[None], problem.bound, problem.dtype)[0]
    features = jnp.asarray(given)
    place = (agent, slice(None), row) if population.by_feature else (agent, row)
    check.shape(tuple(rows.x[place].shape), record=features)
    changed = rows._replace(
        x=rows.x.at[place].set(features), y=rows.y.at[agent, row].set(record[1])
    )
    return dataclasses.replace(
        problem, population=dataclasses.replace(population, rows=changed)
    )


def neighbours(problem: Problem, canary: Canary) -> tuple[Problem, Problem]:
    """The data D and its neighbour D'."""
    return (
        with_record(problem, canary.agent, canary.row, canary.record),
        with_record(problem, canary.agent, canary.row, canary.neighbour),
    )


def worst_canary(
    problem: Problem,
    algorithm: Any,
    relation: str = Relation.REPLACE_ONE,
    agent: int = 0,
) -> Canary:
    """Records whose gradients point in opposite directions and are clipped.

    Under `add_remove` the neighbour's record is empty: a row of zeros.

    Features lie along one axis. A linear model is asked for an unreachable label, up
    or down; a logistic one for either label, with features of four times the clipping
    norm, which stay clipped longest; a softmax one sees the features with either sign.
    """
    model, clipped = problem.model, clipping_of(algorithm.oracle)
    norm = None if clipped is None else float(np.max(np.asarray(clipped.norm)))
    if not isinstance(model, Linear | Logistic | Softmax):
        check.refuse(
            "no worst record is known for this model; give canary=Canary(record=(x, y),"
            " neighbour=(x, y))"
        )
    length = longest_row(problem) if norm is None else max(4 * norm, 1e-9)
    features = np.zeros(model.features)
    features[0] = length
    record, neighbour = _records(problem, features, norm)
    if word(Relation, relation) == Relation.ADD_REMOVE:
        neighbour = (0 * features, record[1])
    return Canary(record, neighbour, agent)


def _records(problem: Problem, features: np.ndarray, norm: float | None) -> Any:
    model = problem.model
    if isinstance(model, Linear):
        largest = float(np.abs(np.asarray(problem.population.rows.y)).max())
        reach = 0.0 if norm is None else 100 * norm / float(features[0])
        label = max(largest, reach)
        return (features, label), (features, -label)
    if isinstance(model, Logistic):
        return (features, 1.0), (features, -1.0)
    return (features, 0), (-features, 0)
