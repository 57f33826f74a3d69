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
        (label, _kind(cls), cls.purpose)
        for label, cls in tacita.job.records.known().items()
    ]
    show(("algorithm", "kind", "for"), rows)
    typer.echo("\nIts keys and source: tacita algorithms NAME")


def _kind(cls: Any) -> str:
    from tacita.algorithm.base import GraphAlgorithm

    return "graph" if issubclass(cls, GraphAlgorithm) else "server"


def title(cls: Any) -> str:
    """Its name, whether it has a server, and what it does in a line."""
    about = (inspect.getdoc(cls) or "").split("\n")[0]
    return f"{cls.__name__} ({_kind(cls)}): {about}"


def _show_one(cls: Any) -> None:
    typer.echo(title(cls))
    typer.echo(f"  for:    {cls.purpose}")
    typer.echo(f"  source: {cls.source}")
    typer.echo("\n[algorithm]")
    typer.echo(f'name = "{cls.__name__}"')
    for name, held, default, about in fields(cls):
        told = f"{held}, {default}" if held else default
        typer.echo(f"# {name} ({told}): {about}".rstrip(": "))


def fields(cls: Any) -> list[tuple[str, str, str, str]]:
    """Of every field its name, its range, what happens if it is left out, a meaning."""
    from tacita.trees import rules

    told, known = _explained(inspect.getdoc(cls) or ""), rules(cls)
    rows = []
    for field in dataclasses.fields(cls):
        rule = known.get(field.name)
        held = "" if rule is None else rule.words
        if rule is not None and rule.common:
            held += " for all"
        default = _default(field, None if rule is None else rule.theory)
        rows.append((field.name, held, default, told.get(field.name, "")))
    return rows


def _default(field: Any, theory: Any) -> str:
    default = field.default
    if default is dataclasses.MISSING:
        return "needed"
    if theory is not None:
        return f"theory: {inspect.getdoc(theory)}".split("\n")[0].rstrip(".")
    if default is None:
        return "default none"
    if not dataclasses.is_dataclass(default):
        return f"default {default!r}"
    inside = "".join(
        f", {f.name} = {getattr(default, f.name)!r}"
        for f in dataclasses.fields(default)
    )
    return f'default {{ name = "{type(default).__name__}"{inside} }}'


def _explained(words: str) -> dict[str, str]:
    """What a docstring says of every field, in one line each."""
    part = words.partition("Attributes:")[2]
    found = re.findall(r"^ {4}(\w+): (.*(?:\n {8,}.*)*)", part, flags=re.M)
    return {name: re.sub(r"\s+", " ", about) for name, about in found}
