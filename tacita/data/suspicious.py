"""Columns and labels that are most likely a mistake, and would pass silently."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from tacita.check import refuse

#: Names of columns that say who, not what.
_KEY = re.compile(r"(.*[ _.-])?(id|key|uuid|nr|no|number)|rowid|index|(id|nr)[ _.-].*")
#: Rows from which on whole numbers in order, or words, each once, are taken for a key.
_ORDERED = 20
#: Rows from which on a label that occurs once is worth a word.
_MANY = 100
#: Agents that a note names.
_LISTED = 5


def refuse_keys(frame: Any, path: Path) -> None:
    """Refuse a column without a name, and one that numbers the rows.

    Only where nobody has chosen the columns: who names them knows what they are.
    """
    for name in frame.columns:
        told = f"column {name!r} of {path}"
        if str(name).startswith("Unnamed: ") and frame[name].isna().all():
            refuse(
                f"{told} has neither a name nor a cell, most likely separators at the "
                "ends of lines; take them away, or name the columns to use in "
                "features=[...]"
            )
        if str(name).startswith("Unnamed: "):
            refuse(
                f"{told} has no name in the file, most likely it numbers the rows; "
                "name the columns to use in features=[...]"
            )
        if _is_key(frame[name]):
            refuse(
                f"{told} has another whole number in every row, most likely it says "
                "who a row is of; name the columns to use in features=[...], with it "
                "if it is no key"
            )


def _is_key(column: Any) -> bool:
    if types.is_float_dtype(column) and column.hasnans:
        column = column.dropna()  # a gap makes floats of whole numbers
        if (np.mod(column, 1) == 0).all():
            column = column.astype(int)
    if not types.is_integer_dtype(column) or len(column) < 2 or not column.is_unique:
        return False
    in_order = column.is_monotonic_increasing or column.is_monotonic_decreasing
    # patientId is patient_id.
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(column.name)).lower()
    named = _KEY.fullmatch(words) is not None
    return named or (in_order and len(column) >= _ORDERED)


def refuse_names(frame: Any, path: Path) -> None:
    """Refuse a column with another word in every row, as `refuse_keys` does numbers."""
    for name in frame.columns:
        column = frame[name].dropna()
        if len(column) >= _ORDERED and column.astype(str).is_unique:
            refuse(
                f"column {name!r} of {path} has another text in every row, most likely "
                "it says who a row is of; name the columns to use in features=[...]"
            )


def refuse_spaces(column: Any, path: Path) -> None:
    """Refuse two values that look alike.

    They differ in spaces only, or in how letters with accents are coded.
    """
    seen: dict[str, str] = {}
    for value in _values(column):
        first = seen.setdefault(_as_seen(value), value)
        if first != value:
            spaced = "".join(first.split()) != "".join(value.split())
            what = "in how letters are coded" if spaced else "in spaces"
            refuse(
                f"column {column.name!r} of {path} holds {first!r} and {value!r}, "
                f"which differ {what} only; write them alike"
            )


def _values(column: Any) -> list[str]:
    """The words of a column, each once; none of a column of numbers."""
    if types.is_numeric_dtype(column) or types.is_bool_dtype(column):
        return []
    return column.dropna().astype(str).unique().tolist()


def _as_seen(value: str) -> str:
    return " ".join(unicodedata.normalize("NFC", value).split())


def alike_but_for_capitals(frame: Any) -> tuple[str, ...]:
    """A note on every column with two values that differ in capitals only.

    >>> alike_but_for_capitals(pd.DataFrame({"ill": ["yes", "no", "Yes"]}))
    ("column 'ill' holds 'yes' and 'Yes', taken for two values: is one misspelt?",)
    """
    notes = []
    for name in frame.columns:
        seen: dict[str, str] = {}
        for value in _values(frame[name]):
            first = seen.setdefault(value.casefold(), value)
            if first != value:
                notes.append(
                    f"column {name!r} holds {first!r} and {value!r}, taken for two "
                    "values: is one misspelt?"
                )
                break
    return tuple(notes)


def rows_left_out(kept: Any, of: Any, agent: str | None) -> tuple[str, ...]:
    """A note on rows that were dropped, and on agents all of whose rows were.

    >>> of = pd.DataFrame({"age": [1.0, None, None], "site": ["a", "a", "b"]})
    >>> rows_left_out(of.dropna(), of, "site")
    ("2 of 3 rows left out for an empty cell, all of agent 'b'",)
    """
    gone = len(of) - len(kept)
    if not gone:
        return ()
    note = f"{gone} of {len(of)} rows left out for an empty cell"
    if agent is not None:
        lost = sorted(set(of[agent].dropna()) - set(kept[agent]), key=str)
        named = ", ".join(repr(one) for one in lost[:_LISTED])
        more = f" and {len(lost) - _LISTED} more" if len(lost) > _LISTED else ""
        note += f", all of agent {named}{more}" if lost else ""
    return (note,)


def refuse_repeated(header: Any, path: Path) -> None:
    """Refuse a header that names a column twice, which pandas would rename."""
    names: Any = pd.Series([str(name).strip() for name in header.iloc[0].dropna()])
    if names.duplicated().any():
        twice = names[names.duplicated()].iloc[0]
        refuse(f"{path} has two columns {twice!r}; give each its own name")


def stray_labels(y: np.ndarray, classes: tuple[str, ...]) -> tuple[str, ...]:
    """A note on labels that occur once among many rows: most likely misspelt.

    >>> stray_labels(np.array([0] * 99 + [1] * 99 + [2]), ("no", "yes", "yse"))
    ("label 'yse' occurs once among 199 rows: is it misspelt?",)
    """
    if len(y) < _MANY or not classes:
        return ()
    counts = np.bincount(y, minlength=len(classes))
    return tuple(
        f"label {name!r} occurs once among {len(y)} rows: is it misspelt?"
        for name, count in zip(classes, counts, strict=True)
        if count == 1
    )


def may_be_codes(column: Any) -> bool:
    """Whether it is of whole numbers, which may have begun with zeros in a file."""
    if types.is_bool_dtype(column):
        return False
    numbers = column.to_numpy(float, na_value=0.0)
    return bool(((numbers >= 0) & (numbers % 1 == 0)).all())


def codes_as_measures(found: Mapping[str, str]) -> tuple[str, ...]:
    """A note on columns of numbers that begin with zeros, as codes do.

    >>> codes_as_measures({"icd": "007"})
    ("column 'icd' holds '007', taken for 7: name codes in categories=[...]",)
    """
    return tuple(
        f"column {name!r} holds {cell!r}, taken for {int(cell)}: name codes in "
        "categories=[...]"
        for name, cell in found.items()
    )


def nothing_held_out(test: np.ndarray, share: float) -> tuple[str, ...]:
    """A note where test rows were asked for, and every agent has too few for one.

    >>> nothing_held_out(np.array([False, False]), 0.2)
    ('no test rows: test_share=0.2 of the rows of an agent is none of them',)
    """
    if share == 0 or test.any():
        return ()
    return (
        f"no test rows: test_share={share:g} of the rows of an agent is none of them",
    )
