"""Sums whose bits do not depend on the order in which letters arrive.

Floating-point addition is not associative, so a mean taken as letters come in would
change with the network's mood. Here every number is cut, exactly, into whole multiples
of 2^0, 2^-50, 2^-100 and 2^-150; these are added as integers, and integers commute
(the idea of J. Demmel and H. D. Nguyen, "Parallel Reproducible Summation", IEEE Trans.
Comput. 64(7), 2015, with fixed bins). Memory is four integers per entry, whatever the
number of letters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tacita.federation.wire import LARGEST, LetterRefused

_WIDTH = 50
_BINS = 4
#: Each bin holds less than 2^51 of one letter, so this many fit into 63 bits; then what
#: is over is carried up.
_UNCARRIED = 4000
#: Entries that are cut at a time: few enough to stay near the processor.
_BLOCK = 1 << 14


class ExactSum:
    """A running sum of letters of equal shapes.

    >>> total = ExactSum([np.zeros(1)])
    >>> for value in (1e10, 1e-10, -1e10):
    ...     total.add([np.array([value])])
    >>> total.values()[0].tolist()
    [1e-10]
    """

    def __init__(self, like: Sequence[np.ndarray]) -> None:
        self._shapes = [np.shape(a) for a in like]
        sizes = [math.prod(shape) for shape in self._shapes]
        self._bins = [np.zeros((_BINS, size), np.int64) for size in sizes]
        #: Multiples of 2^50, once there are so many letters that these may come up.
        self._top: list[np.ndarray] = []
        self.letters = 0

    def add(self, letter: Sequence[np.ndarray], weight: float = 1.0) -> None:
        """Add weight times the letter; refuses what is not finite, or far too large."""
        parts = [np.asarray(a, np.float64).reshape(-1) for a in letter]
        for part in parts:
            largest = max(part.max(initial=0.0), -part.min(initial=0.0))
            # Written so that NaN is refused too.
            if not largest * weight < LARGEST or np.isnan(part.min(initial=0.0)):
                raise LetterRefused("the letter holds NaN or entries beyond 2^50")
        for bins, part in zip(self._bins, parts, strict=True):
            for start in range(0, part.size, _BLOCK):
                here = slice(start, start + _BLOCK)
                _cut(bins[:, here], part[here] * weight)
        self.letters += 1
        if self.letters % _UNCARRIED == 0:
            self._top = [
                _carry(b, t) for b, t in zip(self._bins, self._tops(), strict=True)
            ]

    def _tops(self) -> list[np.ndarray]:
        return self._top or [np.zeros(b.shape[1], np.int64) for b in self._bins]

    def values(self) -> list[np.ndarray]:
        """The sums, in float64."""
        sums = []
        for bins, top, shape in zip(
            self._bins, self._tops(), self._shapes, strict=True
        ):
            carried = bins.copy()
            above = _carry(carried, top)
            total = np.zeros(bins.shape[1])
            for number in range(_BINS - 1, -1, -1):
                total = total + carried[number] * 2.0 ** (-_WIDTH * number)
            sums.append((total + above * 2.0**_WIDTH).reshape(shape))
        return sums


def _cut(bins: np.ndarray, rest: np.ndarray) -> None:
    """Add numbers to the bins, exactly: scaling by powers of two and rounding are.

    Nothing is left of `rest`; most numbers are spent before the last bin.
    """
    whole = np.empty_like(rest)
    for number in range(_BINS):
        np.rint(np.multiply(rest, 2.0 ** (_WIDTH * number), out=whole), out=whole)
        bins[number] += whole.astype(np.int64)
        rest -= np.multiply(whole, 2.0 ** (-_WIDTH * number), out=whole)
        if not rest.any():
            return


def _carry(bins: np.ndarray, top: np.ndarray) -> np.ndarray:
    """Leave less than half a unit of the next bin in each; the top after that.

    Then nothing rounds before the bins are put together.
    """
    for number in range(_BINS - 1, -1, -1):
        over = (bins[number] + (1 << (_WIDTH - 1))) >> _WIDTH
        bins[number] -= over << _WIDTH
        if number == 0:
            return top + over
        bins[number - 1] += over
    return top
