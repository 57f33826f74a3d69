"""Refusals this room shares: privacy parameters must be concrete numbers.

`tacita.check` lets traced values and missing values through, because algorithms are
built under JAX transformations. A privacy number is never traced, so here only a
real number passes: a missing delta must not become an infinite or a free budget.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tacita import check


class Concrete(check.Range):
    """Refuse what is not one finite number in range; returns a Python float.

    >>> positive(epsilon=-1.0)
    Traceback (most recent call last):
    tacita.check.TacitaError: expected epsilon > 0, got epsilon=-1.0
    >>> inside_unit(delta=None)
    Traceback (most recent call last):
    tacita.check.TacitaError: expected delta in (0, 1), got delta=None
    """

    def __call__(self, **named: Any) -> float:
        """The value of the one argument, unless it is refused."""
        ((name, value),) = named.items()
        if not check.is_number(value) or getattr(value, "ndim", 0) != 0:
            check.refuse(f"expected {name} {self.words}, got {name}={value!r}")
        return super().__call__(**{name: float(value)})


positive = Concrete(**vars(check.positive))
not_negative = Concrete(**vars(check.not_negative))
inside_unit = Concrete(**vars(check.inside_unit))
below_one = Concrete(**vars(check.below_one))
fraction = Concrete(**vars(check.fraction))


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
