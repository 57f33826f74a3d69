"""The file of a table: CSV or Parquet, in columns as pandas reads them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tacita.check import TacitaError, refuse
from tacita.data.suspicious import refuse_repeated
from tacita.data.tabular import Frame

#: Characters of the line with the columns' names, at most.
_MOST_NAMES = 1 << 16
#: What parts fields by any number of spaces and tabs.
_SPACES = r"\s+"


def read_frame(
    path: Path,
    separator: str = ",",
    missing_values: Sequence[str] = (),
    agent: str | None = None,
) -> Frame:
    """The table in a CSV or Parquet file, columns as pandas reads them.

    Args:
        path: The file; see `read_table`.
        separator: Between the fields of a text file.
        missing_values: Further ways in which a cell says that it is empty.
        agent: The column that names agents, if there is one: 007 stays 007.
    """
    if not path.is_file():
        refuse(f"there is no file {path}; check the path")
    separator = _separator(separator)
    kind = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix
    try:
        if kind.lower() in (".parquet", ".pq"):
            frame = pd.read_parquet(path)
            if missing_values:
                frame = frame.replace(dict.fromkeys(missing_values, np.nan))
        elif kind.lower() in (".csv", ".csv.gz", ".tsv", ".txt"):
            tabs = kind.lower() == ".tsv" and separator == ","
            parted = "\t" if tabs else separator
            frame = _text(path, parted, list(missing_values), agent)
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


def _text(
    path: Path, separator: str, missing_values: list[str], agent: str | None
) -> Frame:
    # The first row too: with more cells than the header pandas would shift it.
    top = pd.read_csv(path, sep=separator, header=None, nrows=2, skipinitialspace=True)
    refuse_repeated(top, path)
    held = [name for name in top.iloc[0] if str(name).strip() == agent]
    frame = pd.read_csv(
        path,
        sep=separator,
        na_values=missing_values,
        skipinitialspace=True,
        dtype=dict.fromkeys(held, str),
    )
    for name in held:
        frame[name] = _names(frame[name])
    return frame


def _names(column: Any) -> Any:
    """Names that are numbers as numbers, which are in order, unless zeros begin one."""
    if column.str.match(r"0\d", na=False).any():
        return column
    try:
        return pd.to_numeric(column)
    except (ValueError, TypeError):
        return column


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
