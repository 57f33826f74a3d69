"""A table of the discrete Gaussian N_Z(0, 256^2), exact to 128 bits, and its look-up.

    T(u) = #{boundaries <= u} - 3584,   boundary(v) = floor(2^128 P(N_Z <= v)),

for words u of 128 bits. The boundaries are exact: every term of the series is computed
as an integer with 320 bits behind the point, of which the errors touch the last 20. One
draw differs from the discrete Gaussian by 3.3e-36 in total variation; what scaling and
adding cost is in `docs/proof-secure-sums.md`.

There is no rejection, so that how long a draw takes says nothing of it (Jin et al.,
"Are we there yet? Timing and floating-point attacks on differential privacy systems",
2022).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

#: Standard deviation of the table, and how many of them it reaches to either side.
BASE, TAIL = 256, 14
#: The largest absolute value of one draw.
REACH = BASE * TAIL
#: Bits behind the point while boundaries are computed.
_PRECISE = 320
#: The guide is over this many of a word's highest bits.
_GUIDE_BITS = 16
#: Words that are looked up at a time: what fits into the cache of a core.
_BLOCK = 1 << 15


class Table(NamedTuple):
    """The boundaries, parted into words, and where to begin looking.

    Attributes:
        exact: All boundaries, 128 bits each, ascending.
        first: Their high 64 bits.
        below: For the 16 highest bits of a word, how many boundaries lie below all
            words that begin so.
        edge: The first boundary that is not below them.
        crowded: Whether more than one boundary begins so, as in the tails.
    """

    exact: tuple[int, ...]
    first: np.ndarray
    below: np.ndarray
    edge: np.ndarray
    crowded: np.ndarray


@cache
def table() -> Table:
    """The table, computed once in about 10 ms."""
    exact = tuple(_boundaries())
    first = np.array([b >> 64 for b in exact], np.uint64)
    starts = np.arange(2**_GUIDE_BITS, dtype=np.uint64) << np.uint64(64 - _GUIDE_BITS)
    below = np.searchsorted(first, starts, side="left")
    edge = np.append(first, first[-1])[below]
    many = np.diff(np.append(below, len(first)))
    return Table(exact, first, below.astype(np.int16), edge, many > 1)


def _boundaries() -> list[int]:
    """floor(2^128 P(N_Z <= v)) for v = -3584 .. 3583, in integer arithmetic."""
    one = 1 << _PRECISE
    # exp(-v^2 / (2 256^2)) by its neighbours: the ratio of two is q^(2v+1).
    q = _exponential(one, 2 * BASE**2)
    weights, ratio, fade = [one], q, q * q >> _PRECISE
    while weights[-1]:
        weights.append(weights[-1] * ratio >> _PRECISE)
        ratio = ratio * fade >> _PRECISE
    total = 2 * sum(weights) - one
    below = sum(weights[REACH + 1 :])  # of all v < -3584
    found = []
    for v in range(-REACH, REACH):
        below += weights[abs(v)]
        found.append((below << 128) // total)
    return found


def _exponential(one: int, divisor: int) -> int:
    """exp(-1/divisor), times `one`."""
    total = term = one
    for k in range(1, 64):
        term = -term // (divisor * k)
        total += term
    return total


def draw(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """T of 128-bit words, given as their high and low halves.

    >>> draw(np.array([2**63], np.uint64), np.array([0], np.uint64)).tolist()
    [0]
    """
    return look_up(first, lambda places: second[places])


def look_up(
    first: np.ndarray, second_at: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """T of words whose low halves are asked for only where a high half ties.

    Args:
        first: The high halves.
        second_at: From places in `first` to the low halves there.
    """
    found = np.empty(len(first), np.int64)
    for start in range(0, len(first), _BLOCK):
        block = first[start : start + _BLOCK]

        def second_in_block(places: np.ndarray, start: int = start) -> np.ndarray:
            return second_at(places + start)

        found[start : start + _BLOCK] = _look_up_block(block, second_in_block)
    return found


def _look_up_block(
    first: np.ndarray, second_at: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    known = table()
    top = (first >> np.uint64(64 - _GUIDE_BITS)).astype(np.int64)
    edge = known.edge.take(top)
    index = known.below.take(top) + (edge < first)
    ties = np.flatnonzero(edge == first)
    crowded = np.flatnonzero(known.crowded.take(top))
    if len(crowded):
        words = first[crowded]
        index[crowded] = place = np.searchsorted(known.first, words, side="left")
        same = known.first[np.minimum(place, len(known.first) - 1)] == words
        ties = np.union1d(ties, crowded[same])
    if len(ties):
        for place, low in zip(ties, second_at(ties), strict=True):
            word = (int(first[place]) << 64) | int(low)
            index[place] = bisect_right(known.exact, word)
    return index - np.int64(REACH)
