"""How sure a prediction is: what the models of the nodes say of the same row."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from tacita import check
from tacita.problem.problem import Problem
from tacita.trees import in_double_precision


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
    models = check.shape((None, problem.dim), models=np.asarray(models))
    rows = jnp.asarray(np.asarray(x), problem.dtype)
    said = np.asarray(jax.vmap(lambda w: problem.model.predict(w, rows))(models))
    if problem.model.classes is None:
        return Predictions(said.mean(axis=0), said.std(axis=0))
    names = np.unique(said)
    votes = np.stack([(said == name).mean(axis=0) for name in names])
    return Predictions(names[votes.argmax(axis=0)], 1 - votes.max(axis=0))
