"""Canaries: two data sets that differ in one record, as far as a record can differ."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
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
from tacita.trees import in_double_precision, tree_rows

#: How many times a label exceeds what its gradient is clipped to.
_FAR = 1e9


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
    row: int = 0,
    direction: Any = None,
) -> Canary:
    """Records whose gradients point in opposite directions and are clipped.

    Under `add_remove` the neighbour's record is empty: a row of zeros.

    Features lie along one direction, by default the first axis. A linear model is asked
    for an unreachable label, up or down; a logistic one for either label, with features
    of four times the clipping norm, which stay clipped longest; a softmax one sees the
    features with either sign.
    """
    norm = _norm(problem, algorithm)
    length = longest_row(problem) if norm is None else max(4 * norm, 1e-9)
    features = length * _unit(problem, direction)
    record, neighbour = _records(problem, features, norm)
    if word(Relation, relation) == Relation.ADD_REMOVE:
        neighbour = (0 * features, record[1])
    return Canary(record, neighbour, agent, row)


def quiet_canary(
    problem: Problem,
    algorithm: Any,
    relation: str = Relation.REPLACE_ONE,
    agent: int = 0,
    row: int = 0,
    direction: Any = None,
) -> Canary:
    """Records whose gradients are not clipped and turn with the model.

    What they change differs from round to round, which noise used twice cannot hide.
    """
    norm = _norm(problem, algorithm)
    bound = 1.0 if norm is None else norm
    one = _unit(problem, direction)
    # Perpendicular, or nothing where there is one feature only.
    other = np.roll(one, 1) * np.resize([1.0, -1.0], len(one))
    other = other - (other @ one) * one
    other /= max(float(np.linalg.norm(other)), 1e-12)
    if word(Relation, relation) == Relation.ADD_REMOVE:
        other = 0 * one
    # At w = 0 gradients have at most half the clipping norm.
    length, label = {
        Linear: (math.sqrt(bound) / 2, math.sqrt(bound) / 2),
        Logistic: (bound, 1.0),
        Softmax: (bound / 2, 0),
    }[type(problem.model)]
    return Canary((length * one, label), (length * other, label), agent, row)


#: Makes a canary of a problem, an algorithm, a relation, an agent, a row, a direction.
Kind = Callable[..., Canary]


def spread_canaries(
    problem: Problem,
    algorithm: Any,
    relation: str,
    agent: int,
    kind: Kind,
    groups: int,
    rng: np.random.Generator,
    along: np.ndarray | None = None,
) -> list[Canary]:
    """Canaries in as many different rows as there are, in random directions.

    Or all `along` one.
    """
    _norm(problem, algorithm)  # refuses models whose worst record is not known
    if not 0 <= agent < problem.n_agents or problem.counts[agent] == 0:
        check.refuse(f"there is no row of agent number {agent} to replace")
    count = int(problem.counts[agent])
    rows = np.concatenate([rng.permutation(count) for _ in range(-(-groups // count))])
    directions = rng.normal(size=(groups, problem.model.features))  # pyright: ignore
    if along is not None:
        directions[:] = along
    return [
        kind(problem, algorithm, relation, agent, int(row), direction)
        for row, direction in zip(rows[:groups], directions, strict=True)
    ]


def mean_gradient(problem: Problem, agent: int) -> np.ndarray:
    """Of an agent at the start, along features; zero where scores are several."""
    population = problem.population
    local = population.local(tree_rows(population.rows, agent))
    start = jnp.asarray(problem.start)
    found = np.asarray(local.grad(start if start.ndim == 1 else start[agent]))
    several = found.shape != (problem.model.features,)  # pyright: ignore
    return np.zeros(problem.model.features) if several else found  # pyright: ignore


def _norm(problem: Problem, algorithm: Any) -> float | None:
    if not isinstance(problem.model, Linear | Logistic | Softmax):
        check.refuse(
            "no worst record is known for this model; give canary=Canary(record=(x, y),"
            " neighbour=(x, y))"
        )
    clipped = clipping_of(algorithm.oracle)
    return None if clipped is None else float(np.max(np.asarray(clipped.norm)))


def _unit(problem: Problem, direction: Any) -> np.ndarray:
    features = np.zeros(problem.model.features)  # pyright: ignore
    if direction is None:
        features[0] = 1.0
        return features
    features[:] = direction
    return features / np.linalg.norm(features)


def _records(problem: Problem, features: np.ndarray, norm: float | None) -> Any:
    model = problem.model
    if isinstance(model, Linear):
        largest = float(np.abs(np.asarray(problem.population.rows.y)).max())
        length = float(np.linalg.norm(features))
        # Noise moves models far: out of reach means out of any.
        reach = 0.0 if norm is None else _FAR * norm / length
        label = max(largest, reach)
        return (features, label), (features, -label)
    if isinstance(model, Logistic):
        return (features, 1.0), (features, -1.0)
    return (features, 0), (-features, 0)
