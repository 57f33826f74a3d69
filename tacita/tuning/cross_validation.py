"""Cross-validation: every node's rows are held out once, fold by fold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tacita import check
from tacita.problem.held_out import folds as parted
from tacita.problem.held_out import node_losses
from tacita.problem.problem import Problem
from tacita.tuning.validate import NodeErrors, models_of, parameters_per_row


def cross_validate(
    problem: Problem,
    train: Callable[[Problem], Any],
    *,
    folds: int = 5,
    baseline: Any = None,
    baseline_name: str = "baseline",
    factor: float = 1.5,
    seed: int = 0,
) -> NodeErrors:
    """Training and validation error of every node, each the mean over the folds.

    Section 2.4 of A. Jung, "Federated Learning: From Theory to Practice", without the
    luck of a single split. The losses are of rows without noise: nothing of them is for
    others' eyes.

    Args:
        problem: Whose rows are parted.
        train: From a problem to a run, every node's model (N, d), or one for all (d,).
        folds: How many.
        baseline: An error to compare with: a number, or one per node.
        baseline_name: What it is.
        factor: From here on one error counts as much larger than another.
        seed: Of the draw of the folds.

    >>> from tacita.problem import synthetic
    >>> told = cross_validate(synthetic.linear(agents=3), lambda p: p.solve(), folds=4)
    >>> told.validation.shape
    (3,)
    """
    if not callable(train):
        check.refuse("expected train a function of a problem, such as lambda p: ...")
    check.count(2, folds=folds)
    errors = []
    for part, held in parted(problem, folds, seed):
        models = train(part)
        w = models_of(part, models)
        errors.append((node_losses(part, w), node_losses(held, w)))
    training, validation = _means(np.array(errors))
    return NodeErrors(
        ids=problem.ids,
        train=training,
        validation=validation,
        baseline=baseline,
        baseline_name=baseline_name,
        graph=problem.graph,
        factor=factor,
        parameters_per_row=parameters_per_row(problem),
    )


def _means(errors: np.ndarray) -> np.ndarray:
    """Over the folds in which a node had rows, (2, N) of (folds, 2, N)."""
    known = ~np.isnan(errors)
    sums = np.where(known, errors, 0).sum(axis=0)
    counts = known.sum(axis=0)
    return sums / np.where(counts > 0, counts, np.nan)
