"""Giving columns to parties: every party knows something else of the same people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tacita.check import count, nearest, refuse, shape


def split_vertical(
    x: Any,
    parties: int | Sequence[Sequence[int | str]] | Mapping[str, Sequence[int | str]],
    *,
    feature_names: Sequence[str] | None = None,
) -> list[np.ndarray]:
    """Give the columns to parties; every column to exactly one.

    Args:
        x: Features, `(rows, features)`.
        parties: How many parties (equal blocks of neighbouring columns), or the
            columns of each party, by number or (with `feature_names`) by name.
        feature_names: One name per column.

    Returns:
        One block of columns per party, rows in the same order in all of them.

    >>> [block.shape for block in split_vertical(np.ones((4, 5)), 2)]
    [(4, 3), (4, 2)]
    """
    table = shape((None, None), x=np.asarray(x))
    width = table.shape[1]
    if isinstance(parties, int | np.integer):
        if count(parties=parties) > width:
            refuse(f"expected parties <= {width}, the columns, got parties={parties}")
        blocks = np.array_split(np.arange(width), parties)
    else:
        sets = parties.values() if isinstance(parties, Mapping) else parties
        blocks = [_columns(chosen, width, feature_names) for chosen in sets]
    owners = np.bincount(np.concatenate([*blocks, []]).astype(int), minlength=width)
    if not all(map(len, blocks)):
        refuse("a party holds no column; give it one or leave it out")
    for wrong, what in ((owners > 1, "several parties"), (owners == 0, "no party")):
        if wrong.any():
            where = int(np.argmax(wrong))
            name = repr(feature_names[where]) if feature_names is not None else where
            refuse(f"column {name} belongs to {what}; give each column to exactly one")
    return [table[:, block] for block in blocks]


def _columns(
    chosen: Sequence[int | str], width: int, names: Sequence[str] | None
) -> np.ndarray:
    """Column numbers from numbers or names."""
    found = []
    for column in chosen:
        if isinstance(column, str):
            if names is None:
                refuse(f"column {column!r} is a name; pass feature_names as well")
            if column not in names:
                refuse(f"unknown column {column!r}; {nearest(column, names)}")
            column = list(names).index(column)
        if not 0 <= column < width:
            refuse(f"expected column from 0 to {width - 1}, got column={column}")
        found.append(int(column))
    return np.array(found, int)
