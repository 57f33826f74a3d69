"""How a row of a table becomes features of a model; carried by whatever was trained."""

from tacita.encoding.cells import LARGEST, marked_numbers, without_marks, word
from tacita.encoding.encoding import Column, Encoding, level_names, unit_rows
from tacita.encoding.label_kind import LabelKind, kind_of, labels_of
from tacita.encoding.origin import (
    CHANGED_FEATURES,
    DESCRIPTIONS,
    SEEN_LABELS,
    TAKEN_FOR_GRANTED,
    Origin,
)

__all__ = [
    "CHANGED_FEATURES",
    "DESCRIPTIONS",
    "LARGEST",
    "SEEN_LABELS",
    "TAKEN_FOR_GRANTED",
    "Column",
    "Encoding",
    "LabelKind",
    "Origin",
    "kind_of",
    "labels_of",
    "level_names",
    "marked_numbers",
    "unit_rows",
    "without_marks",
    "word",
]
