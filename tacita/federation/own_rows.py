"""An agent's own rows, in the columns that a run names; they never leave."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tacita import data
from tacita.check import nearest, refuse
from tacita.encoding import Encoding, kind_of, labels_of, word
from tacita.federation.description import Description
from tacita.job.problems import NETWORKS, network_of
from tacita.problem import Problem, from_arrays
from tacita.problem.chosen_model import REGRESSIONS


@dataclass(frozen=True)
class RowsFile:
    """A file of rows, and how to read it.

    Attributes:
        path: .csv, .parquet or .npz.
        separator: Between the fields of a text file.
    """

    path: Path
    separator: str = ","

    @property
    def stamp(self) -> str:
        """Which rows they are: the file's size and time, and how they are read."""
        if not self.path.exists():
            return "no file"
        told = self.path.stat()
        parted = "" if self.separator == "," else f" {self.separator!r}"
        return f"{told.st_size} {told.st_mtime_ns}{parted}"


#: A file, or a table or mapping from column to values.
Rows = RowsFile | Mapping[str, Any] | Any
#: The same as people give them: a file may be its path.
OwnRows = str | Path | Rows
#: Labels of a run that names no classes: -1/+1 or 0/1.
_SIGNS = ("-1", "0", "1")
#: Text that files of rows take for a whole number; one that no 64 bits hold is none.
_WHOLE = re.compile(r"0|[+-]?[1-9]\d{0,17}")
#: Numbers of the blank rows, and parameters of a network, at most: whoever looks at an
#: offer makes them, some 30 bytes each.
_MOST_BLANK = 1 << 25


def rows_of(given: OwnRows, separator: str = ",") -> Rows:
    """A path is a file of rows; all else is what it is."""
    if isinstance(given, str | Path):
        return RowsFile(Path(given), separator)
    return given


def own_problem(run: Description, rows: OwnRows) -> Problem:
    """The agent's own rows, in the columns that the run names."""
    return problem_of(run, *own_columns(run, rows))


def own_columns(run: Description, rows: OwnRows) -> tuple[np.ndarray, np.ndarray]:
    """Features and target of the agent's rows, in the columns that the run names."""
    columns, target = list(run.problem["columns"]), str(run.problem["target"])
    held = rows_of(rows)
    if not isinstance(held, RowsFile):
        return _columns(held, columns, target, "the table")
    path = held.path
    if path.suffix == ".npz":
        try:
            with np.load(path, allow_pickle=False) as file:
                return _columns(file, columns, target, str(path))
        except (OSError, ValueError) as error:
            refuse(f"cannot read {path}: {error}")
    # A number that takes few values is still a number to a model that predicts one.
    model, classes = run.problem.get("model", "logistic"), run.problem.get("classes")
    number = model in REGRESSIONS or (isinstance(model, Mapping) and not classes)
    task = "regression" if number else None
    # That all rows are of one class is for nobody to see: the run names the classes,
    # or takes signs.
    classes = None if task else classes or _SIGNS
    table = data.read_table(
        path,
        target=target,
        features=columns,
        separator=held.separator,
        task=task,
        classes=classes,
    )
    if list(table.feature_names) != columns:
        refuse(
            f"{path} has text in one of the columns {columns}; a federation takes "
            "numbers, so that all agents mean the same by a column"
        )
    names = np.asarray(table.classes)
    y = names[table.y] if table.task == "classification" else table.y
    return table.x, y


def _columns(
    table: Mapping[str, Any], columns: list[str], target: str, where: str
) -> tuple[np.ndarray, np.ndarray]:
    known = [str(name) for name in table]
    for column in (*columns, target):
        if column not in known:
            refuse(f"{where} has no column {column!r}; {nearest(column, known)}")
    return np.stack([table[c] for c in columns], axis=1), np.asarray(table[target])


