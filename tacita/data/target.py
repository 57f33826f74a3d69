"""The column to predict, as numbers, and what its classes are called."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pandas.api import types

from tacita.check import one_of, refuse
from tacita.data.catalog import Task
from tacita.data.words import (
    as_words,
    is_number,
    refuse_dressed_numbers,
    refuse_no_category,
)
from tacita.encoding import LabelKind, kind_of, word

_FEW = 20
#: How a code begins that is no number.
_CODE = re.compile(r"0\d")


def most_codes(task: Task | None, classes: Sequence[Any] | None) -> float:
    """Up to how many different labels such as 007 are taken for codes."""
    if task == "regression":
        return 0
    if classes is not None:
        return np.inf if any(_CODE.match(word(one)) for one in classes) else 0
    return np.inf if task == "classification" else _FEW


def read_target(
    column: Any, task: Task | None, path: Path, classes: Sequence[Any] | None
) -> tuple[np.ndarray, Task, tuple[str, ...], LabelKind]:
    """The target as numbers, the kind of task, the classes: names and what they are."""
    number = is_number(column) and not types.is_bool_dtype(column)
    if classes is not None:
        if task == "regression":
            refuse(f"classes={list(classes)!r} goes with task='classification' only")
        names = _class_names(classes)
        kind = kind_of(classes)
        return _coded(as_words(column), names, path), "classification", names, kind
    if task is None:
        if not number:
            words = column.astype(object).map(str)
            # 0,5 would be a class where 0.5 is a number, however few of them there are.
            refuse_dressed_numbers(words, path, ", or take task='classification'")
            if column.nunique() > _FEW:
                refuse_no_category(words, path)
        whole = number and bool((column.astype(float) % 1 == 0).all())
        few = whole and column.nunique() <= _FEW
        task = "classification" if few or not number else "regression"
    one_of(("classification", "regression"), task=task)
    if task == "regression":
        if not number:
            refuse(
                f"target {column.name!r} is not a number; take task='classification'"
            )
        return column.to_numpy(float), task, (), "words"
    values = column if number else column.astype(object).map(str)
    levels, codes = np.unique(values.to_numpy(), return_inverse=True)
    if len(levels) < 2:
        refuse(
            f"target {column.name!r} has one value only; there is nothing to predict"
        )
    kind = kind_of(column.unique())
    return codes, task, tuple(word(level) for level in levels), kind


def _class_names(classes: Sequence[Any]) -> tuple[str, ...]:
    names = () if isinstance(classes, str) else tuple(word(one) for one in classes)
    if len(set(names)) < max(2, len(names)):
        refuse(
            f"expected classes a list of two or more values, each once, got {classes!r}"
        )
    return names


def _coded(words: Any, names: tuple[str, ...], path: Path) -> np.ndarray:
    """Every row's place among the classes."""
    codes = words.map({name: place for place, name in enumerate(names)})
    if codes.isna().any():
        row = int(np.argmax(codes.isna()))
        refuse(
            f"target {words.name!r} of {path} is {words.iloc[row]!r} in data row "
            f"{row + 1}, which is none of classes={list(names)[:10]}"
        )
    return codes.to_numpy(int)
