"""What agents weigh in a problem: rho_i of (73)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from tacita import check


def agent_weights(
    weights: Any, ids: Sequence[Hashable], counts: np.ndarray
) -> np.ndarray | None:
    """One number per agent; None where all weigh the same.

    Args:
        weights: None, "samples", one number per agent in the order of ids, or a mapping
            from ids.
        ids: Of the agents.
        counts: Their rows.

    >>> agent_weights("samples", ["a", "b"], np.array([30, 10])).tolist()
    [1.5, 0.5]
    """
    if weights is None:
        return None
    if isinstance(weights, str):
        check.one_of(("samples",), weights=weights)
        # So that the problem is N times the mean over all rows, whoever holds them.
        return counts / counts.mean()
    if isinstance(weights, Mapping):
        missing = [one for one in ids if one not in weights]
        if missing:
            check.refuse(
                f"weights has none for agent {missing[0]!r}; give one for each"
            )
        known = set(ids)
        unknown = [one for one in weights if one not in known]
        if unknown:
            check.refuse(
                f"weights names agent {unknown[0]!r}, which has no rows; leave it out"
            )
        weights = [weights[one] for one in ids]
    try:
        found = np.asarray(weights, float)
    except (TypeError, ValueError):
        check.refuse(
            f"expected weights 'samples' or one number per agent, got {weights!r}"
        )
    check.shape((len(ids),), weights=found)
    check.not_negative(weights=found)
    if not found.any():
        check.refuse("expected weights with one above 0, got zeros")
    return found
