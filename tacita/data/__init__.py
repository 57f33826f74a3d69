"""Data sets, and ways to give their rows or columns to agents.

>>> from tacita import data
>>> iris = data.load("iris")
>>> iris.with_agents(data.split_iid(iris.y, 5, seed=0))
Dataset iris: 150 rows x 4 features, classification (3 classes), 5 agents
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tacita.data import augment
from tacita.data.catalog import Entry
from tacita.data.columns import split_vertical
from tacita.data.dataset import Dataset
from tacita.data.holdings import who_holds_what
from tacita.data.loading import describe, fetch, load, names, options
from tacita.data.splits import (
    split_by_classes,
    split_by_column,
    split_dirichlet,
    split_iid,
    split_quantity,
)
from tacita.data.table import read_table
from tacita.data.table_file import read_frame

if TYPE_CHECKING:
    from tacita.data.holdings_picture import plot_who_holds_what

__all__ = [
    "Dataset",
    "Entry",
    "augment",
    "describe",
    "fetch",
    "load",
    "names",
    "options",
    "plot_who_holds_what",
    "read_frame",
    "read_table",
    "split_by_classes",
    "split_by_column",
    "split_dirichlet",
    "split_iid",
    "split_quantity",
    "split_vertical",
    "who_holds_what",
]


def __getattr__(name: str) -> Any:
    """Load matplotlib when something is drawn."""
    if name == "plot_who_holds_what":
        from tacita.data import holdings_picture

        return holdings_picture.plot_who_holds_what
    raise AttributeError(f"module 'tacita.data' has no attribute {name!r}")
