"""How sure a prediction is: what the models of the nodes say of the same row."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from tacita import check
from tacita.problem.problem import Problem
from tacita.trees import in_double_precision
from tacita.trust.own_models import classes_in_common, said


class Predictions(NamedTuple):
    """What nodes say of rows, each (rows,).

    Attributes:
        value: The mean of their numbers, or the class that most of them say.
        doubt: The standard deviation of their numbers, or the share that says another
            class.
    """

    value: np.ndarray
    doubt: np.ndarray


@in_double_precision
def predictions(problem: Problem, models: Any, x: Any) -> Predictions:
    """What every node's model says of rows, together with how much they differ.

    Where all nodes share one model they never differ: then the error on held-out rows
    is the measure of doubt.

    Args:
        problem: Whose model it is.
        models: Every node's, (N, d), such as `run.agents`.
        x: Rows, (m, features...).
    """
    own = problem.population.rows.kind is not None
    shape = (problem.n_agents if own else None, problem.dim)
    models = jnp.asarray(check.shape(shape, models=np.asarray(models)))
    rows = jnp.asarray(np.asarray(x), problem.dtype)
    classes = classes_in_common(problem)
    told = np.asarray(said(problem.population, models, rows, axis=None))
    if classes is None:
        return Predictions(told.mean(axis=0), told.std(axis=0))
    names = np.unique(told)
    votes = np.stack([(told == name).mean(axis=0) for name in names])
    return Predictions(names[votes.argmax(axis=0)], 1 - votes.max(axis=0))
