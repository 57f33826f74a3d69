"""Several seeds as one: statistics of those that have a value, and how many have none.

A median that is silent about the seeds that diverged would be biased, and one that
counts them would be no number: what is shown is told with `told`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def of_seeds(
    table: np.ndarray, statistic: Callable[..., np.ndarray] = np.nanmedian
) -> np.ndarray:
    """A statistic over the lines of a table, of the finite values in every column.

    >>> of_seeds(np.array([[4.0, np.nan], [2.0, 1.0], [3.0, 7.0]]))
    array([3., 4.])
    """
    if len(table) == 1:
        return table[0]
    values = np.where(np.isfinite(table), table, np.nan)
    known = ~np.isnan(values).all(axis=0)
    found = np.full(table.shape[1], np.nan)
    found[known] = statistic(values[:, known], axis=0)
    return found


def astray(table: np.ndarray) -> np.ndarray:
    """Which of several seeds diverged: those without a number that others have.

    After the last number of all, those that had some have diverged too; a metric that
    nobody ever has tells of nothing.
    """
    known = np.isfinite(table)
    if len(table) == 1 or not known.any():
        return np.zeros(len(table), bool)
    late = ~known[:, -1]
    return late | (~known & known.any(axis=0)).any(axis=1)


def told(lost: np.ndarray) -> str:
    """How many seeds diverged, in words; nothing where none did.

    >>> told(np.array([True, False, False])), told(np.array([False]))
    ('1 of 3 seeds diverged', '')
    """
    return f"{lost.sum()} of {len(lost)} seeds diverged" if lost.any() else ""
