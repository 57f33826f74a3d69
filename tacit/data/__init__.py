"""Data sets, and ways to give their rows or columns to agents.

>>> from tacit import data
>>> iris = data.load("iris")
>>> iris.with_agents(data.split_iid(iris.y, 5, seed=0))
Dataset iris: 150 rows x 4 features, classification (3 classes), 5 agents
"""

from tacit.data.catalog import Entry
from tacit.data.dataset import Dataset
from tacit.data.holdings import who_holds_what
from tacit.data.loading import describe, fetch, load, names, options
from tacit.data.plot import plot_who_holds_what
from tacit.data.splits import (
    split_by_classes,
    split_by_column,
    split_dirichlet,
    split_iid,
    split_quantity,
)
from tacit.data.table import read_table
from tacit.data.vertical import split_vertical

__all__ = [
    "Dataset",
    "Entry",
    "describe",
    "fetch",
    "load",
    "names",
    "options",
    "plot_who_holds_what",
    "read_table",
    "split_by_classes",
    "split_by_column",
    "split_dirichlet",
    "split_iid",
    "split_quantity",
    "split_vertical",
    "who_holds_what",
]
