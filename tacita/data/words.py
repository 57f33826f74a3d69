"""Text that is no category: numbers in disguise, dates, names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from tacita.check import refuse
from tacita.encoding import word

#: Signs among the digits of a number that pandas takes for text.
_DRESS = r"[\s_'\u2019$\u20ac\u00a3%]"
#: A day as one writes it: 2026-01-31, 31.1.2026, 1/31/2026, with or without a time.
_DAY = r"(\d{4}[-./]\d{1,2}[-./]\d{1,2}|\d{1,2}[-./]\d{1,2}[-./]\d{4})([ T].*)?"


def is_number(column: Any) -> bool:
    """Whether a column is of numbers, or of truth values."""
    return types.is_numeric_dtype(column) or types.is_bool_dtype(column)


def as_words(column: Any) -> Any:
    """Whatever it holds (categories, lists, times of day), its text tells."""
    return column.astype(object).map(word, na_action="ignore")


def refuse_no_category(column: Any, path: Path) -> None:
    """Refuse what is no category: numbers with commas or a stray word, and dates."""
    words, told = column.dropna(), f"column {column.name!r} of {path}"
    if words.empty:
        return
    refuse_dressed_numbers(column, path)
    plain = _are_numbers(words)
    if plain.all() and np.abs(np.asarray(words, float)).max() >= 2**63:
        longest = max(words, key=len)
        refuse(
            f"{told} holds whole numbers of up to {len(longest)} digits, {longest!r} "
            "for one; leave it out, or write measures with a decimal point"
        )
    if plain.mean() >= 0.5 and not plain.all():
        stray = str(words[~plain].iloc[0])
        refuse(
            f"{told} holds numbers and the text {stray!r}; correct it, or take "
            f"missing_values=[{stray!r}] if it means an empty cell, or "
            f"categories=[{column.name!r}] if all of them are names"
        )
    if words.str.fullmatch(_DAY).mean() >= 0.5:
        refuse(f"{told} is a date; leave it out, or turn it into a number first")


def refuse_dressed_numbers(column: Any, path: Path, otherwise: str = "") -> None:
    """Refuse numbers that are text for their commas or signs.

    Args:
        column: Of words.
        path: The file that it is of.
        otherwise: What else can be done.
    """
    words, told = column.dropna(), f"column {column.name!r} of {path}"
    if words.empty:
        return
    plain, joined = _are_numbers(words), _are_numbers(words.str.replace(",", ""))
    commas = joined & ~plain
    if commas.any() and joined.mean() >= 0.5:
        refuse(
            f"{told} holds numbers with commas, {str(words[commas].iloc[0])!r} for "
            f"one; write them with a decimal point and without commas{otherwise}"
        )
    bare = words.str.replace(_DRESS, "", regex=True).str.replace("\u2212", "-")
    dressed = _are_numbers(bare) & ~plain
    if dressed.any() and (dressed | plain).mean() >= 0.5:
        refuse(
            f"{told} holds numbers written as {str(words[dressed].iloc[0])!r}; write "
            "them in digits, a decimal point and, where needed, a plain minus"
            f"{otherwise}"
        )


def _are_numbers(words: Any) -> np.ndarray:
    return ~np.isnan(np.asarray(pd.to_numeric(words, errors="coerce"), float))


def refuse_many(column: Any, path: Path, max_levels: int) -> None:
    """Refuse text with too many values: names, keys."""
    if column.nunique() > max_levels:
        refuse(
            f"column {column.name!r} of {path} is text with {column.nunique()} "
            f"different values; leave it out of features, or raise "
            f"max_levels={max_levels}"
        )
