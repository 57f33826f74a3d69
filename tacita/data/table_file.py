"""The file of a table: CSV or Parquet, in columns as pandas reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api import types

from tacita.check import TacitaError, refuse
from tacita.data.suspicious import refuse_repeated
from tacita.data.tabular import Frame
from tacita.encoding import without_marks

#: Characters of the line with the columns' names, at most.
_MOST_NAMES = 1 << 16
#: Whole numbers below this one are exact as floats.
_EXACT = 1 << 53
#: What parts fields by any number of spaces and tabs.
_SPACES = r"\s+"
#: What a cell may say in place of nothing, as pandas has it but for "None": patients
#: with no allergy are not patients of whom it is not known.
EMPTY = (
    *("", "NA", "N/A", "n/a", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "<NA>"),
    *("#NA", "#N/A", "#N/A N/A", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
)


def read_frame(
    path: Path,
    separator: str = ",",
    missing_values: Sequence[str] = (),
    agent: str | None = None,
    levels: Mapping[str, Sequence[Any]] | None = None,
    categories: Sequence[str] = (),
    target: str | None = None,
    most_codes: float = 0,
) -> Frame:
    """The table in a CSV or Parquet file, columns as pandas reads them.

    Args:
        path: The file; see `read_table`.
        separator: Between the fields of a text file.
        missing_values: Further ways in which a cell says that it is empty.
        agent: The column that names agents, if there is one: 007 stays 007.
        levels: Of columns that are known to be categories, the values they may have:
            a number that is written as one of them stays as it is written.
        categories: Columns whose numbers are names, and stay as they are written.
        target: The column to predict, if there is one: whole numbers stay whole there
            beside gaps.
        most_codes: Up to so many different ones, its numbers are codes if zeros begin
            one: 007 stays 007.
    """
    if not path.is_file():
        refuse(f"there is no file {path}; check the path")
    separator = _separator(separator)
    kind = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix
    try:
        if kind.lower() in (".parquet", ".pq"):
            frame = pd.read_parquet(path)
            if missing_values:
                told = {
                    name: without_marks(frame[name], missing_values) for name in frame
                }
                frame = pd.DataFrame(told)
        elif kind.lower() in (".csv", ".csv.gz", ".tsv", ".txt"):
            tabs = kind.lower() == ".tsv" and separator == ","
            parted = "\t" if tabs else separator
            frame = _Text(path, parted, list(missing_values)).read(
                agent, levels or {}, categories, target, most_codes
            )
        else:
            refuse(f"cannot tell the format of {path}; name it .csv or .parquet")
    except TacitaError:
        raise
    except UnicodeDecodeError:
        refuse(f"cannot read {path}: it is not text in UTF-8; save it in that encoding")
    except ImportError:
        refuse("reading Parquet needs pyarrow; install tacita[parquet]")
    except (OSError, ValueError, EOFError) as error:
        if (other := _other_separator(path, separator)) is not None:
            refuse(
                f"cannot read {path}: its columns are parted by {other!r}, not by "
                f"{separator!r}; say so with separator={other!r}"
            )
        first = str(error).strip().split("\n")[0] or type(error).__name__
        refuse(f"cannot read {path}: {first}; check that it is a whole {kind} file")
    names: Any = pd.Index([str(column).strip() for column in frame.columns])
    if not names.is_unique:
        twice = names[names.duplicated()][0]
        refuse(f"{path} has two columns {twice!r}; give each its own name")
    if frame.empty:
        refuse(f"{path} has no rows; check that it is the right file")
    return frame.set_axis(names, axis=1)


@dataclass(frozen=True)
class _Text:
    """A text file, which pandas reads once, and some of its columns as words again."""

    path: Path
    separator: str
    missing_values: list[str]

    def read(
        self,
        agent: str | None,
        levels: Mapping[str, Sequence[Any]],
        categories: Sequence[str],
        target: str | None,
        most_codes: float,
    ) -> Frame:
        # The first row too: with more cells than the header pandas would shift it.
        top = pd.read_csv(
            self.path,
            sep=self.separator,
            header=None,
            nrows=2,
            skipinitialspace=True,
        )
        refuse_repeated(top, self.path)
        held = [name for name in top.iloc[0] if str(name).strip() == agent]
        frame = self._columns(dtype=dict.fromkeys(held, str))
        written = [name for name in frame if self._loses_words(frame[name])]
        coded = [
            name
            for name in frame
            if str(name).strip() in levels and types.is_numeric_dtype(frame[name])
        ]
        named = [name for name in frame if str(name).strip() in categories]
        asked = list(dict.fromkeys([*written, *coded, *named]))
        for name, words in self._words(asked).items():
            if name in named:
                frame[name] = words
                continue
            known = words.isin([str(one) for one in levels.get(str(name).strip(), ())])
            kept = known if name in coded else words.notna()
            frame[name] = words.where(kept, frame[name].astype(object))
        for name in held:
            frame[name] = _names(frame[name])
        aims = [n for n in frame if str(n).strip() == target and _whole(frame[n])]
        for name, words in self._words(aims).items():
            frame[name] = _labels(words, frame[name], most_codes)
        return frame

    def _columns(self, **options: Any) -> Frame:
        empty: dict[str, Any] = {"na_values": self.missing_values} | options
        return pd.read_csv(
            self.path, sep=self.separator, skipinitialspace=True, **empty
        )

    def _loses_words(self, column: Any) -> bool:
        """Whether it is text with gaps, of which some may say "None"."""
        if types.is_numeric_dtype(column) or not column.isna().any():
            return False
        return not column.dropna().map(lambda cell: isinstance(cell, bool)).all()

    def _words(self, names: list[Any]) -> Frame:
        """Some columns as they are written; "None" is a word like any other."""
        if not names:
            return {}
        empty = [*EMPTY, *self.missing_values]
        return self._columns(
            usecols=names, dtype=str, keep_default_na=False, na_values=empty
        )


def _names(column: Any) -> Any:
    """Names that are numbers as numbers, which are in order, unless zeros begin one."""
    if column.str.match(r"0\d", na=False).any():
        return column
    try:
        return pd.to_numeric(column)
    except (ValueError, TypeError):
        return column


def _whole(column: Any) -> bool:
    """Whether it is of whole numbers, gaps aside."""
    if types.is_bool_dtype(column) or not types.is_numeric_dtype(column):
        return False
    numbers = column.dropna()
    return bool(len(numbers)) and bool((numbers % 1 == 0).all())


def _labels(words: Any, column: Any, most_codes: float) -> Any:
    """Whole numbers of a target as they are written: codes, integers or 1.0."""
    words = words.where(column.notna()).str.strip()
    digits = words.str.fullmatch(r"[+-]?\d+", na=True).all()
    zeros = words.str.match(r"0\d", na=False).any()
    if digits and zeros and words.nunique() <= most_codes:
        return words
    gaps = digits and column.isna().any() and column.abs().max() < _EXACT
    return column.astype("Int64") if gaps else column


def zeros_in_front(
    path: Path, separator: str, columns: Sequence[str]
) -> dict[str, str]:
    """Of columns of a text file that hold whole numbers such as 007: the first one."""
    if not columns or path.suffix.lower() in (".parquet", ".pq"):
        return {}
    tabs = path.suffix.lower() == ".tsv" and separator == ","
    words = pd.read_csv(
        path,
        sep="\t" if tabs else _separator(separator),
        usecols=lambda name: str(name).strip() in columns,
        dtype=str,
        skipinitialspace=True,
    )
    found: dict[str, str] = {}
    for name in words:
        cells: Any = words[name]
        begun = cells[cells.str.fullmatch(r"0\d+\s*", na=False)]
        if len(begun):
            found[str(name).strip()] = begun.iloc[0].strip()
    return found


def _separator(given: Any) -> str:
    """One character; a tab may be spelt out, as shells and run files leave it."""
    if given == r"\t":
        return "\t"
    if not isinstance(given, str) or (len(given) != 1 and given != _SPACES):
        refuse(
            f"expected separator one character, or {_SPACES!r} for any spaces, got "
            f"separator={given!r}"
        )
    return given


def _other_separator(path: Path, separator: str) -> str | None:
    """What parts the names in the first line, where the separator does not."""
    try:
        with open(path, encoding="utf-8-sig") as file:
            names = file.readline(_MOST_NAMES)
    except (OSError, ValueError):
        return None
    others = [one for one in (";", "\t", "|") if one in names]
    return others[0] if others and separator not in names else None
