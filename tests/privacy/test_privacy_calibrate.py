"""The inverse questions, checked by asking back."""

import math

import pytest

from tacita.check import TacitaError
from tacita.privacy import (
    Poisson,
    WithoutReplacement,
    affordable_rounds,
    calibrate_noise,
    epsilon_for,
    fed_plt,
    gaussian_guarantee,
    gaussian_sigma,
    noise_for,
    rounds_for,
)

SEEN = {"observer": "coordinator", "unit": "record", "relation": "replace_one"}

CASES = (
    {"relation": "replace_one"},
    {"relation": "replace_one", "participation": 0.3},
    {"relation": "replace_one", "sampling": WithoutReplacement(10, 100)},
    {"relation": "add_remove", "sampling": Poisson(0.1)},
    {"relation": "add_remove", "sampling": Poisson(0.1), "participation": 0.5},
)


@pytest.mark.parametrize("case", CASES)
def test_noise_meets_the_budget_and_no_more(case):
    releases = {**case, "sensitivity": 0.7, "rounds": 40}
    noise = noise_for(epsilon=1.5, delta=1e-5, tolerance=1e-4, **releases)
    spent = epsilon_for(delta=1e-5, noise_std=noise, **releases)
    less = epsilon_for(delta=1e-5, noise_std=noise * (1 - 1e-3), **releases)
    assert spent <= 1.5 < less


@pytest.mark.parametrize("case", CASES)
def test_rounds_fit_and_one_more_does_not(case):
    releases = {**case, "sensitivity": 1.0, "noise_std": 6.0}
    rounds = rounds_for(epsilon=2.0, delta=1e-5, **releases)
    assert rounds >= 1
    assert epsilon_for(delta=1e-5, rounds=rounds, **releases) <= 2.0
    assert epsilon_for(delta=1e-5, rounds=rounds + 1, **releases) > 2.0


def test_full_batch_noise_is_the_closed_form():
    got = noise_for(
        epsilon=0.8, delta=1e-6, relation="replace_one", sensitivity=3.0, rounds=77
    )
    closed = 3.0 * math.sqrt(77) * gaussian_sigma(0.8, 1e-6)
    assert closed <= got <= closed * (1 + 2e-6)


def test_pld_needs_less_noise_than_rdp():
    releases = {
        "relation": "add_remove",
        "sampling": Poisson(0.2),
        "sensitivity": 1.0,
        "rounds": 10,
    }
    tight = noise_for(epsilon=1.0, delta=1e-5, tolerance=1e-3, method="pld", **releases)
    loose = noise_for(epsilon=1.0, delta=1e-5, tolerance=1e-3, method="rdp", **releases)
    assert 0.7 * loose < tight < loose


def test_generic_inversion_of_fed_plt():
    setting = {
        "observer": "coordinator",
        "strong_convexity": 0.5,
        "smoothness": 2.0,
        "rho": 1.0,
        "step_size": 0.25,
        "local_steps": 5,
        "lipschitz": 1.0,
        "samples": 100,
    }
    noise = calibrate_noise(
        lambda tau: fed_plt(**setting, noise_std=tau, rounds=100),
        epsilon=1.0,
        delta=1e-5,
    )
    rounds = affordable_rounds(
        lambda k: fed_plt(**setting, noise_std=noise * 1.0001, rounds=k),
        epsilon=1.0,
        delta=1e-5,
    )
    assert rounds == 100


def test_limits_of_the_question():
    tight = {"relation": "replace_one", "sensitivity": 1.0}
    assert rounds_for(epsilon=0.1, delta=1e-5, noise_std=0.5, **tight) == 0
    never = rounds_for(epsilon=9.0, delta=1e-5, noise_std=1e6, at_most=500, **tight)
    assert never == 500

    def free(noise):
        return gaussian_guarantee(**SEEN, noise_std=1.0, sensitivity=1e-9)

    with pytest.raises(TacitaError, match="needs no noise"):
        calibrate_noise(free, epsilon=1.0, delta=1e-5)

    def hopeless(noise):
        return gaussian_guarantee(**SEEN, noise_std=1e-3, sensitivity=1.0)

    with pytest.raises(TacitaError, match="no noise reaches"):
        calibrate_noise(hopeless, epsilon=1.0, delta=1e-5)


@pytest.mark.parametrize(
    "budget",
    (
        {"epsilon": 0.0, "delta": 1e-5},
        {"epsilon": math.nan, "delta": 1e-5},
        {"epsilon": 1.0, "delta": 0.0},
        {"epsilon": 1.0, "delta": 1.0},
    ),
)
def test_budgets_are_refused(budget):
    releases = {"relation": "replace_one", "sensitivity": 1.0}
    with pytest.raises(TacitaError, match="epsilon|delta"):
        noise_for(**budget, rounds=3, **releases)
    with pytest.raises(TacitaError, match="epsilon|delta"):
        rounds_for(**budget, noise_std=1.0, **releases)
