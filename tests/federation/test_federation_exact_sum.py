"""Sums of letters: exact, and the same in every order."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacita.federation.exact_sum import ExactSum
from tacita.federation.wire import LetterRefused

numbers = st.floats(-1e14, 1e14, allow_subnormal=False)


@settings(max_examples=100, deadline=None)
@given(st.lists(numbers, min_size=1, max_size=12), st.randoms())
def test_any_order_gives_the_same_and_the_right_bits(values, random):
    def summed(order):
        total = ExactSum([np.zeros(1)])
        for value in order:
            total.add([np.array([value])])
        return float(total.values()[0][0])

    shuffled = list(values)
    random.shuffle(shuffled)
    assert summed(values) == summed(shuffled)
    exact = float(sum((Fraction(v) for v in values), Fraction(0)))
    # Below the last bin (2^-150) a letter is rounded; above, only the end result is.
    assert summed(values) == pytest.approx(exact, rel=1e-15, abs=1e-44)


def test_cancellation_keeps_every_digit():
    total = ExactSum([np.zeros((2, 2)), np.zeros(())])
    total.add([np.full((2, 2), 3e13), np.asarray(1e-20)])
    total.add([np.full((2, 2), 1e-9), np.asarray(1.0)], weight=2.0)
    total.add([np.full((2, 2), -3e13), np.asarray(-2.0)])
    matrix, scalar = total.values()
    np.testing.assert_array_equal(matrix, np.full((2, 2), 2e-9))
    assert scalar == 1e-20


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 2.0**50])
def test_what_would_spoil_the_sum_is_refused_and_leaves_no_trace(bad: float):
    total = ExactSum([np.zeros(2), np.zeros(1)])
    with pytest.raises(LetterRefused):
        total.add([np.ones(2), np.array([bad])])
    total.add([np.ones(2), np.ones(1)])
    assert total.values()[0].tolist() == [1.0, 1.0]


def test_more_letters_than_the_bins_hold_without_carrying():
    """Ten thousand letters of the largest size, in two orders."""
    largest = np.nextafter(2.0**50, 0)
    total, backwards = ExactSum([np.zeros(3)]), ExactSum([np.zeros(3)])
    tiny = np.array([largest, -largest, 2.0**-100])
    for number in range(10_000):
        total.add([tiny if number < 9_999 else -9_000 * tiny / 9_999])
        backwards.add([tiny if number else -9_000 * tiny / 9_999])
    (found,), (other,) = total.values(), backwards.values()
    np.testing.assert_array_equal(found, other)
    np.testing.assert_allclose(found, 9_999 * tiny - 9_000 * tiny / 9_999, rtol=1e-15)
