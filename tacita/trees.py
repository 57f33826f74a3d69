"""Frozen records that JAX can trace: numbers are leaves, counts and functions static.

Changing a leaf does not recompile, and a sweep over leaves is one `vmap`. Changing a
static field compiles anew.

Fields carry their rule: what they may hold, and how theory sets them.

>>> from tacita import check
>>> @frozen
... class Descent:
...     step_size: float = number(check.positive, theory=lambda problem: 0.5)
...     steps: int = count(10)
...     weights: str = one_of("uniform", "samples")
>>> Descent(step_size=-1)
Traceback (most recent call last):
tacita.check.TacitaError: expected step_size > 0, got step_size=-1.0
>>> filled(Descent(steps=3), "a problem")
Descent(step_size=0.5, steps=3, weights='uniform')
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar, dataclass_transform

import jax
import numpy as np

from tacita import check

T = TypeVar("T")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rule:
    """What a field may hold, and how it is set where it was left out.

    Attributes:
        check: Called with the value by its name: refuses it, or returns what to keep.
        words: The range in words, for tables.
        theory: Of a field that is None: a function of what the record is resolved
            for, as a problem, and if it likes of the record as it is by then.
        common: Whether it must be one number for all agents.
        called: The name in refusals, where it is not the field's own.
        scheduled: Whether it may differ between rounds, see `tacita.schedule`.
        lacking: Whether a value leaves something to theory.
        put: What a field holds after theory: of the value given, and of theory's.
    """

    check: Callable[..., Any]
    words: str
    theory: Callable[..., Any] | None = None
    common: bool = False
    called: str | None = None
    scheduled: bool = False
    lacking: Callable[[Any], bool] = lambda value: value is None
    put: Callable[[Any, Any], Any] = lambda given, value: value


@functools.cache
def rules(cls: Any) -> dict[str, Rule]:
    """The rules of a class of records by field, in their order."""
    fields = dataclasses.fields(cls)
    return {f.name: f.metadata["rule"] for f in fields if "rule" in f.metadata}


def ruled(
    default: Any,
    check: Callable[..., Any],
    static: bool = False,
    kw_only: bool = True,
    **rule: Any,
) -> Any:
    """A field with a rule of its own; see `Rule` for the other arguments."""
    metadata = {"static": static, "rule": Rule(check=check, **rule)}
    return dataclasses.field(default=default, metadata=metadata, kw_only=kw_only)


def number(
    within: check.Range,
    default: Any = None,
    *,
    theory: Callable[..., Any] | None = None,
    common: bool = False,
) -> Any:
    """A leaf in a range, such as `check.positive`."""
    told = {"words": within.words, "theory": theory, "common": common}
    return ruled(default, within, **told)


def needed(
    within: check.Range,
    *,
    common: bool = False,
    called: str | None = None,
    kw_only: bool = True,
) -> Any:
    """A leaf in a range that the user must give."""
    told = {"words": within.words, "common": common, "called": called}
    return ruled(dataclasses.MISSING, within, kw_only=kw_only, **told)


def count(default: int | None, at_least: int = 1) -> Any:
    """A static whole number."""
    rule = functools.partial(check.count, at_least)
    return ruled(default, rule, True, words=f"a whole number >= {at_least}")


def one_of(*choices: str, called: str | None = None) -> Any:
    """A static word; the first choice is the default."""
    rule = functools.partial(check.one_of, choices)
    return ruled(choices[0], rule, True, words=" or ".join(choices), called=called)


def flag(default: bool) -> Any:
    """A static truth value."""
    return ruled(default, check.flag, True, words="true or false")


def static(default: Any = dataclasses.MISSING, **options: Any) -> Any:
    """A field that is part of the compiled program: a count, a word, a function."""
    return dataclasses.field(default=default, metadata={"static": True}, **options)


def check_fields(record: Any) -> None:
    """Refuse a record with a field against its rule."""
    for name, rule in rules(type(record)).items():
        kept = rule.check(**{rule.called or name: getattr(record, name)})
        object.__setattr__(record, name, kept)


def filled(record: T, *known: Any) -> T:
    """The same record; in their order, fields that were left out are set by theory."""
    for name, rule in rules(type(record)).items():
        given = getattr(record, name)
        if rule.theory is not None and rule.lacking(given):
            wanted = len(inspect.signature(rule.theory).parameters)
            try:
                value = rule.theory(*(*known, record)[:wanted])
            except ZeroDivisionError:
                check.refuse(
                    f"theory sets no {name} for losses that are flat, as those of rows "
                    f"of zeros; give {name}= yourself, or add l2 > 0"
                )
            record = replace(record, **{name: rule.put(given, value)})
    return record


# Only fields without a default are named to type checkers, which would take the others
# for fields that must be given.
@dataclass_transform(
    frozen_default=True,
    kw_only_default=True,
    field_specifiers=(dataclasses.field, static, needed),
)
def checked(cls: type[T]) -> type[T]:
    """Make `cls` a frozen, keyword-only dataclass whose fields carry their rules."""
    _begin_with(cls, check_fields)
    return dataclasses.dataclass(frozen=True, kw_only=True)(cls)


@dataclass_transform(
    frozen_default=True,
    kw_only_default=True,
    field_specifiers=(dataclasses.field, static, needed),
)
def frozen(cls: type[T]) -> type[T]:
    """Make `cls` a record with rules that is also a JAX pytree."""
    _begin_with(cls, _normalise, check_fields)
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


def _begin_with(cls: type, *first: Callable[[Any], None]) -> None:
    """Run these after construction, then the class's own checks."""
    own: Callable[[Any], None] | None = getattr(cls, "__post_init__", None)

    def post_init(self: Any) -> None:
        for step in first:
            step(self)
        if own is not None:
            own(self)

    cls.__post_init__ = post_init  # pyright: ignore[reportAttributeAccessIssue]


def _normalise(record: Any) -> None:
    """Bring numbers to one type: plain ones to floats, sequences to float arrays.

    A `np.float64` beside a `float` would retrace: JAX gives them different weak types.
    """
    for field in dataclasses.fields(record):
        if not field.metadata.get("static"):
            value = getattr(record, field.name)
            object.__setattr__(record, field.name, _normal(value))


def _normal(value: Any) -> Any:
    if isinstance(value, bool | np.bool_):
        return value
    if isinstance(value, int | float | np.number):
        return check.as_float(value)
    if isinstance(value, list | tuple) and value and not hasattr(value, "_fields"):
        if all(isinstance(v, int | float | np.number) for v in value):
            return np.asarray([check.as_float(v) for v in value])
    return value


def replace(item: T, **changes: Any) -> T:
    """A copy of a record with some fields changed."""
    return dataclasses.replace(item, **changes)  # pyright: ignore[reportArgumentType]


@contextlib.contextmanager
def double_precision() -> Iterator[None]:
    """Allow float64 inside this block only; the user's JAX settings stay untouched."""
    with jax.enable_x64(True):
        yield


@contextlib.contextmanager
def precision_of(dtype: Any) -> Iterator[None]:
    """Trace what others wrote in the precision of its numbers.

    With float64 allowed, as it is in runs, `jnp.zeros(n)` in a model of float32 would
    be float64, and so would be all that it touches.
    """
    with jax.enable_x64(np.dtype(dtype) == np.float64):
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
