"""Frozen records that JAX can trace: numbers are leaves, counts and functions static.

Changing a leaf does not recompile, and a sweep over leaves is one `vmap`. Changing a
static field compiles anew.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
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
def frozen(cls: type[T]) -> type[T]:
    """Make `cls` a frozen, keyword-only dataclass that is also a JAX pytree."""
    _wrap_post_init(cls)
    made = dataclasses.dataclass(frozen=True, kw_only=True, eq=False)(cls)
    fields = dataclasses.fields(made)  # pyright: ignore[reportArgumentType]
    meta = [f.name for f in fields if f.metadata.get("static")]
    data = [f.name for f in fields if f.name not in meta]
    register(made, data, meta)
    return made


def register(cls: type[T], data: Sequence[str], meta: Sequence[str]) -> type[T]:
    """Make `cls` a pytree whose structure names its class.

    JAX's own `register_dataclass` is not used: it takes two records of different
    classes with the same fields for the same structure, so that now and then the
    compiled program of one is run for the other.
    """

    def told(item: Any) -> tuple[Any, ...]:
        return cls, *(getattr(item, name) for name in meta)

    def flatten(item: Any) -> tuple[list[Any], tuple[Any, ...]]:
        return [getattr(item, name) for name in data], told(item)

    def flatten_with_keys(item: Any) -> tuple[list[Any], tuple[Any, ...]]:
        pairs = [(jax.tree_util.GetAttrKey(name), getattr(item, name)) for name in data]
        return pairs, told(item)

    def unflatten(kept: tuple[Any, ...], leaves: Any) -> Any:
        fields = dict(zip(meta, kept[1:], strict=True))
        return cls(**fields, **dict(zip(data, leaves, strict=True)))

    jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)
    return cls


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
