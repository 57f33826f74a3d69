"""What agents say of rows, each by its own model, where these are of several kinds."""

from __future__ import annotations

from typing import Any

import jax
from jax import Array

from tacita import check
from tacita.problem.model.per_agent import PerAgent, kinds_of
from tacita.problem.population import Population
from tacita.problem.problem import Problem


def classes_in_common(problem: Problem) -> int | None:
    """How many classes all agents predict; None where all predict numbers."""
    found = {one.classes for one in kinds_of(problem.model)}
    if len(found) > 1:
        check.refuse(
            "some agents predict a class and others a number, which nothing sums up; "
            "look at them apart, or at tacita.trust.fairness.spread of their losses"
        )
    return found.pop()


def said(population: Population, models: Array, x: Array, axis: Any = 0) -> Array:
    """What every agent's model says of rows: its own, or with axis=None the same."""
    model, kinds = population.model, population.rows.kind
    if kinds is None:
        return jax.vmap(model.predict, (0, axis))(models, x)
    assert isinstance(model, PerAgent)

    def one(kind: Array, w: Array, rows: Array) -> Array:
        return model.of(kind).predict(w, rows)

    return jax.vmap(one, (0, 0, axis))(kinds, models, x)
