"""What rows were looked at for before there was a problem: no epsilon covers it."""

from __future__ import annotations

from types import MappingProxyType
from typing import NamedTuple

#: Where nobody said beforehand which labels there may be.
SEEN_LABELS = "labels: those that the rows have"
#: Where features were changed by a map, and nobody here knows what it is made of.
CHANGED_FEATURES = "features: changed by a map, which may be of the rows"
#: Where nodes are described by numbers, likewise.
DESCRIPTIONS = "descriptions of nodes, which may be of the rows"
#: What a private run rests on then.
TAKEN_FOR_GRANTED = MappingProxyType(
    {
        SEEN_LABELS: "which labels there are is public",
        CHANGED_FEATURES: "the map that changed the features was known before these "
        "rows, or what it tells of them is counted besides",
        DESCRIPTIONS: "descriptions of nodes were known before these rows, or what "
        "they tell of them is counted besides",
    }
)


class Origin(NamedTuple):
    """What was learnt from rows before.

    Attributes:
        learnt: One sentence for each thing.
        mixes_rows: Whether features of a row depend on other rows.

    >>> Origin((SEEN_LABELS,)).joined(Origin(("scale: by rows",), True)).mixes_rows
    True
    """

    learnt: tuple[str, ...] = ()
    mixes_rows: bool = False

    def joined(self, other: Origin) -> Origin:
        """Both together."""
        words = dict.fromkeys((*self.learnt, *other.learnt))
        return Origin(tuple(words), self.mixes_rows or other.mixes_rows)
