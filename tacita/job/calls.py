"""Calling a function with the keys of a table, and telling what is wrong with them.

Which keys a table may have is read from the function it is for, so that a data set, an
algorithm or a graph added later needs no line here.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tacita.check import TacitaError, nearest, refuse


def plain_name(name: str) -> str:
    """A name as it is looked up: case, "-" and "_" do not matter.

    >>> plain_name("Fed-Avg") == plain_name("fed_avg") == plain_name("FedAvg")
    True
    """
    return name.replace("-", "").replace("_", "").lower()


def look_up(key: str, name: Any, known: Mapping[str, Any]) -> Any:
    """The entry of `known` that a word in a run file means, or a refusal."""
    found = {plain_name(other): value for other, value in known.items()}
    if isinstance(name, str) and plain_name(name) in found:
        return found[plain_name(name)]
    refuse(f"unknown {key} = {name!r}; {nearest(name, known)}")


def take_kind(where: str, table: Any, known: Mapping[str, Any], key: str) -> Any:
    """Split a table into what its "kind" (or "name") means and its other keys.

    A bare word stands for a table with nothing else in it.
    """
    if isinstance(table, str):
        table = {key: table}
    if not isinstance(table, dict):
        refuse(
            f"{where} = {table!r}: expected a table, for example "
            f'{{ {key} = "{next(iter(known))}" }}'
        )
    if key not in table:
        refuse(f"missing key {where}.{key}; known: {', '.join(known)}")
    rest = {k: v for k, v in table.items() if k != key}
    return look_up(f"{where}.{key}", table[key], known), rest


def keys_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The arguments of a function that can be given by name."""
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = inspect.signature(function).parameters
    return {name: p for name, p in parameters.items() if p.kind in named}


def check_keys(
    where: str,
    function: Callable[..., Any],
    given: Mapping[str, Any],
    set_by_us: Iterable[str] = (),
    also: Iterable[str] = (),
) -> None:
    """Refuse keys that the function does not know, and a lack of those it needs.

    Args:
        where: The table, for messages.
        function: What is to be called.
        given: The keys of the table.
        set_by_us: Arguments that the table must not and need not have.
        also: Keys that the table may have besides.
    """
    ours = set(set_by_us)
    open_keys = {k: p for k, p in keys_of(function).items() if k not in ours}
    known = list(dict.fromkeys((*open_keys, *also)))
    for key, value in given.items():
        if key not in known:
            refuse(f"unknown key {where}.{key} = {value!r}; {nearest(key, known)}")
        default = open_keys[key].default if key in open_keys else None
        if isinstance(default, bool) and not isinstance(value, bool):
            refuse(f"{where}.{key} = {value!r}: expected true or false")
    for key, parameter in open_keys.items():
        if parameter.default is parameter.empty and key not in given:
            refuse(f"missing key {where}.{key}; known: {', '.join(known)}")


def call(
    where: str,
    function: Callable[..., Any],
    given: Mapping[str, Any],
    fixed: Mapping[str, Any] | None = None,
    also: Iterable[str] = (),
) -> Any:
    """Call a function with the keys of a table and with arguments of our own.

    Whatever it refuses is told with the table's name in front.
    """
    fixed = fixed or {}
    check_keys(where, function, given, fixed, also)
    with told_of(where):
        return function(**fixed, **given)


@contextlib.contextmanager
def told_of(where: str) -> Iterator[None]:
    """Put the name of a table in front of whatever is refused inside.

    A value of the wrong kind that slipped through to NumPy or pandas is bad input too.
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        first = str(error).strip().split("\n")[0]
        raise TacitaError(f"{where}: {first}") from error
