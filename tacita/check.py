"""The one way to refuse input: one line, naming the argument, its value, the remedy.

Every check returns the value it was given, so it can stand in an assignment. Values
that are traced by JAX pass through: a dataclass registered as a pytree runs its
checks again with tracers, where no number is there to look at. So do numbers of which
a part lies in another process.
"""

from __future__ import annotations

import difflib
import math
import os
import unicodedata
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import jax
import numpy as np
from jax.core import Tracer


class TacitaError(ValueError):
    """Input that Tacita refuses. The message is one line and names the remedy."""


def refuse(message: str) -> NoReturn:
    """Raise the error that the command line turns into one line and exit code 2."""
    raise TacitaError(" ".join(message.split("\n")))


def printable(text: str, most: int = 1000) -> str:
    """Others' words, fit for a terminal or a log: one line, nothing that controls it.

    >>> printable("all is" + chr(27) + "[2J well" + chr(10))
    'all is?[2J well?'
    >>> printable("x" * 50, most=8)
    'xxxxx...'
    """
    short = text if len(text) <= most else f"{text[: most - 3]}..."
    # Category C: control characters, invisible marks that reorder text, surrogates.
    return "".join("?" if unicodedata.category(c)[0] == "C" else c for c in short)


def is_number(value: Any) -> bool:
    """Say whether `value` is a concrete real number or an array of them."""
    if isinstance(value, bool | np.bool_ | Tracer | jax.ShapeDtypeStruct):
        return False
    if _is_elsewhere(value):
        return False
    if isinstance(value, int | float | np.number):
        return True
    return isinstance(value, np.ndarray | jax.Array) and (
        np.issubdtype(value.dtype, np.number)
    )


def _is_abstract(value: Any) -> bool:
    """Tracers and the placeholders that JAX puts in pytrees carry no number."""
    if isinstance(value, Tracer) or type(value) is object or value is None:
        return True
    if _is_elsewhere(value):
        return True
    foreign = type(value).__module__.partition(".")[0] == "jax"
    return foreign and not isinstance(value, jax.Array)


def _is_elsewhere(value: Any) -> bool:
    """Whether an array lies on devices of other processes too, cut: JAX reads none."""
    if not isinstance(value, jax.Array) or isinstance(value, Tracer):
        return False
    return not (value.is_fully_addressable or value.is_fully_replicated)


@dataclass(frozen=True)
class Range:
    """Refuse a number, or an array with an entry, that is not finite and in range.

    Attributes:
        words: The range in words, for refusals and for tables.
        test: What must hold of every entry.

    >>> positive(rho=0.5)
    0.5
    >>> positive(rho=0.0)
    Traceback (most recent call last):
    tacita.check.TacitaError: expected rho > 0, got rho=0.0
    """

    words: str
    test: Callable[[np.ndarray], Any]

    def __call__(self, **named: Any) -> Any:
        """The value of the one argument, unless it is refused."""
        ((name, value),) = named.items()
        if _is_abstract(value):
            return value
        if not is_number(value):
            refuse(f"expected {name} {self.words}, got {name}={value!r}")
        array = np.asarray(value)
        if array.dtype == object:  # whole numbers beyond 64 bits
            array = np.asarray(as_float(value))
        good = np.isfinite(array) & self.test(array)
        if not np.all(good):
            bad = array[~good].ravel()[0]
            refuse(f"expected {name} {self.words}, got {name}={bad}")
        return value


