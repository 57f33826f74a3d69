"""Which rows are kept back for testing."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacita.check import between, refuse
from tacita.data.splits import generator


def hold_out_rows(groups: Any, share: float, seed: int) -> np.ndarray:
    """Mark a share of the rows of every group, drawn at random.

    Args:
        groups: The group (agent, class) of each row; the share is taken of each.
        share: Between 0 and 1; 0 marks nothing.
        seed: Of the draw.

    Returns:
        True for test rows. A group always keeps one row for training.

    >>> int(hold_out_rows(np.zeros(10), 0.3, seed=0).sum())
    3
    """
    check_share(share)
    random = generator(seed)
    codes = np.unique(groups, return_inverse=True)[1]
    test = np.zeros(len(codes), bool)
    for group in range(codes.max() + 1):
        rows = random.permutation(np.flatnonzero(codes == group))
        test[rows[: min(round(share * len(rows)), len(rows) - 1)]] = True
    return test


def hold_out_groups(groups: Any, share: float, seed: int) -> np.ndarray:
    """Mark all rows of a share of the groups: how well do new agents fare?"""
    check_share(share)
    levels, codes = np.unique(groups, return_inverse=True)
    chosen = generator(seed).permutation(len(levels))
    return np.isin(codes, chosen[: min(round(share * len(levels)), len(levels) - 1)])


def hold_out_last(time: Any, share: float) -> np.ndarray:
    """Mark the last rows in time: how well is the future told?

    Args:
        time: The moment of each row, in anything that sorts. Rows of the same moment
            stay together, and the first moment is never marked.
        share: Of the rows; the border between moments that comes nearest is taken.

    >>> hold_out_last([3, 1, 2, 3, 4], 0.5).tolist()
    [True, False, False, True, True]
    """
    check_share(share)
    _, codes, sizes = np.unique(
        np.asarray(time), return_inverse=True, return_counts=True
    )
    earlier = np.cumsum(sizes)  # rows before each border, the last one: all rows
    border = np.argmin(np.abs(earlier - (1 - share) * len(codes)))
    return codes > border


def check_share(share: float) -> float:
    """Refuse a share of test rows outside [0, 1)."""
    if share is None or between(0.0, 1.0)(test_share=share) == 1.0:
        refuse(f"expected test_share in [0, 1), got test_share={share}")
    return share
