"""`--set key=value`: changing a run file from the command line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from typing import Any

from tacita.check import refuse

#: What is taken as a word without quotes, which a shell would have eaten.
_WORD = re.compile(r"[A-Za-z_./~][A-Za-z0-9_./~+-]*")
_KEY = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")


def with_changes(table: dict[str, Any], changes: Sequence[str]) -> dict[str, Any]:
    """The run file with keys changed, in order.

    >>> with_changes({"run": {"rounds": 5}}, ["run.rounds=9", "algorithm.name=FedAvg"])
    {'run': {'rounds': 9}, 'algorithm': {'name': 'FedAvg'}}
    """
    for change in changes:
        key, sign, words = change.partition("=")
        key = key.strip()
        if not sign or not _KEY.fullmatch(key):
            refuse(
                f"--set {change!r}: expected KEY=VALUE, for example --set "
                "algorithm.step_size=0.2"
            )
        table = _put(table, key.split("."), value_of(key, words.strip()), key)
    return table


def value_of(key: str, words: str) -> Any:
    """A value in TOML; a word needs no quotes.

    >>> value_of("k", "0.5"), value_of("k", "[1, 2]"), value_of("k", "FedAvg")
    (0.5, [1, 2], 'FedAvg')
    """
    try:
        found = tomllib.loads(f"value = {words}")
        if list(found) == ["value"]:
            return found["value"]
    except tomllib.TOMLDecodeError:
        if _WORD.fullmatch(words):
            return words
    refuse(f"--set {key}={words}: not a TOML value; quote words as {key}='\"...\"'")


def _put(table: dict[str, Any], path: list[str], value: Any, key: str) -> dict:
    first, *rest = path
    if not rest:
        return {**table, first: value}
    inner = table.get(first, {})
    if not isinstance(inner, dict):
        refuse(f"--set {key}: {first} = {inner!r} is no table and has no keys")
    return {**table, first: _put(inner, rest, value, key)}
