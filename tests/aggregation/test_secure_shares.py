"""Shamir's sharing: against vectors, against another library, against liars."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
import shamirs

from tacita.aggregation.secure.recovery import decode, recover
from tacita.aggregation.secure.shares import (
    PRIME,
    coefficients,
    deal,
    evaluate,
    join,
    number,
    weights,
)
from tacita.check import TacitaError

VECTORS = json.loads((Path(__file__).parent / "secagg_vectors.json").read_text())


@pytest.mark.parametrize("case", VECTORS["shamir"], ids=["three", "four"])
def test_vectors(case):
    polynomial = [int(case["secret"], 16), *(int(c, 16) for c in case["coefficients"])]
    (shares,) = evaluate([polynomial], len(case["shares"]))
    assert [s.tobytes().hex() for s in shares] == case["shares"]
    points = case["points"]
    assert list(weights(tuple(points))) == [int(w, 16) for w in case["weights"]]
    chosen = [number(shares[p - 1].tobytes()) for p in points]
    assert join(points, chosen).hex() == case["joined"]


def hand(secret: bytes, holders: int, needed: int) -> dict[int, int]:
    (shares,) = deal([secret], [bytes(31) + b"k"], holders, needed)
    return {k + 1: number(s.tobytes()) for k, s in enumerate(shares)}


@pytest.mark.parametrize("holders, needed", [(3, 2), (5, 4), (20, 12), (50, 26)])
def test_another_library_joins_our_shares_and_we_join_its(holders, needed):
    secret, rng = random.Random(holders).randbytes(31), random.Random(1)
    made = hand(secret, holders, needed).items()
    ours = [shamirs.share(point, value, PRIME) for point, value in made]
    some = rng.sample(ours, needed)
    assert shamirs.interpolate(some, threshold=needed) == number(secret)
    theirs = shamirs.shares(number(secret), holders, modulus=PRIME, threshold=needed)
    some = rng.sample(list(theirs), needed)
    assert join([s[0] for s in some], [s[1] for s in some]) == secret


def test_one_share_too_few_gives_another_secret():
    secret = b"\x07" * 31
    shares = hand(secret, 5, 3)
    assert join([1, 4], [shares[1], shares[4]]) != secret
    assert join([1, 4, 5], [shares[1], shares[4], shares[5]]) == secret


def test_coins_are_a_function_of_their_key_and_spread_over_the_field():
    assert coefficients(b"a" * 32, 5) == coefficients(b"a" * 32, 5)
    drawn = coefficients(b"a" * 32, 2001) + coefficients(b"b" * 32, 2001)
    assert len(set(drawn)) == 4000 and max(drawn) < PRIME
    high = np.mean([c > PRIME // 2 for c in drawn])
    assert 0.45 < high < 0.55


def test_a_share_counted_twice_is_refused():
    with pytest.raises(TacitaError, match="twice"):
        join([1, 1], [5, 5])


@pytest.mark.parametrize("holders, needed, false", [(7, 3, 2), (20, 12, 4), (12, 8, 2)])
def test_false_shares_are_found_by_decoding(holders, needed, false):
    rng, secret = random.Random(5), b"\x01" * 31
    shares = hand(secret, holders, needed)
    liars = tuple(sorted(rng.sample(list(shares), false)))
    for liar in liars:
        shares[liar] = rng.randrange(PRIME)
    found = recover(shares, needed, 0, lambda s: s == secret)
    assert found.secret == secret
    assert found.false in ((), liars)  # none if the first t happened to be true
    assert decode(shares, needed)[0] == number(secret)


def test_false_shares_beyond_decoding_are_found_by_leaving_holders_out():
    secret, shares = b"\x02" * 31, hand(b"\x02" * 31, 14, 12)
    shares[3] = shares[8] = 17
    assert decode(shares, 12) is None
    found = recover(shares, 12, 2, lambda s: s == secret)
    assert found == (secret, (3, 8), False)


@pytest.mark.parametrize(
    "here, lied", [(12, False), (13, False), (14, True), (16, True)]
)
def test_a_dealer_is_accused_only_where_no_holders_could_be_to_blame(here, lied):
    shares = {p: p**20 for p in range(1, here + 1)}
    found = recover(shares, 12, 2, lambda s: s == b"\x03" * 31)
    assert found == (None, (), lied)


def test_many_liars_among_many_holders_are_no_reason_to_accuse_the_dealer():
    secret, shares = b"\x04" * 31, hand(b"\x04" * 31, 66, 56)
    for liar in range(1, 11):
        shares[liar] += 1
    found = recover(shares, 56, 10, lambda s: s == secret)
    assert not found.dealer_lied
