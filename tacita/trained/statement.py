"""What a model's file may say of privacy: never an epsilon by itself."""

from __future__ import annotations

from typing import Any

from tacita.check import refuse

#: What every epsilon comes with.
_NEEDED = ("observer", "unit", "relation", "delta", "epsilon", "theorem", "assumptions")


def check_statement(privacy: Any) -> None:
    """Refuse a statement in which an epsilon lacks what it holds for, or under.

    >>> check_statement({"rows": [{"epsilon": 1.0}]})
    Traceback (most recent call last):
    tacita.check.TacitaError: a statement of privacy lacks its observer
    """
    rows = privacy.get("rows") if isinstance(privacy, dict) else None
    if not isinstance(rows, list | tuple) or not rows:
        refuse("a statement of privacy has rows, one per observer; this one has none")
    for row in rows:
        for name in _NEEDED:
            if not isinstance(row, dict) or name not in row:
                refuse(f"a statement of privacy lacks its {name}")
        if row["epsilon"] is not None and not row["assumptions"]:
            refuse("a statement of privacy lacks the assumptions that it holds under")
