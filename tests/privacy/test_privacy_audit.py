"""Audit statistics: never refute what is private, refute what is not."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from tacita.audits import audit_outputs, epsilon_lower_bound
from tacita.audits.statistics import Event, clopper_pearson, epsilon_bound
from tacita.check import TacitaError
from tacita.privacy import (
    fed_plt,
    gaussian,
    gaussian_guarantee,
    gaussian_sigma,
    laplace,
    randomised_response,
)
from tacita.theory.gaussian import epsilon_of_mu

SEEN = {"observer": "coordinator", "unit": "record", "relation": "replace_one"}


def samples(mu, runs, seed):
    draw = np.random.default_rng(seed)
    return draw.normal(mu, 1, runs), draw.normal(0, 1, runs)


@pytest.mark.parametrize("runs", (1, 7, 40))
@pytest.mark.parametrize("error", (0.2, 0.005))
def test_clopper_pearson_covers_exactly(runs, error):
    """Enumerate every count: each bound fails with probability at most `error`."""
    hits = np.arange(runs + 1)
    low, high = clopper_pearson(hits, runs, error)
    for p in np.linspace(0.001, 0.999, 83):
        mass = stats.binom.pmf(hits, runs, p)
        assert mass[low > p].sum() <= error * (1 + 1e-9)
        assert mass[high < p].sum() <= error * (1 + 1e-9)
    exact = stats.binomtest(3, 7).proportion_ci(0.9, method="exact")
    assert clopper_pearson(3, 7, 0.05)[0] == pytest.approx(exact.low)
    assert clopper_pearson(3, 7, 0.05)[1] == pytest.approx(exact.high)


def test_bound_from_counts():
    runs = 10**9
    p, q = 0.5, 0.1
    bound = epsilon_bound(int(p * runs), runs, int(q * runs), runs, 0.05, 0.01)
    assert bound == pytest.approx(math.log((p - 0.05) / q), abs=1e-3)
    assert bound < math.log((p - 0.05) / q)
    assert epsilon_bound(0, 100, 50, 100, 1e-5, 0.01) == 0.0
    assert epsilon_bound(10, 100, 0, 100, 0.9, 0.01) == 0.0
    assert np.isfinite(epsilon_bound(100, 100, 0, 100, 1e-5, 0.01))


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("mu", "delta", "events"), ((1.0, 0.1, 1), (2.0, 0.3, 1), (1.0, 0.1, 4))
)
def test_a_sound_mechanism_is_refuted_at_most_as_often_as_stated(mu, delta, events):
    """Gaussian of known epsilon: violations must not exceed the nominal rate."""
    confidence, audits = 0.8, 150
    truth = epsilon_of_mu(mu, delta)
    violations, bounds = 0, []
    for seed in range(audits):
        result = epsilon_lower_bound(
            *samples(mu, 1500, seed),
            delta=delta,
            key=jax.random.key(seed),
            confidence=confidence,
            events=events,
        )
        violations += result.refutes(truth)
        bounds.append(result.lower_bound)
    nominal = stats.binom(audits, 1 - confidence).ppf(0.999)
    assert violations <= nominal
    assert np.mean(bounds) > 0.55 * truth  # and the bound is worth having


@pytest.mark.long
def test_choosing_and_counting_on_the_same_runs_would_be_wrong():
    """Why the halves: the best of many events on pure noise looks like a leak."""
    draw = np.random.default_rng(0)
    honest, naive = 0, 0
    for seed in range(60):
        one, two = draw.normal(size=(2, 400))
        result = epsilon_lower_bound(
            one, two, delta=1e-5, key=jax.random.key(seed), confidence=0.8
        )
        honest += result.refutes(0.0)
        bounds = [
            epsilon_bound(np.sum(a >= t), 400, np.sum(b >= t), 400, 1e-5, 0.2)
            for t in np.linspace(-2.5, 2.5, 60)
            for a, b in ((one, two), (two, one), (-one, -two), (-two, -one))
        ]
        naive += max(bounds) > 0
    assert honest <= stats.binom(60, 0.2).ppf(0.999)
    assert naive > 30


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(3))
def test_halved_noise_is_refuted_at_99_percent(seed):
    epsilon, delta, runs = 1.0, 1e-5, 200_000
    sigma = gaussian_sigma(epsilon, delta)
    claim = gaussian_guarantee(**SEEN, noise_std=sigma, sensitivity=1.0)
    keys = jax.random.split(jax.random.key(seed), 5)

    def audit(noise, one, two):
        on_data = gaussian(one, jnp.ones(runs), noise)
        on_neighbour = gaussian(two, jnp.zeros(runs), noise)
        return epsilon_lower_bound(on_data, on_neighbour, delta=delta, key=keys[4])

    right = audit(sigma, keys[0], keys[1])
    wrong = audit(sigma / 2, keys[2], keys[3])
    assert right.confidence == 0.99
    assert not right.refutes(claim) and not right.refutes(epsilon)
    assert wrong.refutes(claim) and wrong.refutes(epsilon)
    assert wrong.lower_bound < epsilon_of_mu(2 / sigma, delta)
    first, second = wrong.hits
    assert wrong.runs == (runs // 2, runs // 2) and first > second
    assert isinstance(wrong.threshold, float)


@pytest.mark.parametrize("sign", (1.0, -1.0))
@pytest.mark.parametrize("swapped", (False, True))
def test_both_tails_and_both_orders_are_looked_at(sign, swapped):
    """A leak that shows in one tail of one side only."""
    draw = np.random.default_rng(5)
    plain, leaky = draw.uniform(0, 1, (2, 20_000))
    leaky[draw.uniform(size=20_000) < 0.05] = 1.5
    pair = (sign * plain, sign * leaky) if swapped else (sign * leaky, sign * plain)
    result = epsilon_lower_bound(*pair, delta=1e-3, key=jax.random.key(0))
    assert result.lower_bound > 3.0
    assert result.event.tail == ("above" if sign > 0 else "below")
    assert result.event.likelier == ("neighbour" if swapped else "data")


def test_discrete_and_heavy_tailed_mechanisms():
    runs = 60_000
    keys = jax.random.split(jax.random.key(1), 5)
    answers = [
        randomised_response(key, jnp.full(runs, label), epsilon=1.0, classes=2)
        for key, label in ((keys[0], 1), (keys[1], 0))
    ]
    result = epsilon_lower_bound(*answers, delta=1e-6, key=keys[4])
    assert 0.9 < result.lower_bound <= 1.0
    noisy = [
        laplace(keys[2], jnp.ones(runs), 0.5),
        laplace(keys[3], jnp.zeros(runs), 0.5),
    ]
    result = epsilon_lower_bound(*noisy, delta=1e-6, key=keys[4])
    assert 1.8 < result.lower_bound <= 2.0


def test_no_run_ever_hits_the_other_side():
    result = epsilon_lower_bound(
        np.ones(1000), np.zeros(1000), delta=1e-5, key=jax.random.key(0)
    )
    upper = 1 - 0.005 ** (1 / 500)
    lower = 0.005 ** (1 / 500)
    assert result.lower_bound == pytest.approx(math.log((lower - 1e-5) / upper))
    same = epsilon_lower_bound(
        np.zeros(50), np.zeros(50), delta=1e-5, key=jax.random.key(0)
    )
    assert same.lower_bound == 0.0 and not same.refutes(0.0)


def test_sorted_scores_and_the_key():
    """Order must not matter, and the key decides the split."""
    one, two = samples(1.0, 4000, seed=3)
    results = [
        epsilon_lower_bound(
            np.sort(one), np.sort(two), delta=1e-2, key=jax.random.key(seed)
        ).lower_bound
        for seed in (0, 0, 1)
    ]
    assert results[0] == results[1] != results[2]
    assert 0.5 < results[0] < epsilon_of_mu(1.0, 1e-2)


def test_learned_classifier_finds_a_direction_nobody_named():
    """20 coordinates, a shift along an unknown direction, halved noise."""
    epsilon, delta, runs, width = 1.0, 1e-5, 60_000, 20
    sigma = gaussian_sigma(epsilon, delta)
    draw = np.random.default_rng(2)
    direction = draw.normal(size=width)
    direction /= np.linalg.norm(direction)

    def outputs(shift, noise):
        return shift * direction + draw.normal(0, noise, (runs, width))

    wrong = audit_outputs(
        outputs(1, sigma / 2), outputs(0, sigma / 2), delta=delta, key=jax.random.key(0)
    )
    assert wrong.refutes(epsilon)
    right = audit_outputs(
        outputs(1, sigma), outputs(0, sigma), delta=delta, key=jax.random.key(0)
    )
    assert 0.1 < right.lower_bound < epsilon
    # One coordinate alone would have seen less.
    single = epsilon_lower_bound(
        outputs(1, sigma / 2)[:, 0],
        outputs(0, sigma / 2)[:, 0],
        delta=delta,
        key=jax.random.key(0),
    )
    assert single.lower_bound < wrong.lower_bound


def test_refutes_a_papers_claim_without_refuting_the_guarantee():
    """Scores of an observer who learns exactly what the sound bound allows."""
    run = fed_plt(
        observer="coordinator",
        strong_convexity=1.0,
        smoothness=1.0,
        rho=10.0,
        step_size=0.5,
        local_steps=10,
        noise_std=1.0,
        lipschitz=1.0,
        samples=2,
        rounds=100,
    )
    runs = 20_000
    one, two = samples(run.mu, runs, seed=9)
    result = epsilon_lower_bound(one, two, delta=1e-2, key=jax.random.key(0))
    assert not result.refutes(run)
    assert result.refutes(run.paper_claim) == (
        result.lower_bound > run.paper_claim.claimed_epsilon(1e-2)
    )
    assert result.refutes(run.paper_claim)


def test_events_count_their_tails():
    scores = np.array([0.0, 1.0, 1.0, 2.0])
    assert Event("above", 1.0, "data").count(scores) == 3
    assert Event("below", 0.5, "data").count(scores) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    (
        ({"delta": 0.0}, "delta"),
        ({"delta": math.nan}, "delta"),
        ({"confidence": 1.0}, "confidence"),
        ({"events": 0}, "events"),
        ({"scores": np.array([1.0, math.nan] * 4)}, "NaN"),
        ({"scores": np.zeros((4, 4))}, "shape"),
        ({"scores": np.zeros(3)}, "at least 4 scores"),
        ({"neighbour_scores": np.zeros(2)}, "at least 4 neighbour_scores"),
    ),
)
def test_refusals(change, message):
    good = {
        "scores": np.arange(8.0),
        "neighbour_scores": np.arange(8.0),
        "delta": 1e-5,
        "key": jax.random.key(0),
    }
    with pytest.raises(TacitaError, match=message):
        epsilon_lower_bound(**{**good, **change})


def test_outputs_are_checked():
    key = jax.random.key(0)
    with pytest.raises(TacitaError, match="at least 12 outputs"):
        audit_outputs(np.zeros((5, 2)), np.zeros((20, 2)), delta=0.1, key=key)
    with pytest.raises(TacitaError, match="shape"):
        audit_outputs(np.zeros((20, 3)), np.zeros((20, 2)), delta=0.1, key=key)
    with pytest.raises(TacitaError, match="claim"):
        epsilon_lower_bound(np.arange(9.0), np.arange(9.0), delta=0.1, key=key).refutes(
            math.nan
        )
