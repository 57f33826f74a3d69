"""Reading others' words: every JSON text of a federation is read here, and bounded.

How long a text may be, its reader says; how deep and how many things, this file.
"""

from __future__ import annotations

import json
import math
from typing import Any

from tacita.federation.wire import LetterRefused

#: Tables in tables, things in all: a run with 100,000 columns has three lists of them.
_MOST_DEPTH, _MOST_THINGS = 16, 500_000


def read_json(text: str | bytes, what: str, most_bytes: int = 1 << 20) -> Any:
    """What a JSON text holds; whatever could hurt its reader is refused.

    Args:
        text: The text, from whomever.
        what: What it should be, for the refusal.
        most_bytes: Characters, or bytes, that are read at most.

    >>> read_json('{"rows": [1, 2.5]}', "an answer")
    {'rows': [1, 2.5]}
    >>> read_json("[" * 100 + "]" * 100, "an answer")
    Traceback (most recent call last):
    tacita.federation.wire.LetterRefused: an answer cannot be read: it is nested too deeply
    """  # noqa: E501
    if len(text) > most_bytes:
        raise LetterRefused(f"{what} is longer than {most_bytes} bytes")
    try:
        words = text if isinstance(text, str) else text.decode()
        # Too many rather than too few: those within strings count too.
        if sum(words.count(mark) for mark in ",[{") > _MOST_THINGS:
            raise LetterRefused(f"{what} holds more than {_MOST_THINGS} things")
        made = json.loads(words, parse_constant=_finite, parse_float=_finite)
        _require_plain(made, what)
    except RecursionError:
        raise LetterRefused(f"{what} cannot be read: it is nested too deeply") from None
    except LetterRefused:
        raise
    except ValueError:  # no JSON, no UTF-8, half a character, numbers without end
        raise LetterRefused(f"{what} cannot be read") from None
    return made


def read_table(
    text: str | bytes, what: str, most_bytes: int = 1 << 20
) -> dict[str, Any]:
    """The same for a text that must hold a table."""
    made = read_json(text, what, most_bytes)
    if not isinstance(made, dict):
        raise LetterRefused(f"{what} cannot be read: it is no table")
    return made


def _finite(word: str) -> float:
    number = float(word)
    if not math.isfinite(number):
        raise ValueError(word)
    return number


def _require_plain(made: Any, what: str) -> None:
    """Refuse deep nesting, and text that has no bytes; without recursion."""
    todo = [(made, 1)]
    while todo:
        value, depth = todo.pop()
        if isinstance(value, str) and not value.isascii():
            value.encode()
        if not isinstance(value, list | dict):
            continue
        if depth > _MOST_DEPTH:
            raise RecursionError
        inside = (*value, *value.values()) if isinstance(value, dict) else value
        todo += [(one, depth + 1) for one in inside]