def blank_problem(run: Description) -> Problem:
    """The coordinator's: it has no rows, only their shape.

    As few rows of zeros as the run can be checked with: one of each class, one batch.
    """
    classes = run.problem.get("classes") or ()
    count = max(1, len(classes), _largest_batch(run.tables["algorithm"]))
    columns = len(run.problem["columns"])
    if count * columns > _MOST_BLANK:
        refuse(
            f"one batch or class each, {count} rows of {columns} columns, are more "
            f"than the {_MOST_BLANK} numbers that a run is checked with; take smaller "
            "batches"
        )
    x = np.zeros((count, columns))
    y: Any = np.zeros(count)
    if classes:
        y = np.resize(np.asarray([str(c) for c in classes]), count)
    return problem_of(run, x, y)


def _largest_batch(table: Mapping[str, Any]) -> int:
    """The largest batch that an algorithm, or an oracle inside it, asks for."""
    inside = [_largest_batch(v) for v in table.values() if isinstance(v, Mapping)]
    named = [table.get(key) for key in ("batch", "size")]
    return max([0, *inside, *(n for n in named if isinstance(n, int))])


def _model_of(run: Description, columns: int) -> Any:
    """The model by its name, or a network by its table; refused if it is too large."""
    told = run.problem
    model, classes = told.get("model", "logistic"), told.get("classes")
    name = model.get("name") if isinstance(model, Mapping) else model
    if name == "by_agent":
        refuse(
            "problem.model.name = 'by_agent': all agents of a federation train one "
            "kind of model; name it, such as 'linear'"
        )
    if not isinstance(model, Mapping) and name not in NETWORKS:
        return model
    if not classes and name in ("cnn", "resnet10"):
        refuse(
            f"problem.model.name = {name!r} predicts a class; name the classes in "
            "problem.classes"
        )
    made = network_of(
        model, columns, len(classes) if classes else None, bool(told.get("intercept"))
    )
    # Before its parameters are drawn: they would take the memory of whoever looks.
    if made.dim > _MOST_BLANK:
        refuse(
            f"problem.model: {made.name} has {made.dim} parameters, and at most "
            f"{_MOST_BLANK} can be trained in a federation; choose smaller layers"
        )
    return made


def numbers_of(run: Description) -> int:
    """How many numbers the model has, and a letter at least; no array is made."""
    told = run.problem
    width = len(told["columns"])
    model = _model_of(run, width)
    if not isinstance(model, str):
        return model.dim
    width += bool(told.get("intercept"))
    return width * len(told.get("classes") or ()) if model == "softmax" else width


def _as_in_files(classes: Sequence[Any]) -> tuple[Any, ...]:
    """The classes of a run file: "0" and "True" are what files of rows make of them.

    The coordinator has no rows that would tell words from numbers.

    >>> _as_in_files(["0", "1"]), _as_in_files(["01", "02"]), _as_in_files([1.0, 2.0])
    ((0, 1), ('01', '02'), (1.0, 2.0))
    >>> _as_in_files(["9" * 5000, "1"])[1]  # more digits than Python reads
    '1'
    """
    names, kind = tuple(map(word, classes)), kind_of(classes)
    if kind == "words" and {*names} == {"False", "True"}:
        kind = "truth"
    if kind == "words" and all(map(_WHOLE.fullmatch, names)):
        kind = "whole"
    return labels_of(names, kind)


def problem_of(run: Description, x: Any, y: Any) -> Problem:
    """One agent's problem out of features and target, scaled as the run says."""
    told = run.problem
    for key, apply in (("centre", np.subtract), ("spread", np.divide)):
        if key in told:
            numbers = np.asarray(told[key], float)
            if numbers.shape != (x.shape[1],):
                refuse(f"problem.{key} needs one number per column")
            x = apply(x, numbers)
    classes = told.get("classes")
    made = from_arrays(
        x,
        y,
        np.zeros(len(x), int),
        model=_model_of(run, x.shape[1]),
        l2=float(told.get("l2", 0.0)),
        classes=None if classes is None else _as_in_files(classes),
        intercept=bool(told.get("intercept", False)),
        dtype=told.get("dtype"),
        bound=told.get("bound"),
        name=run.name,
    )
    public = {key: tuple(told[key]) for key in ("centre", "spread") if key in told}
    encoding = Encoding.of_numbers(told["columns"], **public)
    return replace(made, encoding=encoding, target=str(told["target"]))
