"""Gaussian noise of float32 in pairs: two numbers of one hash.

Noise is most of what a private step costs. Made as `jax.random.normal` makes them, each
number takes a hash of two words, joined to one, and the inverse of the error function.
Here both words are used (G. Box, M. Muller, "A note on the generation of random normal
deviates", 1958): with u and v uniform,

    sqrt(-2 ln u) sin(2 pi v)   and   sqrt(-2 ln u) cos(2 pi v)

are independent N(0, 1), in 0.3 of the time; u has 31 bits, so that tails reach to 6.6.

The hash is that of `tacita.random_numbers` with 13 rounds instead of 20, the fewest in
which its authors know of no statistical flaw. Keys are hashed with all 20, so that
those of two agents, rounds or steps have nothing in common. It is for simulations: who
is to be protected from others draws from a cryptographic generator, as federations do.

A pair is held as a complex number, and taken apart in a branch for noise that is not
zero. Both are for XLA, which makes again whatever two others use: a complex number is
made once, and so is what a branch is given or gives.
"""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from tacita.random_numbers import hashed_places, is_written_out

# Least squares at Chebyshev's nodes, errors below 1e-7: of sin(pi t)/t and cos(pi t) in
# t^2 for |t| <= 1/2, and of ln(1 + m)/m for 1 + m between sqrt(1/2) and sqrt(2).
_SINE = (3.14159264, -5.167710084, 2.550077523, -0.5982912856, 0.07765766031)
_COSINE = (
    *(0.9999999998, -4.934802137, 4.05870916),
    *(-1.335212003, 0.234937314, -0.0243963246),
)
_LOGARITHM = (
    *(0.9999999743, -0.4999998703, 0.3333418334, -0.2500215346, 0.1995697748),
    *(-0.1656069599, 0.1494909548, -0.1437733057, 0.08743945357),
)
_MINUS_TWO_LOGS = tuple(-2 * coefficient for coefficient in _LOGARITHM)
#: sqrt(1/2) as a word: the mantissas of logarithms begin there.
_ROOT_HALF = np.int32(0x3F3504F3)
#: Pairs are drawn up to a multiple of this: XLA gives every thread as many, and where
#: they do not come out even it uses no vectors, which takes 10 times as long.
_EVEN = 64
#: Of fewer numbers most would be drawn for nothing.
_LEAST = 64
#: Of the hash.
_ROUNDS = 13


def fit(key: Array, size: int, dtype: Any) -> bool:
    """Whether noise of so many numbers from this kind of key is drawn in pairs."""
    single = np.dtype(dtype) == np.float32
    return single and size >= _LEAST and is_written_out(key, np.float32)


def drawn(key: Array, steps: int, size: int) -> Array:
    """Pairs for `steps` vectors of `size` numbers: (steps, size/2 or a few more)."""
    count = _even(size)
    return _pairs(key, steps * count).reshape(steps, count)


def drawn_and_added(value: Array, key: Array, std: Array) -> Array:
    """The value, (size,), with std N(0, I) drawn now."""
    count = _even(len(value))
    pairs = lax.cond(
        std != 0, lambda: _pairs(key, count), lambda: jnp.zeros(count, np.complex64)
    )
    return added(value, pairs, std)


def added(value: Array, pairs: Array, std: Array) -> Array:
    """The value, (size,), with std times the first numbers of these pairs."""
    pairs = pairs[: math.ceil(len(value) / 2)]
    numbers = lax.cond(
        std != 0,
        lambda pairs: jnp.concatenate([pairs.real, pairs.imag]),
        lambda pairs: jnp.zeros(2 * len(pairs), np.float32),
        pairs,
    )
    return value + std * numbers[: len(value)]


def _even(size: int) -> int:
    """How many pairs are drawn for so many numbers."""
    return math.ceil(size / (2 * _EVEN)) * _EVEN


def _pairs(key: Array, count: int) -> Array:
    """Two independent N(0, 1) as one complex number, (count,)."""
    first, second = hashed_places(key, count, _ROUNDS)
    radius = jnp.sqrt(_minus_two_logs(first))
    sine, cosine = _on_the_circle(second)
    return lax.complex(radius * sine, radius * cosine)


def _minus_two_logs(word: Array) -> Array:
    """-2 ln u of a number u in (0, 1] that 31 bits of the word make."""
    whole = (word >> np.uint32(1)).astype(np.int32).astype(np.float32)
    # 2^31 u = 2^e (1 + m)
    bits = lax.bitcast_convert_type(whole + np.float32(0.5), np.int32)
    shifted = bits - _ROOT_HALF
    e = (shifted >> np.int32(23)).astype(np.float32)
    mantissa = (shifted & np.int32(0x7FFFFF)) + _ROOT_HALF
    m = lax.bitcast_convert_type(mantissa, np.float32) - np.float32(1)
    of_two = (np.float32(31) - e) * np.float32(2 * math.log(2))
    return of_two + m * _polynomial(_MINUS_TWO_LOGS, m)


def _on_the_circle(word: Array) -> tuple[Array, Array]:
    """Sine and cosine of a uniform angle."""
    # Behind the binary point of 1: t in [-1/2, 1/2), half of the circle ...
    behind = (word >> np.uint32(9)) | np.uint32(0x3F800000)
    t = lax.bitcast_convert_type(behind, np.float32) - np.float32(1.5)
    sine = t * _polynomial(_SINE, t * t)
    cosine = _polynomial(_COSINE, t * t)
    # ... and the last bit says which.
    turned = lax.bitcast_convert_type(cosine, np.uint32) ^ (word << np.uint32(31))
    return sine, lax.bitcast_convert_type(turned, np.float32)


def _polynomial(coefficients: tuple[float, ...], x: Array) -> Array:
    """Lowest power first; Horner's rule."""
    *others, last = map(np.float32, coefficients)
    value: Any = last
    for coefficient in reversed(others):
        value = value * x + coefficient
    return value
