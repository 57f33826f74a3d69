"""How a row of a table becomes features of a model; carried by whatever was trained."""

from tacita.encoding.cells import word
from tacita.encoding.encoding import Column, Encoding, level_names, unit_rows

__all__ = ["Column", "Encoding", "level_names", "unit_rows", "word"]
