"""Theorem 2 of FedSPD and of DP-Norm: numbers of the papers, and how they grow."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

import tacita
from tacita.theory import dp_norm, fed_spd

#: The paper's setting at a total of 1.
PAPER = fed_spd.Setting(
    gradient_norm=1.0,
    dim=162,
    batch=10,
    local_steps=5,
    participation=0.2,
    rho=20.0,
    epsilon=0.4398,
    as_printed=True,
)


def test_35_is_26_in_the_papers_setting():
    # (35): 2 sqrt( Q p (3 + 2/b + 51840 ln(1.25/delta)/((Q-1)^2 eps^2)) t )
    inside = 3 + 0.2 + 51840 * math.log(1.25 / 1e-4) / (16 * 0.4398**2)
    assert fed_spd.gamma(PAPER, 9) == pytest.approx(2 * 3 * math.sqrt(inside))
    # The condition of the theorem does not hold there.
    assert not fed_spd.is_covered(PAPER, rounds=1)
    assert fed_spd.is_covered(dataclasses.replace(PAPER, epsilon=None), rounds=100)


def test_the_lost_factor_is_that_of_the_noise():
    mended = dataclasses.replace(PAPER, as_printed=False)
    # (20): sigma (rho + gamma), whose square times d is what C has rho/2 of.
    q, eps = 5, 0.4398
    sigma = 4 * q * math.sqrt(2 * math.log(1.25 / 1e-4)) / ((q - 1) * eps)
    noise = 20 / 2 * 162 * sigma**2
    assert fed_spd.noise_constant(mended) == pytest.approx(3 + 0.2 + noise)
    once = dataclasses.replace(PAPER, local_steps=1)
    assert fed_spd.noise_constant(once) == fed_spd.noise_constant(
        dataclasses.replace(once, as_printed=False)
    )


def test_rounds_fall_with_local_steps_as_the_mended_constant_says():
    def rounds(steps: int, printed: bool) -> int:
        s = dataclasses.replace(PAPER, local_steps=steps, as_printed=printed)
        return fed_spd.rounds_needed(s, 0.1, clients=100)

    printed = np.log(rounds(80, True) / rounds(40, True)) / np.log(2)
    mended = np.log(rounds(80, False) / rounds(40, False)) / np.log(2)
    assert printed == pytest.approx(-3, abs=0.1) and mended == pytest.approx(
        -1, abs=0.1
    )
    s, count = PAPER, fed_spd.rounds_needed(PAPER, 0.5, clients=10)
    assert fed_spd.dominating_term(s, count, 10) <= 0.5
    assert fed_spd.dominating_term(s, count - 1, 10) > 0.5


def test_33_is_21_after_that_many_rounds():
    count = fed_spd.rounds_needed(PAPER, 40.0, clients=10)
    told = fed_spd.total_epsilon(PAPER, 40.0, clients=10, rows=325)
    q = 50 / 325
    assert told == pytest.approx(q * 0.4398 * math.sqrt(0.2 * count / (1 - q)))
    with pytest.raises(tacita.TacitaError, match="share"):
        fed_spd.total_epsilon(PAPER, 40.0, clients=10, rows=50)


def test_28_is_its_four_terms():
    s = dataclasses.replace(PAPER, penalty_bound=2.0, diameter=3.0, dual_diameter=4.0)
    constant = fed_spd.noise_constant(s)
    by_hand = (
        7.0 + 10 / (2 * 5) * (20 * 9 * 6 / 0.2 + 5 / 0.2 * 16 / 20 + 4 * 2 / 0.2)
    ) / 50 + 10 * 2 * 3 * math.sqrt(constant / (50 * 5 * 0.2))
    assert fed_spd.bound(s, 50, clients=10, start=7.0) == pytest.approx(by_hand)


def test_dp_norm_falls_to_its_floor():
    size = {"local_steps": 10, "batch": 500, "edges": 6, "nodes": 6}
    size |= {"dim": 7840, "rows": 4000}
    private = dp_norm.rate(rounds=2000, epsilon=0.5, **size)
    long = dp_norm.rate(rounds=10**12, epsilon=0.5, **size)
    assert long.total == pytest.approx(private.floor, rel=1e-3)
    # K B = 5000 >= d_min: the term of the rows is the larger one.
    assert private.rows > private.noise == pytest.approx(np.sqrt(7840) / 2500)
    plain = dp_norm.rate(rounds=2000, **size)
    assert plain.floor == 0 and plain.total == pytest.approx(
        1 / 20000 + 1 / 2000 + 1e-3 * np.sqrt(0.1)
    )
    with pytest.raises(tacita.TacitaError, match="epsilon"):
        dp_norm.rate(rounds=1, epsilon=0.0, **size)
