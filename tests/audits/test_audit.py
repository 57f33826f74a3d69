"""Audits with teeth: planted faults are refuted, sound mechanisms are not."""

from __future__ import annotations

import math

import jax
import numpy as np
import pytest
from scipy import stats

from tacita.audits.batch_tests import batch_faults
from tacita.audits.noise_tests import noise_faults
from tacita.audits.tradeoff import allowed_by, finding
from tacita.privacy import gaussian_guarantee
from tacita.privacy.letters import composition
from tacita.theory.gaussian import epsilon_of_mu
from tests.audits.faults import (
    FAULTS,
    SOUND,
    Case,
    forgetful_noise_of_a_mean,
    honest,
    rows,
)

DELTA = 1e-5


def claimed(mu: float):
    return gaussian_guarantee(
        observer="coordinator",
        unit="record",
        relation="replace_one",
        noise_std=1.0,
        sensitivity=mu,
    )


def scores(mu: float, runs: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    return draw.normal(mu, 1, runs), draw.normal(0, 1, runs)


def found(mu: float, claim: float, seed: int, runs: int = 4000, confidence=0.99):
    return finding(
        *scores(mu, runs, seed),
        claim=claimed(claim),
        delta=DELTA,
        confidence=confidence,
        key=jax.random.key(seed),
    )


def test_a_claimed_curve_allows_what_it_says():
    q = np.array([0.01, 0.3, 0.9])
    gaussian = allowed_by(claimed(1.0), DELTA)(q)
    np.testing.assert_allclose(gaussian, stats.norm.cdf(stats.norm.ppf(q) + 1))
    # one epsilon at one delta: two lines
    both = np.minimum(math.e * q + 0.1, 1 - (1 - 0.1 - q) / math.e)
    np.testing.assert_allclose(allowed_by(1.0, 0.1)(q), np.minimum(both, 1))


def test_a_true_curve_is_refuted_at_most_as_often_as_stated():
    each = [found(0.5, 0.5, seed, 1500, 0.9) for seed in range(60)]
    most = stats.binom(60, 0.1).ppf(0.999)
    assert sum(bool(one.refuted) for one in each) <= most
    assert sum(one.mu > 0.5 for one in each) <= most


def test_a_curve_tells_more_than_one_epsilon():
    """At delta = 1e-5 a claim of 1 is about 0.27 standard deviations."""
    mu = {1.0: 0.268, 4.0: 0.93}
    for epsilon, share in ((1.0, 0.45), (4.0, 0.8)):
        seen = [found(mu[epsilon], 9.0, seed, 20_000) for seed in range(5)]
        truth = epsilon_of_mu(mu[epsilon], DELTA)
        assert truth == pytest.approx(epsilon, rel=0.02)
        assert np.mean([one.gaussian_epsilon for one in seen]) > share * truth
        assert max(one.lower_bound for one in seen) < truth
    # Half the noise, at the same delta, is refuted by the curve and not by epsilon.
    one = found(2 * 0.268, 0.268, seed=0, runs=4000)
    assert one.refuted and one.lower_bound < 1.0


@pytest.mark.parametrize("fault", ("none", "shape", "round", "number", "row"))
def test_noise_is_tested(fault):
    draw = np.random.default_rng(3)
    here, there = draw.normal(size=(2, 2000, 3, 2))
    if fault == "shape":
        here, there = (draw.uniform(-1, 1, (2000, 3, 2)) for _ in range(2))
    if fault == "round":
        here[:, 2], there[:, 2] = here[:, 0], there[:, 0]
    if fault == "number":
        here[:, 1, 1] = there[:, 1, 1] = 0.0
    if fault == "row":
        there *= 1.5
    words = {
        "none": "",
        "shape": "not normal",
        "round": "noise of round 1 used again in round 3",
        "number": "no noise in number 2 of the letters of round 2",
        "row": "depends on the row",
    }
    told = [one.words for one in noise_faults(here, there, 1e-3)]
    assert bool(told) == (fault != "none")
    assert not told or any(words[fault] in one for one in told)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ("Poisson batches", "fixed batches"))
def test_batches_are_tested(name):
    key = jax.random.key(1)
    sound = SOUND[name]()
    assert batch_faults(sound.problem, sound.algorithm, 0, key, 1e-3) == ()
    if name == "Poisson batches":
        fixed = FAULTS["fixed batches accounted as Poisson"](4.0)
        (fault,) = batch_faults(fixed.problem, fixed.algorithm, 0, key, 1e-3)
        assert "sizes do not vary" in fault.words


QUICK = ("noise halved", "a row other than the first not clipped")


@pytest.mark.few(1)
@pytest.mark.parametrize("name", QUICK)
def test_a_fault_is_refuted_in_a_few_runs(name):
    result = FAULTS[name](4.0).audit(runs=6000)
    assert result.found.refuted and result.refuted, str(result)
    assert "REFUTED" in str(result) and result.as_dict()["refuted"]


@pytest.mark.long
@pytest.mark.parametrize("epsilon", (1.0, 4.0))
@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_is_refuted_at_the_defaults(name, epsilon, monkeypatch):
    case = FAULTS[name](epsilon)
    if "step sizes" in name:
        assert case.audit(seed=5).refuted is False
        monkeypatch.setattr(composition, "noise_of_a_mean", forgetful_noise_of_a_mean)
    result = case.audit(seed=5)
    assert result.confidence == 0.99 and result.refuted, str(result)


@pytest.mark.long
def test_a_sound_run_is_not_refuted_and_most_of_its_epsilon_is_found():
    result = Case(rows(), honest(rows(), 4.0)).audit(runs=12_000)
    assert result.refuted is False and not result.faults, str(result)
    assert 0.8 * 4 < result.gaussian_epsilon < 4
    assert "not refuted" in str(result) and "it holds if: " in str(result)


@pytest.mark.long
@pytest.mark.parametrize("name", SOUND)
def test_sound_mechanisms_are_not_refuted(name):
    case = SOUND[name]()
    refuted = [case.audit(runs=4000, seed=seed).refuted for seed in range(4)]
    assert not any(refuted)
