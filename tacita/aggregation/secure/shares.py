"""Shamir's sharing: any t of n holders know a secret, fewer know nothing.

A. Shamir, "How to share a secret", Communications of the ACM 22(11), 1979.

    share of holder x = secret + c_1 x + ... + c_{t-1} x^{t-1}   mod p = 2^255 - 19

Holders are the points 1..n. The coefficients are a function of a key, so that dealing
again deals the same shares. Secrets have 31 bytes and lie below p; shares have 32.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from tacita.aggregation.secure.derive import stream
from tacita.check import refuse

PRIME = 2**255 - 19
SECRET_BYTES, SHARE_BYTES = 31, 32
#: Bytes that a coefficient is reduced from: uniform mod p up to 2^-129.
_COIN_BYTES = 48


def deal(
    secrets: Sequence[bytes], keys: Sequence[bytes], holders: int, needed: int
) -> np.ndarray:
    """The shares of all holders of several secrets, of one polynomial each.

    Args:
        secrets: 31 bytes each.
        keys: Of which the coefficients are a function, one for each secret.
        holders: n.
        needed: t.

    Returns:
        Bytes (secret, holder, 32).
    """
    rows = [
        [number(s), *coefficients(k, needed)]
        for s, k in zip(secrets, keys, strict=True)
    ]
    return evaluate(rows, holders)


def coefficients(key: bytes, needed: int) -> list[int]:
    """The t - 1 coefficients that hide a secret."""
    coins = stream(key, 0, (needed - 1) * _COIN_BYTES, np.uint8).tobytes()
    cut = range(0, len(coins), _COIN_BYTES)
    return [number(coins[k : k + _COIN_BYTES]) % PRIME for k in cut]


def evaluate(polynomials: Sequence[Sequence[int]], holders: int) -> np.ndarray:
    """Bytes (polynomial, holder, 32) of polynomials' values at the points 1..n."""
    table = np.array(polynomials, dtype=object)
    points = np.array(range(1, holders + 1), dtype=object)
    # Points are small, so numbers grow by 7 bits a step: one reduction at the end is
    # faster than one a step.
    values = table[:, -1:] * np.ones(holders, dtype=object)
    for column in table.T[-2::-1]:
        values = values * points + column[:, None]
    made = b"".join(as_share(v) for v in (values % PRIME).ravel())
    return np.frombuffer(made, np.uint8).reshape(len(table), holders, SHARE_BYTES)


@lru_cache(maxsize=64)
def weights(points: tuple[int, ...]) -> tuple[int, ...]:
    """Lagrange's weights: a polynomial's value at 0 is their product with its values.

    >>> weights((1, 2)) == (2, PRIME - 1)
    True
    """
    found = []
    for x in points:
        above = below = 1
        for other in points:
            if other != x:
                above = above * other % PRIME
                below = below * (other - x) % PRIME
        found.append(above * pow(below, -1, PRIME) % PRIME)
    return tuple(found)


def join(points: Sequence[int], shares: Sequence[int]) -> bytes | None:
    """The secret of t shares; None if it cannot be one: it would be too long."""
    if len(set(points)) != len(points):
        refuse("a holder's share was counted twice; join shares of different holders")
    pairs = zip(weights(tuple(points)), shares, strict=True)
    value = sum(w * s for w, s in pairs) % PRIME
    if value.bit_length() > 8 * SECRET_BYTES:
        return None
    return value.to_bytes(SECRET_BYTES, "little")


def number(content: bytes) -> int:
    """Bytes as a number."""
    return int.from_bytes(content, "little")


def as_share(value: int) -> bytes:
    """A number below p as the bytes of a share."""
    return value.to_bytes(SHARE_BYTES, "little")
