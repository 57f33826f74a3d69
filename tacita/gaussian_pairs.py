"""Gaussian noise of float32 in pairs: two numbers of one hash.

Noise is most of what a private step costs. Made as `jax.random.normal` makes them, each
number takes a hash of two words, joined to one, and the inverse of the error function.
Here both words are used (G. Box, M. Muller, "A note on the generation of random normal
deviates", 1958): with u and v uniform,

    sqrt(-2 ln u) sin(2 pi v)   and   sqrt(-2 ln u) cos(2 pi v)

are independent N(0, 1), in a quarter of the time; u has 31 bits, so that tails reach to
6.6.

The hash is that of `tacita.random_numbers` with 13 rounds instead of 20, the fewest in
which its authors know of no statistical flaw. Keys are hashed with all 20, so that
those of two agents, rounds or steps have nothing in common. It is for simulations: who
is to be protected from others draws from a cryptographic generator, as federations do.

Numbers are made in three passes: the hash, the radius, both numbers. In one pass the
chain from a place to its number is so long that a processor has nothing else to do in
the meantime, which takes a third longer. XLA would join passes, and would make again
whatever two others use; so each is a branch that is taken where noise is not zero, and
the two words of a hash, which are made once, are the parts of one complex number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from tacita.random_numbers import hashed_places, is_written_out

# Of least largest error, below 5e-8: of sin(pi t)/t and cos(pi t) in t^2 for
# |t| <= 1/2, and of ln(1 + m)/m for 1 + m between sqrt(1/2) and sqrt(2).
_SINE = (3.14159264, -5.167710084, 2.550077523, -0.5982912856, 0.07765766031)
_COSINE = (0.9999999535, -4.934792859, 4.058411914, -1.331880161, 0.2196967987)
_LOGARITHM = (
    *(0.9999998431, -0.5000059155, 0.3333603293, -0.2496188599),
    *(0.1987607588, -0.1731100543, 0.1639802898, -0.101411049),
)
_MINUS_TWO_LOGS = tuple(-2 * coefficient for coefficient in _LOGARITHM)
#: sqrt(1/2) as a word: the mantissas of logarithms begin there.
_ROOT_HALF = np.int32(0x3F3504F3)
#: Pairs are drawn up to a multiple of this: XLA gives every thread as many, and where
#: they do not come out even it uses no vectors, which takes 10 times as long.
_EVEN = 64
#: Of fewer numbers most would be drawn for nothing.
LEAST = 64
#: Of the hash.
_ROUNDS = 13


def fit(key: Array, size: int, dtype: Any) -> bool:
    """Whether noise of so many numbers from this kind of key is drawn in pairs."""
    single = np.dtype(dtype) == np.float32
    return single and size >= LEAST and is_written_out(key, np.float32)


def drawn(key: Array, steps: int, size: int) -> Array:
    """N(0, I) for `steps` vectors of `size` numbers: (steps, size or a few more)."""
    always = lax.optimization_barrier(jnp.asarray(True))  # a branch all the same
    return _numbers(key, steps * _even(size), always).reshape(steps, -1)


def drawn_and_added(value: Array, key: Array, std: Array) -> Array:
    """The value, (size,), with std N(0, I) drawn now."""
    numbers = _numbers(key, _even(len(value)), std != 0)
    return value + std * numbers[: len(value)]


def added(value: Array, numbers: Array, std: Array) -> Array:
    """The value, (size,), with std times the first of these numbers."""
    noise = _if(std != 0, lambda numbers: std * numbers, numbers)
    return value + noise[: len(value)]


def _even(size: int) -> int:
    """How many pairs are drawn for so many numbers."""
    return math.ceil(size / (2 * _EVEN)) * _EVEN


def _numbers(key: Array, count: int, wanted: Array) -> Array:
    """Independent N(0, 1) of so many pairs, (2 count,), or zeros."""
    words = _if(wanted, lambda: _words(key, count))
    radius = _if(wanted, _radius, words)
    return _if(wanted, _both, words, radius)


def _if(wanted: Array, make: Callable[..., Array], *given: Array) -> Array:
    """What is made of what is given, once; zeros where it is not wanted."""
    made = jax.eval_shape(make, *given)
    return lax.cond(wanted, make, lambda *_: jnp.zeros(made.shape, made.dtype), *given)


def _words(key: Array, count: int) -> Array:
    """Two random words for every pair, as the parts of a complex number, (count,)."""
    hashed = hashed_places(key, count, _ROUNDS)
    return lax.complex(*(lax.bitcast_convert_type(h, np.float32) for h in hashed))


def _radius(words: Array) -> Array:
    """Of the first word."""
    return jnp.sqrt(_minus_two_logs(lax.bitcast_convert_type(words.real, np.uint32)))


def _both(words: Array, radius: Array) -> Array:
    """The numbers of all pairs, (2 count,): first ones, then second ones."""
    sine, cosine = _on_the_circle(lax.bitcast_convert_type(words.imag, np.uint32))
    return jnp.concatenate([radius * sine, radius * cosine])


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
