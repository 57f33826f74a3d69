"""The cells of a table as features of a model, or a refusal that names the cell."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tacita.check import nearest, refuse

if TYPE_CHECKING:
    from tacita.encoding.encoding import Column

#: Levels that a refusal lists.
LISTED = 20
#: The largest number that a column may hold: sums of squares of more are infinite.
LARGEST = 1e150


def features(
    column: Column, values: Any, told: str, drop_first: bool, unseen_zeros: bool
) -> list[np.ndarray]:
    """The features of one column of a table.

    Args:
        column: What it has to be like.
        values: The column, of pandas.
        told: What the table is called in refusals.
        drop_first: Whether zeros stand for the first level of a category.
        unseen_zeros: Whether a value that is none of the levels becomes zeros; else it
            is refused.
    """
    if column.levels is None:
        return [without_gaps(column, _numbers(values, told), told)]
    in_words = any(isinstance(level, str) for level in column.levels)
    if in_words:
        found = np.array([word(value) for value in values.tolist()], object)
    else:
        found = _numbers(values, told)
    empty = np.asarray(values.isna())
    if empty.any():
        if column.filled is None:
            _refuse_gaps(column.name, empty, told)
        found = np.where(empty, column.filled, found)
    if not unseen_zeros:
        _check_levels(column, found.tolist(), told)
    kept = column.levels[1 if drop_first else 0 :]
    return [(found == level).astype(float) for level in kept]


def without_marks(values: Any, marks: Sequence[Any]) -> Any:
    """A column of pandas without the cells that say that they are empty.

    A mark that is a number, such as "-99", is found among numbers too, as it is where a
    text file is read: how a table came here must not decide what is empty.
    """
    from pandas.api import types  # slow to import, and arrays do without

    if not marks or types.is_bool_dtype(values):
        return values
    numbers = marked_numbers(marks)
    if types.is_numeric_dtype(values):
        return values.mask(values.isin(numbers)) if numbers else values
    words, cells = {str(mark) for mark in marks}, values.astype(object)
    return values.mask(cells.map(lambda cell: _is_marked(cell, words, numbers)))


def _is_marked(cell: Any, words: Collection[str], numbers: Collection[float]) -> bool:
    if isinstance(cell, str):
        return cell in words
    return isinstance(cell, Real) and not isinstance(cell, bool) and cell in numbers


def marked_numbers(marks: Sequence[Any]) -> list[float]:
    """Those of the marks of an empty cell that are numbers.

    >>> marked_numbers(["?", "-99", 0])
    [-99.0, 0.0]
    """
    found = _read_numbers([str(mark) for mark in marks]) if marks else np.empty(0)
    return found[~np.isnan(found)].tolist()


def without_gaps(column: Column, values: np.ndarray, told: str) -> np.ndarray:
    """Numbers with their gaps filled; refused where nothing says with what."""
    empty, endless = np.isnan(values), np.isinf(values)
    if endless.any():
        refuse(
            f"column {column.name!r} of {told} is infinite in data row "
            f"{int(np.argmax(endless)) + 1}; correct the cell or leave the row out"
        )
    if not empty.any():
        return values
    if column.filled is None:
        _refuse_gaps(column.name, empty, told)
    return np.where(empty, float(column.filled), values)


def _refuse_gaps(name: str, empty: np.ndarray, told: str) -> NoReturn:
    refuse(
        f"column {name!r} of {told} is empty in {int(empty.sum())} rows, the first is "
        f"data row {int(np.argmax(empty)) + 1}; fill the cells or leave the rows out"
    )


def _check_levels(column: Column, found: list[Any], told: str) -> None:
    levels = column.levels or ()
    known = set(levels)
    for row, value in enumerate(found):
        if value not in known:
            hint = nearest(value, [str(level) for level in levels[:LISTED]])
            refuse(
                f"column {column.name!r} of {told} holds {value!r} in data row "
                f"{row + 1}, which the model never saw; {hint}; correct the cell or "
                "leave the row out"
            )


def word(value: Any) -> str:
    """A cell as text; a whole number has no decimal point, as in a file.

    >>> word(3.0), word("3.0"), word(0.5)
    ('3', '3.0', '0.5')
    """
    real = isinstance(value, float | np.floating) and math.isfinite(value)
    return str(int(value)) if real and value == int(value) else str(value)


def _numbers(values: Any, told: str) -> np.ndarray:
    """The cells as numbers, NaN where they are empty."""
    from pandas.api import types  # slow to import, and arrays do without

    where = f"column {values.name!r} of {told}"
    if types.is_datetime64_any_dtype(values):
        refuse(f"{where} is a date; the model expects a number")
    if types.is_complex_dtype(values):
        refuse(f"{where} holds complex numbers; the model expects real ones")
    if types.is_numeric_dtype(values) or types.is_bool_dtype(values):
        return values.to_numpy(float, na_value=np.nan)
    empty = np.asarray(values.isna())
    cells = [float(v) if isinstance(v, bool) else v for v in values[~empty].tolist()]
    words = [str(cell).strip() for cell in cells]
    found = _read_numbers(words)
    if np.isnan(found).any():
        place = int(np.argmax(np.isnan(found)))
        row = int(np.flatnonzero(~empty)[place]) + 1
        _refuse_word(where, words[place], row)
    numbers = np.full(len(empty), np.nan)
    numbers[~empty] = found
    return numbers


def _refuse_word(where: str, word: str, row: int) -> NoReturn:
    if not np.isnan(_read_numbers([word.replace(",", "")])).any():
        refuse(
            f"{where} holds the number {word!r} with a comma in data row {row}; write "
            "it with a decimal point and without commas"
        )
    refuse(
        f"{where} holds the text {word!r} in data row {row}, where the model expects a "
        "number; correct the cell or leave the row out"
    )


def _read_numbers(words: list[str]) -> np.ndarray:
    import pandas as pd

    read = pd.to_numeric(pd.Series(words, dtype=object), errors="coerce")
    return np.asarray(read, float)
