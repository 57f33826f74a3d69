"""What rows were looked at for before there was a problem: no epsilon covers it."""

from __future__ import annotations

from typing import NamedTuple

#: Where nobody said beforehand which labels there may be.
SEEN_LABELS = "labels: those that the rows have"


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
