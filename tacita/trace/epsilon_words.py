"""What an epsilon is about and what it rests on, in words: one sentence for all pages.

An epsilon by itself says nothing. Wherever one is shown these words stand beside it:
delta, unit, relation and observer, then the theorem and its assumptions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

#: In place of a theorem, where nothing was released.
NOTHING_YET = "nothing was released yet"


def terms(told: Mapping[str, Any]) -> str:
    """All of it, to be put behind an epsilon.

    Args:
        told: `delta`, `unit`, `relation`, `observer`, `theorem` and `assumptions`, as
            a row of a privacy report has them.

    >>> clipped = {"statement": "rows are clipped", "status": "enforced"}
    >>> terms({"delta": 1e-5, "unit": "record", "relation": "replace_one", "observer":
    ...        "final_model", "theorem": "a theorem", "assumptions": [clipped]})
    ... # doctest: +NORMALIZE_WHITESPACE
    'at delta 1e-5 for one record (replace one) against the final model, by: a theorem;
    it holds if: rows are clipped (enforced)'
    """
    return f"{about(told, relation=True)}, {reasons(told)}"


def about(told: Mapping[str, Any], relation: bool = False) -> str:
    """For whom, against whom, at which delta."""
    who = str(told["observer"]).replace("_", " ")
    how = f" ({str(told['relation']).replace('_', ' ')})" if relation else ""
    return (
        f"at delta {short(told['delta'])} for one {told['unit']}{how} against the {who}"
    )


def reasons(told: Mapping[str, Any]) -> str:
    """The theorem, and the assumptions it holds under."""
    if not told["assumptions"]:
        return f"by: {told['theorem']}"
    return f"by: {told['theorem']}; it holds if: {assumed(told['assumptions'])}"


def assumed(assumptions: Iterable[Mapping[str, str]]) -> str:
    """Assumptions in one line, what is violated first."""
    first = sorted(assumptions, key=lambda one: one["status"] != "violated")
    return "; ".join(f"{one['statement']} ({one['status']})" for one in first)


def short(number: float) -> str:
    """A number as people write it.

    >>> short(1e-5), short(0.25)
    ('1e-5', '0.25')
    """
    return re.sub(r"e([+-])0+", r"e\1", f"{number:g}")
