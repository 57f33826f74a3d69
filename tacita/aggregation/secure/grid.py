"""The grid on which letters are added: integers modulo 2^word, for NumPy and JAX.

    q = rint(clip(x, -largest, largest) / step)  mod 2^word,   ties to even,

in double precision, and back `step` times q read as a signed number. `step` is a power
of two, so that x/step is exact and both worlds give the same integers.
"""

from __future__ import annotations

import math
from types import ModuleType
from typing import Any

import jax
import numpy as np

from tacita import check

#: Unsigned words of a letter on the grid, and how they are read back, by their bits.
WORDS = {32: (np.uint32, np.int32), 64: (np.uint64, np.int64)}


def quantise(x: Any, step: Any, word: int, largest: Any) -> Any:
    """Numbers as integers of `word` bits; what is larger than `largest` is clamped.

    A number that is none stays out: it must not look like a zero.

    Args:
        x: Numbers in double precision, an array of NumPy or of JAX.
        step: Of the grid, a power of two.
        word: 32 or 64.
        largest: The bound on the size of an entry.

    >>> quantise(np.array([0.5, 1.5, -2.5, 1e9]), 1.0, 32, 1000.0).tolist()
    [0, 2, 4294967294, 1000]
    """
    np_or_jnp = _world(x)
    unsigned, _ = words_of(word)
    power_of_two(step=step)
    if x.dtype != np.float64:
        check.refuse(
            f"a letter on the grid needs double precision, got {x.dtype}: sums of "
            "float32 bound no change of a record; give the problem dtype='float64'"
        )
    if isinstance(x, np.ndarray) and not np.isfinite(x).all():
        check.refuse("a letter has entries that are not numbers; nothing was sent")
    steps = np_or_jnp.rint(np_or_jnp.clip(x, -largest, largest) / step)
    # Through signed integers: a negative float has no unsigned value of its own.
    return steps.astype(np.int64).astype(unsigned)


def dequantise(q: Any, step: Any, word: int) -> Any:
    """What integers of `word` bits stand for: signed, times the step.

    >>> dequantise(np.array([2, 4294967294], np.uint32), 0.5, 32).tolist()
    [1.0, -1.0]
    """
    _, signed = words_of(word)
    power_of_two(step=step)
    return q.astype(signed).astype(np.float64) * step


def words_of(word: int) -> tuple[Any, Any]:
    """The unsigned and the signed type of a word, or a refusal."""
    if word not in WORDS:
        check.refuse(f"expected word 32 or 64, got word={word!r}")
    return WORDS[word]


def power_of_two(**named: Any) -> Any:
    """Refuse a step that is not a power of two: dividing by it would round."""
    ((name, value),) = named.items()
    if check.is_number(value) and np.ndim(value) == 0:
        check.positive(**{name: value})
        if math.frexp(float(value))[0] != 0.5:
            check.refuse(f"expected {name} a power of two, got {name}={value}")
    return value


def _world(x: Any) -> ModuleType:
    """NumPy for its own arrays, JAX's twin for all others."""
    return np if isinstance(x, np.ndarray | np.generic) else jax.numpy
