"""The features of a table: what can be read as numbers, and what is refused."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import numpy as np

from tacita import check
from tacita.encoding import Encoding


def read(x: Any, name: str) -> np.ndarray:
    """Rows of finite numbers, from an array or a pandas table; true is 1, false 0."""
    if hasattr(x, "toarray"):
        check.refuse(f"{name} is a sparse matrix; pass {name}.toarray()")
    features = _of_table(x, name) if _is_table(x) else _of_array(x, name)
    if features.ndim < 2:
        check.refuse(f"expected {name} with rows and columns, got {features.shape}")
    if features.shape[0] == 0:
        check.refuse(f"{name} has no rows; give at least one, to every agent")
    if 0 in features.shape:
        check.refuse(f"{name} has no columns; give at least one feature")
    if np.iscomplexobj(features):
        check.refuse(
            f"expected {name} real, got dtype {features.dtype}; put the real and the "
            "imaginary parts into columns of their own"
        )
    return np.asarray(check.finite(**{name: features}))


def by_name(x: Any, encoding: Encoding | None, name: str) -> Any:
    """Further rows: a pandas table's columns are found by their names, as in training.

    An array has no names: its columns are the features, in their order.
    """
    if encoding is None or not _is_table(x):
        return x
    return encoding.encode(x, name)


def encoding_of(x: Any) -> Encoding | None:
    """That the columns of a pandas table are the features; None of an array."""
    return Encoding.of_numbers(x.columns) if _is_table(x) else None


def same_rows(tables: Mapping[str, Any]) -> None:
    """Refuse pandas tables whose rows, by their indices, are not the same in order."""
    named = {name: x for name, x in tables.items() if _has_index(x)}
    for name, x in named.items():
        first = next(iter(named))
        ours, theirs = x.index, named[first].index
        if len(ours) == len(theirs) and not ours.equals(theirs):
            pairs = enumerate(zip(ours.tolist(), theirs.tolist(), strict=True))
            other = ((row, pair) for row, pair in pairs if not _is_same(*pair))
            row, (mine, its) = next(other, (None, (None, None)))
            if row is None:
                continue
            check.refuse(
                f"rows of {name} are not those of {first}: row {row} is {mine!r}, and "
                f"there {its!r}; bring all tables into one order, or take "
                "reset_index(drop=True) if they are"
            )


def same_order(tables: Mapping[str, Any]) -> None:
    """Refuse pandas tables and columns of the same rows in another order.

    Their places count, as in scikit-learn; indices that name other rows mean nothing.
    """
    named = {name: x for name, x in tables.items() if _has_index(x)}
    for name, x in named.items():
        ours, (first, other) = x.index, next(iter(named.items()))
        if ours is other.index or len(ours) != len(other) or ours.equals(other.index):
            continue
        if ours.is_unique and not len(ours.symmetric_difference(other.index)):
            check.refuse(
                f"{name} has the rows of {first} in another order, by their indices; "
                f"bring them into one order, or pass {name}.to_numpy() if they are"
            )


def _is_same(one: Any, other: Any) -> bool:
    """Whether two names are of the same row; an empty one is as good as another."""
    return one == other or (one != one and other != other)


def with_ones(x: np.ndarray) -> np.ndarray:
    """The features with a last column of ones."""
    return np.concatenate([x, np.ones((*x.shape[:-1], 1), x.dtype)], axis=-1)


def clipped(x: np.ndarray, bound: float, kind: np.dtype) -> np.ndarray:
    """The rows in the problem's type, those longer than `bound` scaled down to it.

    None is refused, however long: that would tell of it.

    >>> short = clipped(np.array([[3.0, 4.0], [0.3, 0.4]]), 1.0, np.dtype(float))
    >>> short.round(6).tolist()
    [[0.6, 0.8], [0.3, 0.4]]
    """
    flat = x.reshape(len(x), -1).astype(np.float64)
    largest = np.abs(flat).max(axis=1, keepdims=True)
    # In units of the largest entry: squares of huge entries are not finite.
    units = flat / np.where(largest > 0, largest, 1.0)
    length = np.linalg.norm(units, axis=1, keepdims=True)
    # Rounding to the problem's type must not bring a row beyond the bound.
    bound = bound * (1 - 8 * float(np.finfo(kind).eps))
    with np.errstate(over="ignore"):
        long = length * largest > bound
    kept = np.where(long, units / np.where(long, length, 1.0) * bound, flat)
    return kept.astype(kind).reshape(x.shape)


def within(x: np.ndarray, bound: float | None, kind: np.dtype, name: str) -> np.ndarray:
    """Rows as the model takes them: in its type, and no longer than the bound."""
    return in_type(x, kind, name) if bound is None else clipped(x, bound, kind)


def in_type(values: np.ndarray, kind: np.dtype, name: str) -> np.ndarray:
    """Numbers in the problem's type; refused where they are too large for it."""
    with np.errstate(over="ignore"):
        made = values.astype(kind)
    if values.dtype == kind:
        return made
    too_large = ~np.isfinite(made)
    if too_large.any() and np.all(np.isfinite(values)):
        check.refuse(
            f"{name} has {values[too_large][0]:g}, too large for dtype {kind}; scale "
            "the features or take dtype='float64'"
        )
    return made


def _is_table(x: Any) -> bool:
    pandas = sys.modules.get("pandas")  # without it there is no table of pandas
    return pandas is not None and isinstance(x, pandas.DataFrame)


def _has_index(x: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(x, pandas.DataFrame | pandas.Series)


def _of_table(x: Any, name: str) -> np.ndarray:
    from pandas.api import types

    for label, column in x.items():
        number = types.is_numeric_dtype(column) or types.is_bool_dtype(column)
        if not number:
            check.refuse(
                f"column {label!r} of {name} is not of numbers but {column.dtype}; "
                "leave it out, or turn it into numbers, with pandas.get_dummies for "
                "example"
            )
        if column.isna().any():
            check.refuse(
                f"column {label!r} of {name} has {int(column.isna().sum())} NaN or "
                "empty cells; fill them in or drop the rows"
            )
    whole = np.asarray(x)
    # Columns of different kinds, and pandas' own kinds, come as objects.
    return whole.astype(float) if whole.dtype.kind in "Ob" else whole


def _of_array(x: Any, name: str) -> np.ndarray:
    check.no_masks(name, x)
    try:
        array = np.asarray(x)
    except ValueError:
        check.refuse(f"expected {name} a table, got rows of different lengths")
    if array.dtype == object and array.ndim == 2:
        for place, column in enumerate(array.T):
            strange = [v for v in column if not _is_real(v)]
            if strange:
                check.refuse(
                    f"column {place} of {name} holds {strange[0]!r}, which is no "
                    "number; fill it in, turn it into a number or leave it out"
                )
        return array.astype(float)
    return array.astype(float) if array.dtype == bool else array


def _is_real(value: Any) -> bool:
    return isinstance(value, int | float | np.number | np.bool_)
