"""Risks, bounds and baselines of linear regression hold where they are tried."""

from __future__ import annotations

import numpy as np
import pytest

from tacita import TacitaError
from tacita.theory import descent, regression


def test_the_risk_is_that_of_fresh_rows():
    dice = np.random.default_rng(0)
    truth, w = np.array([1.0, -2.0]), np.array([0.5, -1.0])
    x = dice.normal(size=(200_000, 2))
    y = x @ truth + 0.7 * dice.normal(size=len(x))
    found = np.mean((y - x @ w) ** 2)
    assert np.isclose(regression.risk(w, truth, 0.7), found, rtol=0.02)
    with pytest.raises(TacitaError, match="truth of shape"):
        regression.risk([1.0, 2.0], [1.0], 0.7)
    with pytest.raises(TacitaError, match="noise has 1 NaN"):
        regression.estimation_error_bound(np.ones((2, 1)), [1.0, np.nan])
    with pytest.raises(TacitaError, match="covariance symmetric"):
        regression.bayes_risk([[1.0, 0.9], [0.1, 1.0]])


def test_proposition_2_1_holds_and_a_quarter_of_it_is_reached():
    dice = np.random.default_rng(1)
    for _ in range(20):
        x, noise = dice.normal(size=(9, 3)), dice.normal(size=9)
        off = np.linalg.lstsq(x, noise, rcond=None)[0]
        bound = regression.estimation_error_bound(x, noise)
        assert np.sum(off**2) <= bound / 4 * (1 + 1e-9)
    one = np.ones((4, 1)), np.full(4, 0.5)
    off = np.linalg.lstsq(*one, rcond=None)[0]
    assert np.isclose(np.sum(off**2), regression.estimation_error_bound(*one) / 4)


def test_least_squares_reaches_the_minimax_risk():
    dice = np.random.default_rng(2)
    errors = []
    for _ in range(4000):
        x, noise = dice.normal(size=(12, 3)), dice.normal(size=12)
        errors.append(np.sum(np.linalg.lstsq(x, noise, rcond=None)[0] ** 2))
    assert np.isclose(regression.minimax_risk(1.0, 12, 3), 1 + np.mean(errors), 0.03)
    assert regression.minimax_risk(1.0, 3, 3) == np.inf
    # Without noise as many rows as features tell all; fewer leave it open.
    assert regression.minimax_risk(0.0, 3, 3) == 0
    assert regression.minimax_risk(0.0, 2, 3) == np.inf


def test_baselines_are_what_the_best_rule_reaches():
    dice = np.random.default_rng(3)
    root = dice.normal(size=(3, 3))
    drawn = dice.normal(size=(100_000, 3)) @ root.T
    x, y = drawn[:, :2], drawn[:, 2]
    w = np.linalg.lstsq(x, y, rcond=None)[0]
    told = regression.bayes_risk(root @ root.T)
    assert np.isclose(told, np.mean((y - x @ w) ** 2), rtol=0.03)
    # Two classes on a line, cut wherever that is best.
    first = dice.random(200_000) < 0.2
    place = dice.normal(size=len(first)) + np.where(first, 0.0, 1.5)
    wrong = min(np.mean((place < cut) != first) for cut in np.linspace(-2, 2, 81))
    assert np.isclose(regression.bayes_error(1.5, 0.2), wrong, atol=0.003)


@pytest.mark.parametrize("power", [1.0, 0.5])
def test_online_descent_has_the_stated_risk(power):
    # Exercise 4.3, both schedules.
    dice = np.random.default_rng(4)
    runs, rows, truth = 20_000, 30, np.array([1.0, 0.0])
    steps = 0.5 / (np.arange(1, rows + 1) + 5) ** power
    w = np.zeros((runs, 2))
    for eta in steps:
        x = dice.normal(size=(runs, 2))
        y = x @ truth + 0.5 * dice.normal(size=runs)
        w += 2 * eta * x * (y - np.sum(w * x, axis=1))[:, None]
    found = np.mean(np.sum((w - truth) ** 2, axis=1)) + 0.25
    told = regression.online_risk(steps, features=2, noise_std=0.5, start=1.0)
    assert np.isclose(told[-1], found, rtol=0.02)


def test_steps_needed_is_the_first_that_is_enough():
    for kappa, start, goal in [(0.9, 7.0, 0.3), (0.5, 8.0, 1.0), (0.1, 1e3, 1e-3)]:
        steps = descent.steps_needed(kappa, start, goal)
        assert start * kappa**steps <= goal * (1 + 1e-12)
        assert start * kappa ** (steps - 1) > goal


def test_bits_are_best_where_they_are():
    kappa, steps, total = 0.7, 6, 20.0
    weight = kappa ** np.arange(steps)[::-1]
    bits = descent.best_bits(kappa, steps, total)
    assert np.isclose(bits.sum(), total) and np.all(np.diff(bits) > 0)
    best = np.sum(weight * 2.0**-bits)
    dice = np.random.default_rng(5)
    for _ in range(200):
        other = dice.dirichlet(np.full(steps, 5.0)) * total
        assert np.sum(weight * 2.0**-other) >= best
    assert np.isclose(descent.best_bits(0.1, 4, 2.0).sum(), 2.0)


def test_what_does_not_fit_is_refused():
    with pytest.raises(TacitaError, match="full rank"):
        regression.estimation_error_bound(np.ones((3, 2)), np.zeros(3))
    with pytest.raises(TacitaError, match="semidefinite"):
        regression.bayes_risk([[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(TacitaError, match="contraction"):
        descent.steps_needed(1.0, 1.0, 0.1)


def test_steps_of_any_curvature_and_accuracy_are_counted():
    alike = descent.contraction(descent.best_step_size(2.0, 2.0), 2.0, 2.0)
    assert descent.steps_needed(alike, 5.0, 1e-9) == 1
    assert descent.steps_needed(alike, 5.0, 6.0) == 0
    many = descent.steps_needed(0.5, 1e300, 1e-300)
    assert many == np.ceil(600 * np.log2(10))
    for words, call in (
        ("strong_convexity <= smoothness", lambda: descent.best_step_size(3.0, 1.0)),
        ("contraction >= 0", lambda: descent.perturbed_error(-1.0, 1.0, [1.0])),
        ("x with rows", lambda: regression.estimation_error_bound(np.ones((0, 2)), [])),
        ("covariance of shape", lambda: regression.bayes_risk(3.0)),
    ):
        with pytest.raises(TacitaError, match=words):
            call()
