"""The noise of one agent in a secure sum: integers from a table, scaled and added.

    noise = sum_l k_l T(u_l),   words u of 128 bits, integers k_l (`multiples`),

with T the table of `tacita.gaussian_table` and the words those of ChaCha20 under the
agent's secret.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

import numpy as np

from tacita import check
from tacita.aggregation.secure.derive import derive, stream
from tacita.gaussian_table import BASE, look_up

#: By how much `multiples` may exceed the variance asked for, where it can be helped.
_OVERSHOOT = Fraction(65, 64)


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
