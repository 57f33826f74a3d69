"""How a row of a table becomes features: numbers, levels of text, gaps, scales.

A data set records here what it did to its columns, and a trained model carries it, so
that new rows are read as those were that it learnt from, or refused in one line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacita.check import nearest, one_of, refuse
from tacita.encoding.cells import (
    LISTED,
    features,
    marked_numbers,
    without_gaps,
    without_marks,
)
from tacita.encoding.origin import Origin

Level = str | float
# pandas ships no types of its own.
Frame = Any


@dataclass(frozen=True, kw_only=True)
class Column:
    """A column of a table.

    Attributes:
        name: What it is called.
        levels: Of a category: the values it may have, in the order of their features.
            None for a number.
        filled: What stands in for an empty cell; None refuses empty cells.
    """

    name: str
    levels: tuple[Level, ...] | None = None
    filled: Level | None = None

    def __post_init__(self) -> None:
        if self.levels is not None and len(set(self.levels)) < len(self.levels):
            refuse(f"column {self.name!r} has a level twice; name every level once")

    def as_dict(self) -> dict[str, Any]:
        """Plain data; what is not used is left out."""
        told: dict[str, Any] = {"name": self.name}
        if self.levels is not None:
            told["levels"] = list(self.levels)
        return told if self.filled is None else {**told, "filled": self.filled}


@dataclass(frozen=True, kw_only=True)
class Encoding:
    """From columns to features: categories as 0/1, gaps filled, then scaled.

    Attributes:
        columns: In the order of their features.
        drop_first: Whether zeros stand for the first level of a category.
        centre: Taken from every feature; None takes nothing.
        spread: Every feature is divided by it, infinity makes it 0; None leaves them.
        unit_rows: Whether every row is then brought to Euclidean norm 1.
        empty_words: Words that mean an empty cell, such as "?", and numbers, "-99".
        unseen: What a value that is none of its column's levels becomes: it is
            "refused", or "zeros" in all of that column's features.
        learnt: What of this was computed from rows, one sentence each. No epsilon of a
            run covers it.

    >>> age = Column(name="age", filled=40.0)
    >>> pet = Column(name="pet", levels=("cat", "dog"))
    >>> made = Encoding(columns=(age, pet), centre=(40.0, 0, 0), spread=(10.0, 1, 1))
    >>> made.feature_names
    ('age', 'pet=cat', 'pet=dog')
    >>> import pandas as pd
    >>> made.encode(pd.DataFrame({"pet": ["dog"], "age": [55]})).tolist()
    [[1.5, 0.0, 1.0]]
    """

    columns: tuple[Column, ...]
    drop_first: bool = False
    centre: tuple[float, ...] | None = None
    spread: tuple[float, ...] | None = None
    unit_rows: bool = False
    empty_words: tuple[str, ...] = ()
    unseen: str = "refused"
    learnt: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        one_of(("refused", "zeros"), unseen=self.unseen)
        seen: set[str] = set()
        for name in self.names:
            if name in seen:
                refuse(f"two columns are called {name!r}; give each its own name")
            seen.add(name)
        for what in ("centre", "spread"):
            numbers = getattr(self, what)
            if numbers is not None and len(numbers) != len(self.feature_names):
                refuse(
                    f"expected {what} one number per feature, "
                    f"{len(self.feature_names)}, got {len(numbers)}"
                )

    @classmethod
    def of_numbers(cls, names: Sequence[str], **options: Any) -> Encoding:
        """All columns are numbers; options are the other attributes."""
        return cls(columns=tuple(Column(name=str(name)) for name in names), **options)

    @property
    def names(self) -> tuple[str, ...]:
        """What the columns are called."""
        return tuple(column.name for column in self.columns)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """What the features are called: "column=level" of a category."""
        return tuple(
            name
            for column in self.columns
            for name in level_names(column.name, column.levels, self.drop_first)
        )

    @property
    def only_numbers(self) -> bool:
        """Whether there is no category among the columns."""
        return all(column.levels is None for column in self.columns)

    def surplus(self, rows: Any) -> list[str]:
        """The columns of a table that are not used."""
        used = set(self.names)
        given = [str(name) for name in getattr(rows, "columns", ())]
        return [name for name in given if name not in used]

    def encode(self, rows: Any, told: str = "the table") -> np.ndarray:
        """The features of new rows, shape (rows, features), in float64.

        Args:
            rows: A table with all the columns, in any order and among others; or an
                array that has just them, in their order.
            told: What the rows are called in refusals.
        """
        if not hasattr(rows, "columns"):
            array = np.asarray(rows)
            self._check_width(array, told)
            if array.dtype.kind in "biuf" and self.only_numbers:
                numbers = array.astype(float)
                numbers[np.isin(numbers, marked_numbers(self.empty_words))] = np.nan
                return self.scaled(self._filled(numbers, told))
            rows = _frame(array, self.names)
        frame = self._checked(rows, told)
        parts = [
            part
            for column in self.columns
            for part in self._features(column, frame[column.name], told)
        ]
        return self.scaled(np.stack(parts, axis=1))

    def _features(self, column: Column, cells: Any, told: str) -> list[np.ndarray]:
        zeros, cells = self.unseen == "zeros", without_marks(cells, self.empty_words)
        return features(column, cells, told, self.drop_first, zeros)

    @property
    def mixes_rows(self) -> bool:
        """Whether features of a row depend on other rows: scales or fills by rows."""
        scaled = self.centre is not None or self.spread is not None
        return bool(self.learnt) and (scaled or self.fills)

    @property
    def origin(self) -> Origin:
        """What it was made from."""
        return Origin(self.learnt, self.mixes_rows)

    @property
    def fills(self) -> bool:
        """Whether it has values for empty cells."""
        return any(column.filled is not None for column in self.columns)

    def scaled(self, x: np.ndarray) -> np.ndarray:
        """The features with their scales.

        >>> made = Encoding.of_numbers("ab", spread=(math.inf, 2.0))
        >>> made.scaled(np.array([[3.0, 4.0]])).tolist()
        [[0.0, 2.0]]
        """
        if self.centre is not None:
            x = x - np.asarray(self.centre)
        if self.spread is not None:
            x = x / np.asarray(self.spread)
        return unit_rows(x) if self.unit_rows else x

    def _check_width(self, array: np.ndarray, told: str) -> None:
        if array.ndim != 2 or array.shape[1] != len(self.columns):
            listed = ", ".join(self.names[:LISTED])
            refuse(
                f"expected {told} with the {len(self.columns)} columns {listed}, got "
                f"shape {array.shape}"
            )

    def _checked(self, frame: Frame, told: str) -> Frame:
        """The table, which has every column once."""
        named = frame.set_axis([str(name) for name in frame.columns], axis=1)
        given, twice = set(named.columns), named.columns[named.columns.duplicated()]
        for name in self.names:
            if name in twice:
                refuse(f"{told} has two columns {name!r}; give each its own name")
            if name not in given:
                hint = nearest(name, list(named.columns[:LISTED]))
                if len(named.columns) == 1:
                    hint += " (only one column: is the separator right?)"
                refuse(f"{told} has no column {name!r}, which the model needs; {hint}")
        return named

    def _filled(self, values: np.ndarray, told: str) -> np.ndarray:
        for place, column in enumerate(self.columns):
            values[:, place] = without_gaps(column, values[:, place], told)
        return values

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON; an infinite spread is None."""
        spread = self.spread and [s if math.isfinite(s) else None for s in self.spread]
        return {
            "columns": [column.as_dict() for column in self.columns],
            "drop_first": self.drop_first,
            "centre": None if self.centre is None else list(self.centre),
            "spread": spread,
            "unit_rows": self.unit_rows,
            "empty_words": list(self.empty_words),
            "unseen": self.unseen,
            "learnt": list(self.learnt),
        }

    @classmethod
    def from_dict(cls, told: dict[str, Any]) -> Encoding:
        """Read `as_dict` back."""
        columns = tuple(
            Column(
                name=str(one["name"]),
                levels=tuple(one["levels"]) if "levels" in one else None,
                filled=one.get("filled"),
            )
            for one in told["columns"]
        )
        spread = told["spread"] and [
            math.inf if s is None else s for s in told["spread"]
        ]
        return cls(
            columns=columns,
            drop_first=bool(told["drop_first"]),
            centre=numbers_of(told["centre"]),
            spread=numbers_of(spread),
            unit_rows=bool(told["unit_rows"]),
            empty_words=tuple(map(str, told["empty_words"])),
            unseen=str(told["unseen"]),
            learnt=tuple(map(str, told["learnt"])),
        )


def numbers_of(values: Any) -> tuple[float, ...] | None:
    """Plain numbers, or None where there are none."""
    return None if values is None else tuple(float(value) for value in values)


def level_names(
    name: str, levels: Sequence[Level] | None, drop_first: bool
) -> list[str]:
    """The features that a column becomes.

    >>> level_names("pet", ("cat", "dog"), drop_first=True)
    ['pet=dog']
    """
    if levels is None:
        return [name]
    return [f"{name}={level}" for level in list(levels)[1 if drop_first else 0 :]]


def unit_rows(x: np.ndarray) -> np.ndarray:
    """Every row divided by its Euclidean norm; a row of zeros stays.

    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6, 0.8], [0.0, 0.0]]
    """
    norm = np.linalg.norm(x, axis=1, keepdims=True)
    return x / np.where(norm > 0, norm, 1.0)


def _frame(array: np.ndarray, names: Sequence[str]) -> Frame:
    import pandas as pd  # slow to import, and numbers do without

    return pd.DataFrame(array, columns=list(names))
