"""Batches of fixed size: the dominating pair, against what releases really show."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import fft, stats

from tacita.privacy import Poisson, PoissonReplaced, WithoutReplacement, account
from tacita.privacy.accounting.curve import LossCurve
from tacita.privacy.accounting.profiles import batch_profile, replaced_profile
from tacita.privacy.accounting.releases import SampledGaussian

DELTA = 1e-5


def spent(sampling, noise, rounds, method="auto"):
    run = account(
        observer="coordinator",
        unit="record",
        relation=sampling.relation,
        noise_std=noise,
        sensitivity=1.0,
        rounds=rounds,
        sampling=sampling,
        method=method,
    )
    return run.epsilon(DELTA)


def composed_delta(losses, masses, rounds, epsilon, *, up, step=2e-3):
    """E (1 - e^{epsilon - L})_+ of a sum of losses, each rounded up or down.

    A plain Fourier transform of a histogram: nothing in common with the package.
    """
    bins = (np.ceil if up else np.floor)(losses / step).astype(int)
    lowest = bins.min()
    pmf = np.bincount(bins - lowest, weights=masses)
    size = fft.next_fast_len(rounds * len(pmf))
    total = fft.irfft(fft.rfft(pmf, size) ** rounds, size)
    at = (np.arange(size) + rounds * lowest) * step
    return float(np.sum(-np.expm1(np.minimum(epsilon - at, 0.0)) * total))


def cut(edges, upper, lower):
    """Losses and masses of a pair of laws, cut into cells by their edges."""
    p, q = np.diff(upper(edges)), np.diff(lower(edges))
    kept = (p > 0) & (q > 0)
    return np.log(p[kept] / q[kept]), p[kept]


def theorem_9_pair(mu, rate):
    """The pair of `docs/proof-batches.md`, put together from its three parts.

    Losses above 0 are those of (1 - q) N(0) + q N(mu) against N(0), losses below 0
    those of N(mu) against (1 - q) N(mu) + q N(0), and the rest lies at 0.
    """
    normal = stats.norm.cdf
    right = np.linspace(mu / 2, mu + 9, 40_001)
    left = np.linspace(-9, mu / 2, 40_001)

    def mixture(x, of, other):
        return (1 - rate) * normal(x, of) + rate * normal(x, other)

    above = cut(right, lambda x: mixture(x, 0, mu), normal)
    below = cut(left, lambda x: normal(x, mu), lambda x: mixture(x, mu, 0))
    losses = np.concatenate([above[0], below[0], [0.0]])
    masses = np.concatenate([above[1], below[1]])
    return losses, np.append(masses, 1 - masses.sum())


def test_the_profile_bounds_every_mixture_and_is_attained():
    """Where the batch misses the record, holds it, or holds the other one: any three
    Gaussians at most one sensitivity apart, in both orders."""
    draw = np.random.default_rng(5)
    x = np.linspace(-14, 14, 20_001)
    width = x[1] - x[0]
    worst = 0.0
    for _ in range(60):
        rate, mu = float(draw.uniform(0.01, 1.0)), float(draw.uniform(0.2, 3.0))
        places = np.sort(draw.uniform(0, mu, size=3))
        places[0], places[2] = 0.0, mu
        draw.shuffle(places)
        missed, held, other = (stats.norm.pdf(x, at) for at in places)
        first = (1 - rate) * missed + rate * held
        second = (1 - rate) * missed + rate * other
        samples = 100_000
        sampling = WithoutReplacement(round(rate * samples), samples)
        profile = batch_profile(1 / mu, sampling)
        for epsilon in (0.0, 0.1, 0.5, 1.5):
            most = float(profile(np.array([epsilon]))[0])
            for one, two in ((first, second), (second, first)):
                delta = np.maximum(one - math.exp(epsilon) * two, 0).sum() * width
                assert delta <= most * 1.001 + 1e-9
                worst = max(worst, delta / most if most > 1e-6 else 0.0)
        # The record is alone against all others: there the bound is an equality.
        alone = (1 - rate) * stats.norm.pdf(x, 0) + rate * stats.norm.pdf(x, mu)
        rest = stats.norm.pdf(x, 0)
        delta = np.maximum(alone - math.exp(0.1) * rest, 0).sum() * width
        assert delta == pytest.approx(float(profile(np.array([0.1]))[0]), rel=2e-3)
    assert worst > 0.5


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("batch", "samples", "noise", "rounds"),
    ((50, 325, 2.0, 100), (5, 50, 0.8, 10), (40, 80, 5.0, 200), (1, 1000, 1.0, 30)),
)
def test_composition_equals_an_independent_convolution(batch, samples, noise, rounds):
    losses, masses = theorem_9_pair(1 / noise, batch / samples)
    epsilon = spent(WithoutReplacement(batch, samples), noise, rounds)
    step = 0.02 * math.sqrt(np.dot(masses, losses**2))
    low, high = (
        composed_delta(losses, masses, rounds, epsilon, up=up, step=step)
        for up in (False, True)
    )
    assert low <= DELTA * 1.001 and DELTA <= high * 1.001


def test_the_truth_lies_below_over_many_rounds():
    """A record alone against all others, or +C against -C among zeros."""
    rate, mu, rounds = 50 / 325, 0.5, 100
    bound = LossCurve(((SampledGaussian(1 / mu, WithoutReplacement(50, 325)), rounds),))
    edges, normal = np.linspace(-9.5, 10, 60_001), stats.norm.cdf

    def mixture(held):
        return lambda x: (1 - rate) * normal(x) + rate * normal(x, held)

    pairs = ((mixture(mu), normal), (mixture(mu / 2), mixture(-mu / 2)))
    for one, two in (*pairs, *(pair[::-1] for pair in pairs)):
        for epsilon in (0.5, 2.0, 4.0):
            true = composed_delta(*cut(edges, one, two), rounds, epsilon, up=False)
            assert true <= bound.delta(epsilon) * 1.0001
    alone = composed_delta(*cut(edges, *pairs[0]), rounds, 4.0, up=True)
    assert alone > 0.2 * bound.delta(4.0)  # and not by much


@pytest.mark.long
def test_the_figures_by_which_loss_distributions_are_tighter():
    usual = WithoutReplacement(50, 325)
    assert spent(usual, 2.0, 100, "rdp") == pytest.approx(8.87, rel=0.002)
    assert spent(usual, 2.0, 100) == pytest.approx(4.06, rel=0.002)
    rare = WithoutReplacement(1, 1000)
    once = spent(rare, 1.0, 1, "rdp") / spent(rare, 1.0, 1)
    assert once == pytest.approx(67, rel=0.01)
    drawn = WithoutReplacement(10, 325)
    assert 1.6 < spent(drawn, 1.0, 200, "rdp") / spent(drawn, 1.0, 200) < 2.3
    for rate, noise, rounds in ((0.15, 2.0, 200), (0.01, 1.0, 1000), (0.1, 0.7, 100)):
        drawn = Poisson(rate)
        gain = spent(drawn, noise, rounds, "rdp") / spent(drawn, noise, rounds)
        assert 1.09 < gain < 1.69


def test_a_batch_of_all_records_is_no_batch():
    exact = account(
        observer="coordinator",
        unit="record",
        relation="replace_one",
        noise_std=3.0,
        sensitivity=1.0,
        rounds=7,
    ).epsilon(DELTA)
    assert 0 <= spent(WithoutReplacement(40, 40), 3.0, 7) / exact - 1 < 1e-4


def poisson_pairs(mu, rate):
    """With the record against without it, and the other way round."""
    edges, normal = np.linspace(-9.5, mu + 9.5, 60_001), stats.norm.cdf

    def drawn(x):
        return (1 - rate) * normal(x) + rate * normal(x, mu)

    return cut(edges, drawn, normal), cut(edges, normal, drawn)


def replaced_pair(mu, rate):
    """A record on one side against one on the other, half the change away from none."""
    edges, normal = np.linspace(-mu - 9.5, mu + 9.5, 60_001), stats.norm.cdf

    def drawn(at):
        return lambda x: (1 - rate) * normal(x) + rate * normal(x, at)

    return cut(edges, drawn(mu / 2), drawn(-mu / 2))


def test_replaced_records_of_poisson_batches_are_bounded_and_the_bound_attained():
    """Two records anywhere within half the change of none, in the plane."""
    draw = np.random.default_rng(8)
    x = np.linspace(-9.0, 9.0, 301)
    plane, cell = np.stack(np.meshgrid(x, x), -1), (x[1] - x[0]) ** 2

    def law(rate, at):
        here = [stats.norm.pdf(plane - place).prod(-1) for place in (np.zeros(2), at)]
        return (1 - rate) * here[0] + rate * here[1]

    epsilons, worst = np.array([0.0, 0.1, 0.5, 1.5, 3.0]), 0.0
    for _ in range(20):
        rate, mu = float(draw.uniform(0.01, 1.0)), float(draw.uniform(0.2, 4.0))
        most = replaced_profile(mu, rate)(epsilons)
        places = draw.normal(size=(2, 2))
        sizes = mu / 2 * draw.uniform(0.3, 1.0, size=(2, 1)) ** 0.2
        places *= sizes / np.linalg.norm(places, axis=1, keepdims=True)
        opposite = [1.0, 0.0] * np.array([[mu / 2], [-mu / 2]])
        for pair, equal in ((places, False), (opposite, True)):
            one, two = (law(rate, at) for at in pair)
            for a, b in ((one, two), (two, one)):
                over = [np.maximum(a - math.exp(e) * b, 0) for e in epsilons]
                found = np.array([each.sum() * cell for each in over])
                assert np.all(found <= most * 1.005 + 1e-9)  # cells of a plane
                if equal:
                    np.testing.assert_allclose(found, most, rtol=5e-3, atol=1e-6)
                else:
                    worst = max(worst, found[0] / most[0])
    assert worst > 0.8


def test_replaced_profiles_bear_any_noise():
    """Small and large changes, rates and epsilons: a curve that falls, below one."""
    epsilons = np.geomspace(1e-7, 600.0, 200)
    for mu in (1e-3, 0.1, 3.0, 40.0, 200.0):
        for rate in (1e-6, 0.1, 1.0):
            found = replaced_profile(mu, rate)(epsilons)
            assert np.all(np.isfinite(found)) and np.all(found <= rate * (1 + 1e-12))
            assert np.all(np.diff(found) <= 1e-15)


def test_a_replaced_record_costs_less_than_one_that_is_seen_to_take_part():
    """Between add_remove of one record, and one that everybody sees take part."""
    given = {"observer": "final_model", "unit": "client", "rounds": 10}
    added = account(
        **given,
        relation="add_remove",
        noise_std=1.0,
        sensitivity=1.0,
        sampling=Poisson(0.2),
    )
    seen = account(
        **given,
        relation="replace_one",
        noise_std=1.0,
        sensitivity=2.0,
        participation=0.2,
    )
    half = spent(PoissonReplaced(0.2), 0.5, 10)  # noise 1 beside a change of 2
    assert added.epsilon(DELTA) < half < 0.3 * seen.epsilon(DELTA)
    assert half == pytest.approx(6.479, abs=1e-3)


def check_random_accounts(count, seed):
    """Epsilons of random settings against an independent convolution."""
    draw = np.random.default_rng(seed)
    for _ in range(count):
        samples, noise = int(draw.integers(20, 2000)), float(draw.uniform(0.7, 5.0))
        batch, rounds = int(draw.integers(1, samples)), int(draw.integers(1, 120))
        kind = draw.random()
        if kind < 0.4:
            sampling = WithoutReplacement(batch, samples)
            pairs = (theorem_9_pair(1 / noise, batch / samples),)
        elif kind < 0.7:
            sampling = PoissonReplaced(batch / samples)
            pairs = (replaced_pair(1 / noise, batch / samples),)
        else:
            sampling = Poisson(batch / samples)
            pairs = poisson_pairs(1 / noise, batch / samples)
        epsilon = spent(sampling, noise, rounds)
        scale = max(np.dot(p, at**2) for at, p in pairs)
        low, high = (
            max(
                composed_delta(
                    *pair, rounds, epsilon, up=up, step=0.03 * math.sqrt(scale)
                )
                for pair in pairs
            )
            for up in (False, True)
        )
        assert low <= DELTA * 1.001, (sampling, noise, rounds)
        assert epsilon == 0 or DELTA <= high * 1.001, (sampling, noise, rounds)


def test_some_random_accounts_against_an_independent_convolution():
    check_random_accounts(6, seed=1)


@pytest.mark.long
def test_many_random_accounts_against_an_independent_convolution():
    check_random_accounts(92, seed=2)
