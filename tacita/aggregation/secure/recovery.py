"""A secret out of shares some of which are false.

Whether a secret is the right one can be seen (its digest or public key was published),
so any t true shares will do. Up to (m - t)/2 false ones among m are found by decoding a
Reed-Solomon code (S. Gao, "A new algorithm for decoding Reed-Solomon codes", 2003);
beyond, holders can be left out in turn while that is affordable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import combinations, islice
from math import comb
from typing import NamedTuple

from tacita.aggregation.secure.shares import PRIME, SECRET_BYTES, join

#: How many choices of holders are tried for one secret, at most.
_MOST_TRIES = 300


class Recovered(NamedTuple):
    """What shares came to.

    Attributes:
        secret: None if no t of them fit.
        false: Points whose shares do not lie on the secret's polynomial.
        dealer_lied: Whether it is certain that the dealer's shares never fitted, as
            long as no more than the given number of holders lie.
    """

    secret: bytes | None
    false: tuple[int, ...] = ()
    dealer_lied: bool = False


def recover(
    shares: Mapping[int, int],
    needed: int,
    colluding: int,
    fits: Callable[[bytes], bool],
    search: bool = True,
) -> Recovered:
    """The secret of shares by their points.

    Args:
        shares: Values by points, those to be tried first in front.
        needed: t; there are as many shares at least.
        colluding: How many holders may lie.
        fits: Whether a secret is the one that was published.
        search: Whether to leave out holders in turn; nobody is accused without it.
    """
    points, spare = tuple(shares), len(shares) - needed
    if (secret := _fitting(shares, points[:needed], fits)) is not None:
        # Whether the others are false does not matter for the sum.
        return Recovered(secret)
    polynomial = decode(shares, needed)
    if polynomial is not None and (secret := _as_secret(polynomial)) is not None:
        if fits(secret):
            return Recovered(secret, _off(shares, polynomial))
    if not search:
        return Recovered(None)
    most_out = min(colluding, spare)
    choices = sum(comb(len(points), out) for out in range(1, most_out + 1))
    for chosen in islice(_left_out(points, most_out), _MOST_TRIES):
        kept = tuple(p for p in points if p not in chosen)[:needed]
        secret = _fitting(shares, kept, fits)
        if secret is not None:
            polynomial = interpolate({p: shares[p] for p in kept})
            return Recovered(secret, _off(shares, polynomial))
    all_decoded = spare >= 2 * colluding
    all_tried = spare >= colluding and choices <= _MOST_TRIES
    return Recovered(None, dealer_lied=all_decoded or all_tried)


def _left_out(points: tuple[int, ...], most: int) -> Iterator[tuple[int, ...]]:
    for out in range(1, most + 1):
        yield from combinations(points, out)


def _fitting(
    shares: Mapping[int, int], points: tuple[int, ...], fits: Callable[[bytes], bool]
) -> bytes | None:
    secret = join(points, [shares[p] for p in points])
    return secret if secret is not None and fits(secret) else None


def _as_secret(polynomial: list[int]) -> bytes | None:
    value = polynomial[0] if polynomial else 0
    if value.bit_length() > 8 * SECRET_BYTES:
        return None
    return value.to_bytes(SECRET_BYTES, "little")


def _off(shares: Mapping[int, int], polynomial: list[int]) -> tuple[int, ...]:
    return tuple(p for p, v in shares.items() if _value(polynomial, p) != v % PRIME)


# Polynomials mod p: lists of coefficients, that of x^0 first, no zeros at the end.


def decode(shares: Mapping[int, int], needed: int) -> list[int] | None:
    """The polynomial of degree < t that most shares lie on; None if there is none.

    >>> decode({1: 3, 2: 5, 3: 1, 4: 9}, 2)  # 1 + 2 x, false at 3
    [1, 2]
    """
    above = [1]
    for point in shares:
        above = _times(above, [-point % PRIME, 1])
    below, low, high = interpolate(shares), [1], []
    while 2 * (len(below) - 1) >= len(shares) + needed:
        quotient, rest = _divide(above, below)
        above, below = below, rest
        low, high = _minus(high, _times(quotient, low)), low
    polynomial, rest = _divide(below, low)
    return None if rest or len(polynomial) > needed else polynomial


def interpolate(shares: Mapping[int, int]) -> list[int]:
    """The polynomial through all shares, by Newton's divided differences."""
    points, values = list(shares), [v % PRIME for v in shares.values()]
    for order in range(1, len(points)):
        for k in range(len(points) - 1, order - 1, -1):
            gap = _inverse(points[k] - points[k - order])
            values[k] = (values[k] - values[k - 1]) * gap % PRIME
    found: list[int] = []
    for point, value in zip(reversed(points), reversed(values), strict=True):
        found = _minus(_times(found, [-point % PRIME, 1]), [-value % PRIME])
    return found


@cache
def _inverse(small: int) -> int:
    return pow(small, -1, PRIME)


def _value(polynomial: list[int], point: int) -> int:
    value = 0
    for c in reversed(polynomial):
        value = (value * point + c) % PRIME
    return value


def _trim(polynomial: list[int]) -> list[int]:
    while polynomial and not polynomial[-1]:
        polynomial.pop()
    return polynomial


def _minus(one: list[int], other: list[int]) -> list[int]:
    size = max(len(one), len(other))
    one, other = one + [0] * (size - len(one)), other + [0] * (size - len(other))
    return _trim([(a - b) % PRIME for a, b in zip(one, other, strict=True)])


def _times(one: list[int], other: list[int]) -> list[int]:
    if not one or not other:
        return []
    found = [0] * (len(one) + len(other) - 1)
    for k, a in enumerate(one):
        for j, b in enumerate(other):
            found[k + j] += a * b
    return _trim([v % PRIME for v in found])


def _divide(one: list[int], other: list[int]) -> tuple[list[int], list[int]]:
    rest, quotient = list(one), [0] * max(len(one) - len(other) + 1, 0)
    lead = pow(other[-1], -1, PRIME)
    for k in range(len(quotient) - 1, -1, -1):
        factor = rest[k + len(other) - 1] * lead % PRIME
        quotient[k] = factor
        for j, b in enumerate(other):
            rest[k + j] = (rest[k + j] - factor * b) % PRIME
    return _trim(quotient), _trim(rest)
