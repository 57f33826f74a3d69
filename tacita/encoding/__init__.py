"""How a row of a table becomes features of a model; carried by whatever was trained."""

from tacita.encoding.cells import LARGEST, LARGEST_SINGLE, word
from tacita.encoding.encoding import Column, Encoding, level_names, unit_rows

__all__ = [
    "LARGEST",
    "LARGEST_SINGLE",
    "Column",
    "Encoding",
    "level_names",
    "unit_rows",
    "word",
]
