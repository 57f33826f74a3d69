"""`tacita algorithms`: what there is to run."""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import Annotated, Any

import typer

import tacita
from tacita.cli.show import show

EXAMPLE = "Example:  tacita algorithms FedProx"


def algorithms(
    name: Annotated[
        str | None, typer.Argument(help="Show one of them with all its fields.")
    ] = None,
) -> None:
    """List the algorithms, or show one with the keys it takes in a run file."""
    if name is not None:
        known = tacita.job.records.known()
        _show_one(tacita.job.calls.look_up("algorithm", name, known))
        return
    rows = [
        (label, _kind(cls), ", ".join(_fields(cls)), cls.source)
        for label, cls in tacita.job.records.known().items()
    ]
    show(("algorithm", "kind", "keys", "source"), rows)


def _kind(cls: Any) -> str:
    from tacita.algorithm.base import GraphAlgorithm

    return "graph" if issubclass(cls, GraphAlgorithm) else "server"


def _fields(cls: Any) -> list[str]:
    return [field.name for field in dataclasses.fields(cls)]


def _show_one(cls: Any) -> None:
    words = inspect.getdoc(cls) or ""
    typer.echo(f"{cls.__name__} ({_kind(cls)}): {words.split(chr(10))[0]}")
    typer.echo(f"  source: {cls.source}")
    needed = [f.name for f in dataclasses.fields(cls) if _needed(f)]
    typer.echo("\n[algorithm]")
    typer.echo(f'name = "{cls.__name__}"')
    told = _explained(words)
    for field in dataclasses.fields(cls):
        default = "needed" if field.name in needed else _default(field)
        about = told.get(field.name, "")
        typer.echo(f"# {field.name} ({default}): {about}".rstrip(": "))


def _needed(field: Any) -> bool:
    nothing = dataclasses.MISSING
    return field.default is nothing and field.default_factory is nothing


def _default(field: Any) -> str:
    if dataclasses.is_dataclass(field.default):
        inside = ", ".join(
            f"{f.name} = {getattr(field.default, f.name)!r}"
            for f in dataclasses.fields(field.default)
        )
        name = type(field.default).__name__
        return f'default {{ name = "{name}"{", " + inside if inside else ""} }}'
    return (
        "set by theory or left out"
        if field.default is None
        else (f"default {field.default!r}")
    )


def _explained(words: str) -> dict[str, str]:
    """What a docstring says of every field, in one line each."""
    part = words.partition("Attributes:")[2]
    found = re.findall(r"^ {4}(\w+): (.*(?:\n {8,}.*)*)", part, flags=re.M)
    return {name: re.sub(r"\s+", " ", about) for name, about in found}
