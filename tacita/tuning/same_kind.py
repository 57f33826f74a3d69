"""Are rows alike and without order? Two tests of the i.i.d. assumption.

Section 2.4 of A. Jung, "Federated Learning: From Theory to Practice", asks for such
tests where a training error is far above the validation error. Both compare a number
with what it is after rows were exchanged at random, which changes nothing if they are
i.i.d.: the p-values are exact, whatever the rows' distribution.

Both look at rows without noise. A party may test its own; a p-value told to others is
computed from rows, and no part of any account.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from tacita import check

#: Of each side: distances between more rows are not held in memory.
_MOST_ROWS = 1000


def same_kind(first: Any, second: Any, draws: int = 999, seed: int = 0) -> float:
    """The p-value of "both sets are drawn from one distribution".

    By the energy distance 2 E|x - y| - E|x - x'| - E|y - y'| (Szekely and Rizzo), which
    is zero only for equal distributions; columns are scaled to one spread. Put labels
    beside features to test both. From sets of more than 1,000 rows so many are drawn.

    Args:
        first: Rows, (m, d).
        second: Other rows, (k, d).
        draws: How often rows are exchanged.
        seed: Of the draws.

    >>> rows = np.random.default_rng(0).normal(size=(40, 2))
    >>> same_kind(rows[:20], rows[20:] + 2.0) < 0.01
    True
    """
    dice = np.random.default_rng(check.count(0, seed=seed))
    check.count(draws=draws)
    one, other = (_rows(dice, first=first), _rows(dice, second=second))
    check.shape((None, one.shape[1]), second=other)
    both = _scaled(np.concatenate([one, other]))
    distance = cdist(both, both)
    m, k = len(one), len(other)
    side = np.concatenate([np.full(m, 1 / m), np.full(k, -1 / k)])
    sides = np.stack([side, *(dice.permutation(side) for _ in range(draws))])
    # The energy distance is -s' D s with s = 1/m on one side and -1/k on the other.
    energy = -np.sum((sides @ distance) * sides, axis=1)
    return _p_value(energy)


def without_order(rows: Any, draws: int = 999, seed: int = 0) -> float:
    """The p-value of "the order of the rows means nothing".

    By the squared distances between rows that follow each other, which are small where
    rows drift or come in runs, and large where they alternate.

    Args:
        rows: In the order in which they came, (m, d).
        draws: How often they are shuffled.
        seed: Of the draws.

    >>> without_order(np.arange(30.0)[:, None]) < 0.01
    True
    """
    dice = np.random.default_rng(check.count(0, seed=seed))
    check.count(draws=draws)
    table = _scaled(_table(rows=rows))
    orders = [
        np.arange(len(table)),
        *(dice.permutation(len(table)) for _ in "." * draws),
    ]
    steps = np.array([np.sum(np.diff(table[order], axis=0) ** 2) for order in orders])
    # The mean over all orders: both too near and too far is a long way off. One of the
    # draws themselves would stand nearer to them than to the order that came.
    mean = 2 * np.sum((table - table.mean(axis=0)) ** 2)
    return _p_value(np.abs(steps - mean))


def _table(**named: Any) -> np.ndarray:
    ((name, value),) = named.items()
    table = np.asarray(check.finite(**named), float)
    check.shape((None, None), **{name: table})
    if len(table) < 2:
        check.refuse(f"expected {name} with two rows or more, got {len(table)}")
    return table


def _rows(dice: np.random.Generator, **named: Any) -> np.ndarray:
    table = _table(**named)
    if len(table) <= _MOST_ROWS:
        return table
    return table[dice.choice(len(table), _MOST_ROWS, replace=False)]


def _scaled(rows: np.ndarray) -> np.ndarray:
    spread = rows.std(axis=0)
    return rows / np.where(spread > 0, spread, 1)


def _p_value(found: np.ndarray) -> float:
    """The first among all of them, ties against it; never zero."""
    return float(np.mean(found >= found[0] * (1 - 1e-12)))
