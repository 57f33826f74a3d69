"""What `fit` is given beside rows, before scikit-learn looks at it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacita import check


def labels(y: Any) -> Any:
    """Labels as NumPy has them; of pandas' Int64 and boolean scikit-learn makes floats.

    Those with gaps stay, for scikit-learn to refuse.
    """
    kind = getattr(y, "dtype", None)
    nullable = getattr(kind, "kind", "") in "iub" and not isinstance(kind, np.dtype)
    if not nullable or not hasattr(y, "isna") or y.isna().any():
        return y
    return np.array(y.tolist())


def numbers(y: np.ndarray) -> np.ndarray:
    """The targets of a regression."""
    try:
        return np.asarray(y, float)
    except ValueError as error:
        check.refuse(f"y has text, a regressor takes numbers ({error})")


def parties(groups: Any) -> np.ndarray:
    """The party of every row, checked while a gap in a list is no word yet."""
    found = check.column(groups=groups)
    if found.dtype.kind == "i" and found.min(initial=0) < 0:
        check.refuse(
            f"groups has {found.min()}; parties are called by words, or by numbers "
            "from 0"
        )
    return found
