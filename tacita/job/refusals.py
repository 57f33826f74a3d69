"""What pydantic finds wrong in a run file, in one line each."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ValidationError

from tacita.check import TacitaError, nearest


class RunFileError(TacitaError):
    """A run file with something wrong in it; one line for each."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__("\n".join(lines))


def lines_of(
    error: ValidationError, model: type[BaseModel], table: dict[str, Any]
) -> list[str]:
    """One line per thing that is wrong: the key, its value, the remedy."""
    found = (_line(dict(one), model, table) for one in error.errors(include_url=False))
    # An entry of a list and the list itself tell the same.
    return list(dict.fromkeys(found))


def _line(one: dict[str, Any], model: type[BaseModel], given: Any) -> str:
    names, table, field = _place(one["loc"], model)
    key = ".".join(names)
    wanted = "something else" if field is None else field.description
    if one["type"] == "missing":
        return f"missing key {key}; add {wanted}"
    for name in names:
        given = given[name]
    words = repr(given)
    shown = words if len(words) <= 60 else words[:57] + "..."
    if one["type"] == "extra_forbidden":
        return f"unknown key {key} = {shown}; {nearest(names[-1], table.model_fields)}"
    return f"{key} = {shown}: expected {wanted}"


def _place(
    location: tuple[Any, ...], model: type[BaseModel]
) -> tuple[list[str], type[BaseModel], Any]:
    """The key, the table that it is in, and its field if it has one."""
    names: list[str] = []
    table, field = model, None
    for part in location:
        names.append(str(part))
        field = table.model_fields.get(str(part))
        inner = None if field is None else field.annotation
        if not (isinstance(inner, type) and issubclass(inner, BaseModel)):
            break  # what follows is a place within a list
        if len(names) < len(location):
            table = inner
    return names, table, field
