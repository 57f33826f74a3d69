"""The analytic Gaussian mechanism against 60-digit arithmetic and refusals."""

import math

import dp_accounting
import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacita.check import TacitaError
from tacita.privacy import (
    classical_gaussian_sigma,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_sigma,
)
from tacita.theory.gaussian import epsilon_of_mu

EPSILONS = (1e-3, 0.1, 0.5, 1.0, 4.0, 10.0, 60.0)
DELTAS = (1e-12, 1e-8, 1e-5, 1e-3, 0.1)


def exact_delta(epsilon, mu):
    """Balle and Wang's formula as it stands, in 60 digits."""
    epsilon, mu = mpmath.mpf(epsilon), mpmath.mpf(mu)
    upper = mpmath.ncdf(mu / 2 - epsilon / mu)
    return upper - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - epsilon / mu)


@pytest.fixture(autouse=True)
def sixty_digits():
    with mpmath.workdps(60):
        yield


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_sigma_and_epsilon_agree_with_high_precision(epsilon, delta):
    sigma = gaussian_sigma(epsilon, delta)
    target = mpmath.log(mpmath.mpf(delta))
    root = mpmath.findroot(
        lambda log_mu: mpmath.log(exact_delta(epsilon, mpmath.exp(log_mu))) - target,
        -mpmath.log(sigma * 1.001),
    )
    assert abs(sigma * mpmath.exp(root) - 1) < 1e-10
    exact = mpmath.findroot(
        lambda e: mpmath.log(exact_delta(e, 1 / mpmath.mpf(sigma))) - target,
        epsilon * 1.001,
    )
    assert abs(gaussian_epsilon(sigma, delta) / exact - 1) < 1e-10


@pytest.mark.parametrize("epsilon", (0.0, 1e-4, 0.3, 2.0, 15.0, 400.0))
@pytest.mark.parametrize("sigma", (1e3, 20.0, 2.01, 1.99, 0.5, 0.04))
def test_delta_agrees_with_high_precision(epsilon, sigma):
    exact = exact_delta(epsilon, 1 / mpmath.mpf(sigma))
    got = gaussian_delta(sigma, epsilon)
    if exact < mpmath.mpf("1e-300"):
        assert got < 1e-290
    else:
        assert abs(got / exact - 1) < 1e-10


def test_vectors(vectors):
    for row in vectors["gaussian_sigma"]:
        got = gaussian_sigma(row["eps"], row["delta"])
        assert got == pytest.approx(row["sigma"], rel=1e-9)
        classical = classical_gaussian_sigma(row["eps"], row["delta"])
        assert classical == pytest.approx(row["sigma_classic"], rel=1e-9)
    for row in vectors["gaussian_eps"]:
        got = gaussian_epsilon(row["sigma"], row["delta"])
        assert got == pytest.approx(row["eps"], rel=1e-9)


def test_agrees_with_dp_accounting():
    for epsilon, delta in ((0.3, 1e-6), (2.0, 1e-4), (9.0, 1e-5)):
        theirs = dp_accounting.get_sigma_gaussian(epsilon, delta)
        assert gaussian_sigma(epsilon, delta) == pytest.approx(theirs, rel=1e-9)


def test_classical_noise_is_too_small_for_large_epsilon():
    sigma = classical_gaussian_sigma(10.0, 1e-4)
    assert gaussian_epsilon(sigma, 1e-4) == pytest.approx(10.6208832, rel=1e-7)
    assert sigma < gaussian_sigma(10.0, 1e-4)


@settings(max_examples=200, deadline=None)
@given(
    st.floats(1e-3, 50.0),
    st.floats(1e-12, 0.4),
    st.floats(1e-3, 1e3),
)
def test_round_trip_and_scaling(epsilon, delta, sensitivity):
    sigma = gaussian_sigma(epsilon, delta, sensitivity)
    assert sigma == pytest.approx(sensitivity * gaussian_sigma(epsilon, delta))
    back = gaussian_epsilon(sigma, delta, sensitivity)
    assert back == pytest.approx(epsilon, rel=1e-8)
    assert gaussian_delta(sigma, epsilon, sensitivity) == pytest.approx(delta, rel=1e-8)
    assert gaussian_sigma(epsilon * 1.01, delta, sensitivity) < sigma
    assert gaussian_sigma(epsilon, delta * 1.01, sensitivity) < sigma


def test_epsilon_is_zero_where_delta_covers_everything():
    assert gaussian_epsilon(1e6, 1e-5) == 0.0
    assert gaussian_delta(1e6, 0.0) < 1e-5


@pytest.mark.parametrize("epsilon", (0.0, -1.0, math.nan, math.inf, None, "1", True))
def test_epsilon_is_refused(epsilon):
    with pytest.raises(TacitaError, match="expected epsilon > 0, got epsilon="):
        gaussian_sigma(epsilon, 1e-5)


@pytest.mark.parametrize("delta", (0.0, 1.0, -1e-5, 2.0, math.nan, None))
def test_delta_is_refused(delta):
    with pytest.raises(TacitaError, match=r"expected delta in \(0, 1\), got delta="):
        gaussian_sigma(1.0, delta)
    with pytest.raises(TacitaError, match="delta"):
        gaussian_epsilon(1.0, delta)


@pytest.mark.parametrize("value", (0.0, -2.0, math.nan, None))
def test_sigma_and_sensitivity_are_refused(value):
    with pytest.raises(TacitaError, match="sigma"):
        gaussian_epsilon(value, 1e-5)
    with pytest.raises(TacitaError, match="sensitivity"):
        gaussian_sigma(1.0, 1e-5, value)


def test_huge_losses_are_bounded_from_above():
    """Where the exact formula cancels, the tail bound takes over without a jump."""
    for delta in (1e-3, 1e-9):
        just_below, just_above = (
            epsilon_of_mu(0.999e5, delta),
            epsilon_of_mu(1.001e5, delta),
        )
        assert just_below < just_above < just_below * 1.005
        assert 0.5e30 < epsilon_of_mu(1e15, delta) < 0.51e30
