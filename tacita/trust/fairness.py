"""Whom a model serves: how losses spread over agents, how groups are treated.

A. Jung, "Federated Learning: From Theory to Practice", 8.5. Losses and rates here are
computed from rows without noise: they are for whoever holds the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from tacita import check
from tacita.encoding import CHANGED_FEATURES, Origin
from tacita.privacy.features import Projection
from tacita.problem.held_out import with_counts
from tacita.problem.model.wrapped import EveryValue
from tacita.problem.problem import Problem
from tacita.trees import double_precision, replace

#: What is said of features that were changed by what their rows have shown.
_OF_ROWS = "features: changed by a projection that was computed from the rows"


def spread(losses: Any) -> dict[str, float]:
    """How unevenly losses fall on agents.

    Returns:
        `mean`, `std`, `worst`, `best`; `worst_tenth` and `best_tenth`, means over the
        tenth of the agents that fares worst or best, at least one; `gini`, 0 where all
        are alike and towards 1 where one bears all; `jain`, 1 where all are alike and
        1/n where one bears all. The last two are for losses >= 0, not all zero; NaN
        otherwise.

    >>> told = spread([1.0, 1.0, 4.0])
    >>> told["mean"], told["worst"], round(told["gini"], 4), round(told["jain"], 4)
    (2.0, 4.0, 0.3333, 0.6667)
    """
    values = np.sort(np.asarray(check.finite(losses=losses), float).ravel())
    n = check.count(agents=len(values))
    tenth = max(1, n // 10)
    mean, square = float(values.mean()), float(np.sum(values**2))
    # sum_ij |l_i - l_j| of sorted numbers is 2 sum_i (2 i - n - 1) l_i, i from 1.
    apart = float(np.sum((2 * np.arange(1, n + 1) - n - 1) * values))
    shares = values[0] >= 0 and square > 0
    return {
        "mean": mean,
        "std": float(values.std()),
        "worst": float(values[-1]),
        "best": float(values[0]),
        "worst_tenth": float(values[-tenth:].mean()),
        "best_tenth": float(values[:tenth].mean()),
        "gini": apart / (n**2 * mean) if shares else float("nan"),
        "jain": float(values.sum()) ** 2 / (n * square) if shares else float("nan"),
    }


def group_gaps(predicted: Any, truth: Any, group: Any) -> dict[str, float]:
    """How differently yes/no decisions fall on groups: the largest gap of any two.

    Args:
        predicted: 1 for yes, anything else for no, one per row.
        truth: The right answers, likewise.
        group: Whom the row is about; any labels, at least two different ones.

    Returns:
        `parity`: of the share of yes. `opportunity`: of the share of yes where yes is
        right. `odds`: the larger of that and the same where no is right. NaN where a
        group has no such row.

    >>> group_gaps([1, 1, 0, 0], [1, 0, 1, 0], ["a", "a", "b", "b"])
    {'parity': 1.0, 'opportunity': 1.0, 'odds': 1.0}
    """
    yes, right = (np.asarray(v).ravel() == 1 for v in (predicted, truth))
    names, of = np.unique(np.asarray(group).ravel(), return_inverse=True)
    if not len(yes) == len(right) == len(of):
        check.refuse(
            f"expected predicted, truth and group of one length, got {len(yes)}, "
            f"{len(right)} and {len(of)}"
        )
    if len(names) < 2:
        check.refuse(f"expected at least two groups, got {len(names)}")
    parity = _gap(yes, of, np.ones_like(yes), len(names))
    opportunity = _gap(yes, of, right, len(names))
    return {
        "parity": parity,
        "opportunity": opportunity,
        "odds": float(np.maximum(opportunity, _gap(yes, of, ~right, len(names)))),
    }


def _gap(yes: np.ndarray, of: np.ndarray, among: np.ndarray, groups: int) -> float:
    """The largest difference between groups of the share of yes among some rows."""
    asked = np.bincount(of[among], minlength=groups)
    said = np.bincount(of[among & yes], minlength=groups)
    if np.any(asked == 0):
        return float("nan")
    return float(np.ptp(said / asked))


def augmented(
    x: Any, y: Any, column: int, values: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Every row once for each value of a feature that should not matter.

    Returns:
        The rows, all of the first value first; their labels; their weights, which add
        up to one for each row given. A fit to them has nothing to learn from the
        column; what other columns tell of it stays.
    """
    x, y = np.asarray(x), np.asarray(y)
    values = np.asarray(values).ravel()
    check.count(2, values=len(values))
    if not 0 <= column < x.shape[-1]:
        check.refuse(f"expected column in 0..{x.shape[-1] - 1}, got column={column}")
    if np.issubdtype(x.dtype, np.number) and np.issubdtype(values.dtype, np.number):
        # Whole numbers would cut fractions off.
        x = x.astype(np.result_type(x, values))
    rows = np.tile(x, (len(values), 1))
    rows[:, column] = np.repeat(values, len(x))
    labels = np.tile(y, len(values))
    return rows, labels, np.full(len(labels), 1 / len(values))


def without_column(problem: Problem, column: int, values: Any) -> Problem:
    """The same problem in which a feature tells nothing, for any model.

    The loss of a row is its mean over all values of the feature, which is training on
    `augmented` rows. A row stays one row, so that a private run protects it as before.

    >>> from tacita.problem import synthetic
    >>> made = without_column(synthetic.linear(2, features=3, samples=5), 1, (-1, 1))
    >>> made.model.name
    'linear whatever feature 1 is'
    """
    features = problem.stacked()[0].shape[2:]
    if len(features) != 1 or not 0 <= column < features[0]:
        check.refuse(
            f"expected column a number below the {features[0]} features, got {column}"
        )
    listed = tuple(float(v) for v in np.asarray(values).ravel())
    check.count(2, values=len(listed))
    blind = EveryValue(problem.model, column, listed)
    return replace(problem, population=replace(problem.population, model=blind))


def with_features(problem: Problem, change: Callable[[Any], Any]) -> Problem:
    """The same problem with other features, test rows included.

    Such as those in which no linear reader finds the group, (184): then proxies of the
    group are gone too, which `without_column` leaves. A public bound on rows is given
    up, and models of them take rows that were changed in the same way, not those of a
    table. A map that was computed from the rows tells of them, and lets a record move
    all features: no epsilon of a private run covers that, and its report says so.

    Args:
        problem: Whose rows are changed.
        change: From rows, (rows, features), to as many with as many features.
    """
    x, y, counts = problem.stacked()
    flat = x.reshape(-1, x.shape[-1])
    made = np.asarray(change(flat), x.dtype)
    if made.shape != flat.shape:
        check.refuse(f"expected rows of shape {flat.shape}, got {made.shape}")
    real = np.arange(y.shape[1]) < counts[:, None]
    rows = np.where(real[..., None], made.reshape(x.shape), 0)
    population, test = problem.population, problem.population.test
    if test is not None:
        with double_precision():
            seen = jnp.asarray(np.asarray(change(np.asarray(test.x)), x.dtype))
        population = replace(population, test=test._replace(x=seen))
    learnt = isinstance(change, Projection) and change.of_rows
    origin = Origin((_OF_ROWS,), True) if learnt else Origin((CHANGED_FEATURES,))
    freed = replace(
        problem,
        population=population,
        bound=None,
        encoding=None,
        intercept=False,  # a column of ones was changed with the others
        before=problem.origin.joined(origin),
    )
    return with_counts(freed, rows, y, counts)
