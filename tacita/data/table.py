"""A user's own table: CSV or Parquet, with a column that names the agent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from tacita.check import count, nearest, one_of, refuse
from tacita.data.catalog import Task
from tacita.data.dataset import Dataset
from tacita.data.suspicious import (
    alike_but_for_capitals,
    codes_as_measures,
    may_be_codes,
    nothing_held_out,
    refuse_keys,
    refuse_names,
    refuse_spaces,
    rows_left_out,
    stray_labels,
)
from tacita.data.table_file import read_frame, zeros_in_front
from tacita.data.tabular import Frame, assemble
from tacita.data.target import most_codes, read_target
from tacita.data.test_rows import hold_out_rows
from tacita.data.words import as_words, is_number, refuse_many, refuse_no_category
from tacita.encoding import LARGEST


def read_table(
    path: str | Path,
    *,
    target: str,
    agent: str | None = None,
    features: Sequence[str] | None = None,
    task: Task | None = None,
    missing: str = "refuse",
    missing_values: Sequence[str] = (),
    separator: str = ",",
    scale: str | None = None,
    test_share: float = 0.0,
    seed: int = 0,
    max_levels: int = 100,
    classes: Sequence[Any] | None = None,
    categories: Sequence[str] = (),
) -> Dataset:
    """Read a CSV or Parquet file.

    Text columns become one 0/1 column per level, in the order of the alphabet;
    true/false columns become 0/1.

    Args:
        path: The file; its name ends in .csv, .csv.gz, .tsv, .txt or .parquet.
        target: The column to predict.
        agent: The column that names the agent of each row, if there is one.
        features: The columns to predict from; None for all others, which are refused
            where one of them looks like a key: numbers that say who, not what.
        task: None takes "classification" for text, true/false and up to 20 different
            whole numbers, and "regression" for the rest.
        missing: "refuse" empty cells, "drop" their rows, or "impute" the median (text:
            the most frequent value) of the training rows. Target and agent are never
            imputed.
        missing_values: Further ways in which a cell says that it is empty ("?", "-99").
        separator: Between the fields of a text file.
        scale: None, "standard", "minmax" or "unit".
        test_share: Share of each agent's rows kept for testing.
        seed: Of that draw.
        max_levels: A text column with more levels is refused: most likely it is a name
            or a key.
        classes: Of a classification, all values that the target may have, in the order
            of their numbers, where they are known beforehand: rows may then be of one
            class only. None takes those of the rows.
        categories: Features whose numbers are names, such as 1 and 2 for two wards, or
            codes that begin with zeros: they become 0/1 columns, as text does.
    """
    one_of(("refuse", "drop", "impute"), missing=missing)
    if isinstance(missing_values, str):
        refuse(
            f"expected missing_values a list of words, got {missing_values!r}; write "
            f"missing_values=[{missing_values!r}]"
        )
    if isinstance(categories, str):
        refuse(f"expected categories a list of columns, got categories={categories!r}")
    path, marks = Path(path), list(missing_values)
    frame = read_frame(
        path,
        separator,
        marks,
        agent,
        categories=categories,
        target=target,
        most_codes=most_codes(task, classes),
    )
    wanted = [target] if agent is None else [target, agent]
    if isinstance(features, str):
        refuse(f"expected features a list of columns, got features={features!r}")
    chosen = features is not None
    if features is None:
        features = [c for c in frame.columns if c not in wanted]
    _check_columns(frame, path, wanted, list(features))
    for column in categories:
        if column not in features:
            refuse(
                f"categories names {column!r}, no feature; {nearest(column, features)}"
            )
    if not chosen:
        refuse_keys(frame[list(features)], path)
    frame = frame[[*features, *wanted]]
    whole = frame
    if missing == "drop":
        frame = frame.dropna(ignore_index=True)
        if frame.empty:
            refuse(f"every row of {path} has an empty cell; leave columns out instead")
    for column in wanted:
        _no_gaps(frame[column], path, "fill the cells, or take missing='drop'")
        _within_reach(frame[column], path)
    for column in features:
        remedy = "leave the column out, or take missing='drop' or missing='impute'"
        if missing != "impute":
            _no_gaps(frame[column], path, f"fill the cells, {remedy}")
        _within_reach(frame[column], path)
    for column in frame.columns:
        refuse_spaces(frame[column], path)
    y, task, names, kind = read_target(frame[target], task, path, classes)
    holder = None if agent is None else frame[agent].to_numpy()
    groups = np.zeros(len(frame)) if holder is None else holder.astype(str)
    test = hold_out_rows(groups, test_share, seed)
    cells = frame[list(features)]
    levels = _levels(cells, path, count(max_levels=max_levels), categories)
    coded = [c for c in features if c not in levels and may_be_codes(cells[c])]
    if not chosen:
        refuse_names(cells[list(levels)], path)
    cells, filled = _filled(cells, levels, path, test)
    return assemble(
        name=path.name,
        features=cells,
        levels=levels,
        filled=filled,
        empty_words=missing_values,
        y=y,
        task=task,
        test=test,
        scale=scale,
        target_name=target,
        classes=names,
        label_kind=kind,
        classes_seen=classes is None and task == "classification",
        agent=holder,
        notes=(
            *_notes(frame, missing),
            *rows_left_out(frame, whole, agent),
            *alike_but_for_capitals(frame),
            *stray_labels(y, names),
            *nothing_held_out(test, test_share),
            *codes_as_measures(zeros_in_front(path, separator, coded)),
        ),
    )


def _check_columns(
    frame: Frame, path: Path, wanted: list[str], features: list[str]
) -> None:
    for column in [*wanted, *features]:
        if column not in frame.columns:
            hint = nearest(column, frame.columns)
            if frame.shape[1] == 1:
                hint += " (only one column: is the separator right?)"
            refuse(f"{path} has no column {column!r}; {hint}")
    if len(set(wanted + features)) < len(wanted + features) or not features:
        refuse(
            "expected at least one feature, and each column once among target, agent "
            f"and features, got {wanted + features}"
        )


def _no_gaps(column: Any, path: Path, remedy: str) -> None:
    empty = column.isna().to_numpy()
    if empty.any():
        refuse(
            f"column {column.name!r} of {path} is empty in {int(empty.sum())} rows, "
            f"the first is data row {int(np.argmax(empty)) + 1}; {remedy}"
        )


def _within_reach(column: Any, path: Path) -> None:
    """Refuse numbers that are infinite, or whose squares would be."""
    if not types.is_numeric_dtype(column):
        return
    sizes = np.abs(column.to_numpy(float, na_value=np.nan))
    far = sizes > LARGEST
    if far.any():
        where = int(np.argmax(far))
        said = "infinite" if np.isinf(sizes[where]) else f"{sizes[where]:.3g} in size"
        refuse(
            f"column {column.name!r} of {path} is {said} in data row {where + 1}; "
            "correct the cell or leave the row out"
        )


def _levels(
    frame: Frame, path: Path, max_levels: int, categories: Sequence[str]
) -> dict[str, list[str]]:
    """The levels of every column that is not of numbers, or whose numbers are names."""
    levels = {}
    for name in frame.columns:
        column = frame[name]
        if types.is_datetime64_any_dtype(column):
            refuse(f"column {name!r} of {path} is a date; turn it into a number first")
        if not is_number(column) or name in categories:
            words = as_words(column)
            if name not in categories:
                refuse_no_category(words, path)
            refuse_many(words, path, max_levels)
            levels[name] = sorted(words.dropna().unique())
    return levels


def _filled(
    frame: Frame, levels: dict[str, list[str]], path: Path, test: np.ndarray
) -> tuple[Frame, dict[str, Any]]:
    """The columns with gaps filled from the training rows, and with what."""
    columns, filled = {}, {}
    for name in frame.columns:
        column = as_words(frame[name]) if name in levels else frame[name]
        if column.isna().any():
            seen = column[~test].dropna()
            if seen.empty:
                refuse(f"column {name!r} of {path} is empty; leave it out of features")
            words = name in levels or types.is_bool_dtype(column)
            filled[name] = seen.mode().iloc[0] if words else seen.median()
            column = column.fillna(filled[name])
        columns[name] = column
    return pd.DataFrame(columns), filled


def _notes(frame: Frame, missing: str) -> tuple[str, ...]:
    if missing == "impute" and frame.isna().any(axis=None):
        return ("empty cells replaced by the median or the most frequent value",)
    return ()
