"""What labels are besides their text: whole numbers, numbers, truth values, words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np

LabelKind = Literal["whole", "real", "truth", "words"]


def kind_of(labels: Iterable[Any]) -> LabelKind:
    """What all labels are; words, where they are of several kinds.

    >>> kind_of([1, 2]), kind_of([1, 2.0]), kind_of([False, True]), kind_of(["1", "2"])
    ('whole', 'real', 'truth', 'words')
    """
    kinds: set[LabelKind] = {_kind(one) for one in labels}
    if kinds == {"whole", "real"}:
        return "real"
    return kinds.pop() if len(kinds) == 1 else "words"


def labels_of(names: Sequence[str], kind: LabelKind) -> tuple[Any, ...]:
    """The labels that names stand for.

    >>> labels_of(("-1", "+1"), "whole"), labels_of(("1", "2"), "real")
    ((-1, 1), (1.0, 2.0))
    >>> labels_of(("False", "True"), "truth"), labels_of(("False", "True"), "words")
    ((False, True), ('False', 'True'))
    """
    if kind == "truth":
        return tuple(name == "True" for name in names)
    return tuple(map({"whole": int, "real": float, "words": str}[kind], names))


def _kind(label: Any) -> LabelKind:
    if isinstance(label, bool | np.bool):
        return "truth"
    if isinstance(label, int | np.integer):
        return "whole"
    return "real" if isinstance(label, float | np.floating) else "words"
