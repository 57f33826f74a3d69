"""Discrete Gaussian noise from a table: one fixed N_Z(0, 256^2), and sums of it.

    T(u) = #{boundaries <= u} - 3584,   boundary(v) = floor(2^128 P(N_Z <= v)),
    noise = sum_l k_l T(u_l),           words u of 128 bits, integers k_l (`multiples`).

The boundaries are exact: every term of the series is computed as an integer with 320
bits behind the point, of which the errors touch the last 20. One draw differs from the
discrete Gaussian by 3.3e-36 in total variation; what scaling and adding cost is in
`docs/proof-secure-sums.md`.

There is no rejection, so that how long a draw takes says nothing of it (Jin et al.,
"Are we there yet? Timing and floating-point attacks on differential privacy systems",
2022).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from typing import NamedTuple

import numpy as np

from tacita import check
from tacita.aggregation.secure.derive import derive, stream

#: Standard deviation of the table, and how many of them it reaches to either side.
BASE, TAIL = 256, 14
#: The largest absolute value of one draw.
REACH = BASE * TAIL
#: Bits behind the point while boundaries are computed.
_PRECISE = 320
#: By how much `multiples` may exceed the variance asked for, where it can be helped.
_OVERSHOOT = Fraction(65, 64)
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


def multiples(sigma: float) -> tuple[int, ...]:
    """Integers k_1 = 1, k_2, ... such that 256^2 sum k^2 >= sigma^2, by little.

    In ascending order, each at most a third of the standard deviation so far, so that
    the sum of draws is a discrete Gaussian to 1e-74.

    >>> multiples(5000.0)
    (1, 5, 19)
    """
    sigma = float(check.positive(sigma=check.given(sigma=sigma)))
    wanted = Fraction(sigma) ** 2 / BASE**2
    found = [1]
    while (missing := wanted - sum(k * k for k in found)) > 0:
        most, root = _most(found), math.isqrt(math.floor(missing))
        if root >= most:
            found.append(most)
            continue
        reached = wanted - missing + (root + 1) ** 2
        found.append(root if root and reached > _OVERSHOOT * wanted else root + 1)
    return tuple(sorted(found))


@cache
def multiples_of_sum(each: tuple[int, ...], times: int) -> tuple[int, ...]:
    """Integers whose squares sum to exactly `times` those of `each`, few of them.

    One noise with them has the law of the sum of `times` independent ones.

    >>> multiples_of_sum((1, 5, 19), 20)
    (1, 85, 21, 8, 3)
    """
    missing = times * sum(k * k for k in each) - 1
    found = [1]
    while math.isqrt(missing) > (most := _most(found)):
        found.append(most)
        missing -= most**2
    return (*found, *_squares(missing))


def _squares(number: int) -> tuple[int, ...]:
    """At most four integers whose squares sum to a number, the largest first."""
    root = math.isqrt(number)
    if root**2 == number:
        return (root,) if root else ()
    odd = number
    while odd % 4 == 0:
        odd //= 4
    if odd % 8 == 7:  # no three squares do (Legendre), four do (Lagrange)
        return (root, *_squares(number - root**2))
    for largest in range(root, 0, -1):
        rest = number - largest**2
        for second in range(math.isqrt(rest), math.isqrt(rest // 2) - 1, -1):
            third = math.isqrt(rest - second**2)
            if second**2 + third**2 == rest:
                return tuple(k for k in (largest, second, third) if k)
    raise AssertionError("every other number is a sum of three squares")


def chain(each: Sequence[int]) -> tuple[int, ...]:
    """Multiples, refused unless their draws add up to a discrete Gaussian."""
    whole = tuple(int(k) for k in each)
    for number, k in enumerate(whole):
        if k < 1 or k > (_most(whole[:number]) if number else 1):
            check.refuse(
                "expected multiples to begin with 1 and each to be at most a third of "
                f"the noise before it, got {k} at [{number}]; let tacita.private set "
                "them"
            )
    return whole


def _most(found: Sequence[int]) -> int:
    """A third of the standard deviation so far: the largest multiple that may follow.

    floor(sqrt(v)/3) = floor(sqrt(v)) // 3 for whole v.
    """
    return math.isqrt(BASE**2 * sum(k * k for k in found)) // 3


def agent_noise(
    secret: bytes, context: bytes, each: tuple[int, ...], entries: int
) -> np.ndarray:
    """One agent's noise in one exchange, a function of its secret and the context.

    Args:
        secret: The agent's, of this run.
        context: Digest of run, roster, round, phase and question.
        each: The `multiples` that everybody uses.
        entries: Numbers in a letter.
    """
    key = derive(secret, b"noise", context)
    total = np.zeros(entries, np.int64)
    for number, k in enumerate(each):
        first = stream(key, 2 * number, entries, np.uint64)

        def second_at(places: np.ndarray, tag: int = 2 * number + 1) -> np.ndarray:
            return stream(key, tag, entries, np.uint64)[places]

        total += k * look_up(first, second_at)
    return total