def as_float(value: Any) -> float:
    """A number as a float; whole ones beyond the largest float are infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


positive = Range("> 0", lambda v: v > 0)
not_negative = Range(">= 0", lambda v: v >= 0)
#: A delta.
inside_unit = Range("in (0, 1)", lambda v: (v > 0) & (v < 1))
#: A rate of sampling.
fraction = Range("in (0, 1]", lambda v: (v > 0) & (v <= 1))
#: Counts that may differ between agents.
whole = Range("a whole number >= 1", lambda v: (v >= 1) & (v == np.rint(v)))
any_number = Range("a finite number", lambda v: np.isfinite(v))
#: What is kept of something that has to move on.
below_one = Range("in [0, 1)", lambda v: (v >= 0) & (v < 1))


def between(low: float, high: float) -> Range:
    """The range [low, high]."""
    return Range(f"in [{low:g}, {high:g}]", lambda v: (v >= low) & (v <= high))


def flag(**named: Any) -> Any:
    """Refuse what is not true or false; a word like "no" would count as true."""
    ((name, value),) = named.items()
    if not isinstance(value, bool):
        refuse(f"expected {name} true or false, got {name}={value!r}")
    return value


def count(at_least: int = 1, **named: Any) -> Any:
    """Refuse what is not a whole number >= `at_least`; returns a Python int.

    >>> count(local_steps=5)
    5
    >>> count(steps=0)
    Traceback (most recent call last):
    tacita.check.TacitaError: expected steps a whole number >= 1, got steps=0
    """
    ((name, value),) = named.items()
    if _is_abstract(value):
        return value
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < at_least:
        refuse(f"expected {name} a whole number >= {at_least}, got {name}={value!r}")
    if value > LARGEST_SEED:  # what no program can count to
        refuse(
            f"expected {name} <= {LARGEST_SEED}, got {name}={printable(str(value), 60)}"
        )
    return int(value)


def given(**named: Any) -> Any:
    """Refuse None, which the other checks let pass for the sake of JAX."""
    ((name, value),) = named.items()
    if value is None:
        refuse(f"expected {name} a number, got {name}=None")
    return value


def common(**named: Any) -> Any:
    """Refuse numbers of single agents where one is meant for all.

    >>> common(l2=[0.1, 0.2])
    Traceback (most recent call last):
    tacita.check.TacitaError: expected l2 one number, common to all agents, got an array
    """
    ((name, value),) = named.items()
    if np.ndim(value):
        refuse(f"expected {name} one number, common to all agents, got an array")
    return value


#: Seeds are whole numbers of 64 bits.
LARGEST_SEED = 2**63 - 1


def seed(most: int = LARGEST_SEED, **named: Any) -> int:
    """Refuse what is not a whole number from 0 to `most`; returns a Python int.

    >>> seed(seed=2**70)
    Traceback (most recent call last):
    tacita.check.TacitaError: expected seed <= 9223372036854775807, got seed=1180591620717411303424
    """  # noqa: E501
    ((name, value),) = named.items()
    number = count(0, **{name: given(**named)})
    if number > most:
        refuse(f"expected {name} <= {most}, got {name}={value}")
    return number


def folder(**named: Path) -> Path:
    """Make a folder unless it is there; refuse a path at which nothing can be kept."""
    ((name, path),) = named.items()
    if path.is_file():
        refuse(f"{name}={str(path)!r} is a file; name a folder")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        refuse(
            f"cannot make the folder {name}={str(path)!r}: "
            f"{error.strerror or error}; name another"
        )
    if not os.access(path, os.W_OK):
        refuse(f"cannot write into {name}={str(path)!r}; name another folder")
    return path


def one_of(choices: Iterable[str], **named: Any) -> Any:
    """Refuse a word that is not one of `choices`, naming the nearest one.

    >>> one_of(("uniform", "samples"), weights="sample")
    Traceback (most recent call last):
    tacita.check.TacitaError: unknown weights='sample'; did you mean 'samples'? known: uniform, samples
    """  # noqa: E501
    ((name, value),) = named.items()
    known = list(choices)
    if isinstance(value, Hashable) and value in known:
        return value
    refuse(f"unknown {name}={value!r}; {nearest(value, known)}")


def nearest(word: Any, known: Iterable[str]) -> str:
    """A hint for a misspelt word: the nearest known one, then all of them."""
    known = list(known)
    # Comparing takes the product of the lengths: others' words may be long.
    lower = {one.lower(): one for one in reversed(known)}
    asked = str(word)[:60].lower()
    close = difflib.get_close_matches(asked, lower, n=1, cutoff=0.5)
    hint = f"did you mean {lower[close[0]]!r}? " if close else ""
    return f"{hint}known: {', '.join(known)}"


def finite(**named: Any) -> Any:
    """Refuse an array with NaN or infinite entries, naming the first one."""
    ((name, value),) = named.items()
    if _is_abstract(value):
        return value
    array = _array(name, value)
    if not np.issubdtype(array.dtype, np.number):
        refuse(f"expected {name} numeric, got dtype {array.dtype}")
    bad = ~np.isfinite(array)
    if bad.any():
        where = tuple(int(i) for i in np.argwhere(bad)[0])
        refuse(
            f"{name} has {int(bad.sum())} NaN or infinite entries, the first at "
            f"{list(where)}; remove or impute them"
        )
    return value


def shape(expected: tuple[int | None, ...], **named: Any) -> Any:
    """Refuse an array whose shape differs; None stands for any length."""
    ((name, value),) = named.items()
    if type(value) is object or value is None:
        return value
    got = np.shape(value)
    fits = len(got) == len(expected) and all(
        e is None or e == g for e, g in zip(expected, got, strict=True)
    )
    if not fits:
        sides = ["any" if e is None else str(e) for e in expected]
        want = f"({sides[0]},)" if len(sides) == 1 else f"({', '.join(sides)})"
        refuse(f"expected {name} of shape {want}, got shape {got}")
    return value


def column(**named: Any) -> np.ndarray:
    """One value per row, all of one kind, none missing; pandas columns become arrays.

    >>> column(agent=["a", None, "b"])
    Traceback (most recent call last):
    tacita.check.TacitaError: agent has no value in 1 rows, the first is row 1; fill it in or drop the rows
    >>> column(agent=["a", 2])
    Traceback (most recent call last):
    tacita.check.TacitaError: agent mixes numbers and str; make all its values of one kind
    """  # noqa: E501
    ((name, value),) = named.items()
    array = _array(name, value)
    shape((None,), **{name: array})
    missing = _missing(array, value)
    if missing.any():
        refuse(
            f"{name} has no value in {int(missing.sum())} rows, the first is row "
            f"{int(np.argmax(missing))}; fill it in or drop the rows"
        )
    if array.dtype == object or _was_listed(array, value):
        kinds = {_kind(v) for v in _objects(value).tolist()}
        if len(kinds) > 1:
            both = " and ".join(sorted(kinds)[:2])
            refuse(f"{name} mixes {both}; make all its values of one kind")
        if array.dtype == object and kinds <= {"numbers", "bool"}:
            return np.array(array.tolist())
    return array


def no_masks(name: str, value: Any) -> None:
    """Refuse an array with masked entries: NumPy would take what lies under them."""
    if np.ma.is_masked(value):
        refuse(
            f"{name} has {int(np.ma.count_masked(value))} masked entries; fill them in "
            f"with {name}.filled(...), or drop the rows"
        )


def _array(name: str, value: Any) -> np.ndarray:
    no_masks(name, value)
    try:
        return np.asarray(value)
    except ValueError:
        refuse(f"{name} has rows of different lengths; make them equally long")


def _kind(value: Any) -> str:
    real = isinstance(value, float | np.floating)
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    # 1 beside 1.5 is a column of numbers.
    return "numbers" if real or whole else type(value).__name__


def _was_listed(array: np.ndarray, value: Any) -> bool:
    """Whether NumPy made text of a list: None, NaN and numbers beside words too."""
    return array.dtype.kind in "US" and not isinstance(value, np.ndarray)


def _objects(value: Any) -> np.ndarray:
    return np.asarray(value, dtype=object)


def _missing(array: np.ndarray, value: Any) -> np.ndarray:
    if array.dtype == object or _was_listed(array, value):
        import pandas as pd  # slow to import, and numbers do without

        return np.asarray(pd.isna(_objects(value)))
    if array.dtype.kind in "mM":
        return np.isnat(array)
    return np.isnan(array) if array.dtype.kind in "fc" else np.zeros(len(array), bool)
