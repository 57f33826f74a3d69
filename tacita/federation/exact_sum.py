"""Sums whose bits do not depend on the order in which letters arrive.

Floating-point addition is not associative, so a mean taken as letters come in would
change with the network's mood. Here every number is cut, exactly, into whole multiples
of 2^0, 2^-50, 2^-100 and 2^-150; these are added as integers, and integers commute
(the idea of J. Demmel and H. D. Nguyen, "Parallel Reproducible Summation", IEEE Trans.
Comput. 64(7), 2015, with fixed bins). Memory is four integers per entry, whatever the
number of letters.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tacita.federation.wire import LetterRefused

_WIDTH = 50
_BINS = 4
#: Above this an entry is refused: a run with such letters has diverged.
LARGEST = 2.0**50
#: Each bin holds less than 2^51 of one letter, so this many fit into 63 bits.
MOST_LETTERS = 4000


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
        self._bins = [np.zeros((_BINS, *shape), np.int64) for shape in self._shapes]
        self.letters = 0

    def add(self, letter: Sequence[np.ndarray], weight: float = 1.0) -> None:
        """Add weight times the letter; refuses what is not finite, or far too large."""
        if self.letters >= MOST_LETTERS:
            raise LetterRefused(f"more than {MOST_LETTERS} letters in one sum")
        parts = [np.asarray(a, np.float64) * weight for a in letter]
        for part in parts:
            # Written so that NaN is refused too.
            if not np.all(np.abs(part) < LARGEST):
                raise LetterRefused("the letter holds NaN or entries beyond 2^50")
        for bins, part in zip(self._bins, parts, strict=True):
            rest = part
            for number in range(_BINS):
                unit = 2.0 ** (_WIDTH * number)
                # Scaling by a power of two, rounding and the difference are exact.
                whole = np.rint(rest * unit)
                bins[number] += whole.astype(np.int64)
                rest = rest - whole / unit
        self.letters += 1

    def values(self) -> list[np.ndarray]:
        """The sums, in float64."""
        sums = []
        for bins in self._bins:
            carried = bins.copy()
            for number in range(_BINS - 1, 0, -1):
                # Leave less than half a unit of the next bin, so that nothing rounds
                # before the bins are put together.
                over = (carried[number] + (1 << (_WIDTH - 1))) >> _WIDTH
                carried[number] -= over << _WIDTH
                carried[number - 1] += over
            total = np.zeros(bins.shape[1:])
            for number in range(_BINS - 1, -1, -1):
                total = total + carried[number] * 2.0 ** (-_WIDTH * number)
            sums.append(total)
        return sums
