"""Frozen records that JAX can trace: numbers are leaves, counts and functions static.

Changing a leaf does not recompile, and a sweep over leaves is one `vmap`. Changing a
static field compiles anew.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, dataclass_transform

import jax
import numpy as np

T = TypeVar("T")


def static(default: Any = dataclasses.MISSING, **options: Any) -> Any:
    """A field that is part of the compiled program: a count, a word, a function."""
    return dataclasses.field(default=default, metadata={"static": True}, **options)


@dataclass_transform(
    frozen_default=True, kw_only_default=True, field_specifiers=(static,)
)
def record(cls: type[T]) -> type[T]:
    """Make `cls` a frozen, keyword-only dataclass that is also a JAX pytree."""
    _wrap_post_init(cls)
    made = dataclasses.dataclass(frozen=True, kw_only=True, eq=False)(cls)
    fields = dataclasses.fields(made)  # pyright: ignore[reportArgumentType]
    meta = [f.name for f in fields if f.metadata.get("static")]
    data = [f.name for f in fields if f.name not in meta]
    jax.tree_util.register_dataclass(made, data, meta)
    return made


def _wrap_post_init(cls: type) -> None:
    """Run the class's own checks, after numbers were brought to one type.

    A `np.float64` beside a `float` would retrace (JAX gives them different weak
    types), so plain numbers become Python floats and sequences become float arrays.
    """
    own: Callable[[Any], None] | None = getattr(cls, "__post_init__", None)

    def post_init(self: Any) -> None:
        for field in dataclasses.fields(self):
            if not field.metadata.get("static"):
                value = getattr(self, field.name)
                object.__setattr__(self, field.name, _normal(value))
        if own is not None:
            own(self)

    cls.__post_init__ = post_init  # pyright: ignore[reportAttributeAccessIssue]


def _normal(value: Any) -> Any:
    if isinstance(value, bool | np.bool_):
        return value
    if isinstance(value, int | float | np.number):
        return float(value)
    if isinstance(value, list | tuple) and value and not hasattr(value, "_fields"):
        if all(isinstance(v, int | float | np.number) for v in value):
            return np.asarray(value, dtype=float)
    return value


def replace(item: T, **changes: Any) -> T:
    """A copy of a record with some fields changed."""
    return dataclasses.replace(item, **changes)  # pyright: ignore[reportArgumentType]


@contextlib.contextmanager
def double_precision() -> Iterator[None]:
    """Allow float64 inside this block only; the user's JAX settings stay untouched."""
    with jax.enable_x64(True):
        yield


def in_double_precision(function: Callable[..., T]) -> Callable[..., T]:
    """Decorate a public entry point so that float64 arrays stay float64 inside it."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> T:
        with double_precision():
            return function(*args, **kwargs)

    return wrapped


def tree_rows(tree: Any, rows: Any) -> Any:
    """Take `rows` along the first axis of every leaf."""
    return jax.tree.map(lambda leaf: leaf[rows], tree)
