"""Refusals this room shares: privacy parameters must be concrete numbers.

`tacita.check` lets traced values and missing values through, because algorithms are
built under JAX transformations. A privacy number is never traced, so here only a
real number passes: a missing delta must not become an infinite or a free budget.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tacita import check


def _number(holds: str, named: dict[str, Any]) -> tuple[str, float]:
    ((name, value),) = named.items()
    if not check.is_number(value) or getattr(value, "ndim", 0) != 0:
        check.refuse(f"expected {name} {holds}, got {name}={value!r}")
    return name, float(value)


def positive(**named: Any) -> float:
    """Refuse what is not one finite number > 0; returns a Python float.

    >>> positive(epsilon=-1.0)
    Traceback (most recent call last):
    tacita.check.TacitaError: expected epsilon > 0, got epsilon=-1.0
    """
    name, value = _number("> 0", named)
    return check.positive(**{name: value})


def not_negative(**named: Any) -> float:
    """Refuse what is not one finite number >= 0; returns a Python float."""
    name, value = _number(">= 0", named)
    return check.not_negative(**{name: value})


def positive_array(**named: Any) -> np.ndarray:
    """Refuse what is not a finite number > 0 or a vector of them.

    >>> positive_array(noise_std=[1.0, 0.0])
    Traceback (most recent call last):
    tacita.check.TacitaError: expected noise_std > 0, got 0.0 at [1]
    """
    ((name, value),) = named.items()
    given = np.asarray(value)
    array = given.astype(float) if given.dtype.kind in "iuf" else np.asarray(np.nan)
    if array.ndim > 1 or (array.ndim == 0 and not array > 0):
        check.refuse(f"expected {name} > 0 or one such number per round, got {value!r}")
    bad = np.atleast_1d(~(np.isfinite(array) & (array > 0)))
    if bad.any():
        at = int(np.argmax(bad))
        shown = np.atleast_1d(array)[at]
        check.refuse(f"expected {name} > 0, got {shown} at [{at}]")
    return array


def inside_unit(**named: Any) -> float:
    """Refuse what is not one number strictly between 0 and 1 (a delta).

    >>> inside_unit(delta=1.0)
    Traceback (most recent call last):
    tacita.check.TacitaError: expected delta in (0, 1), got delta=1.0
    """
    name, value = _number("in (0, 1)", named)
    if not 0.0 < value < 1.0:
        check.refuse(f"expected {name} in (0, 1), got {name}={value}")
    return value


def fraction(**named: Any) -> float:
    """Refuse what is not one number in (0, 1] (a rate of sampling)."""
    name, value = _number("in (0, 1]", named)
    if not 0.0 < value <= 1.0:
        check.refuse(f"expected {name} in (0, 1], got {name}={value}")
    return value


def whole(at_least: int = 1, **named: Any) -> int:
    """Refuse what is not one whole number >= `at_least`; returns a Python int."""
    ((name, value),) = named.items()
    if value is None:
        check.refuse(f"expected {name} a whole number >= {at_least}, got {name}=None")
    return check.count(at_least, **{name: value})


def name(**named: Any) -> str:
    """Refuse what is not a string with something in it."""
    ((argument, value),) = named.items()
    if not isinstance(value, str) or not value:
        check.refuse(f"expected {argument} a non-empty string, got {value!r}")
    return value
