"""Mechanisms: the noise has the scale it says, and a 5 % smaller one is caught."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from tacita.check import TacitaError
from tacita.privacy import (
    gaussian,
    laplace,
    randomised_response,
)
from tacita.privacy.accounting.mechanisms import keep_probability

RUNS = 40_000
CAUGHT = 1e-6  # a right scale is rejected once in a million seeds, a wrong one always


def gaussian_scale_fits(noise, sigma):
    """Two-sided chi-square test that the noise is N(0, sigma^2)."""
    statistic = float(np.sum((np.asarray(noise, dtype=float) / sigma) ** 2))
    tail = stats.chi2(np.size(noise)).cdf(statistic)
    return 2 * min(tail, 1 - tail) > CAUGHT


def laplace_scale_fits(noise, scale):
    """|noise| is exponential, so its sum is Gamma(n, scale)."""
    statistic = float(np.sum(np.abs(np.asarray(noise, dtype=float))) / scale)
    tail = stats.gamma(np.size(noise)).cdf(statistic)
    return 2 * min(tail, 1 - tail) > CAUGHT


def shape_fits(noise, distribution):
    return stats.kstest(np.asarray(noise, dtype=float).ravel(), distribution).pvalue > (
        CAUGHT
    )


@pytest.mark.parametrize("seed", range(5))
def test_gaussian_noise_has_its_scale(seed):
    sigma = 3.7
    value = jnp.linspace(-5, 5, RUNS)
    noise = gaussian(jax.random.key(seed), value, sigma) - value
    assert gaussian_scale_fits(noise, sigma)
    assert shape_fits(noise, stats.norm(0, sigma).cdf)
    small = gaussian(jax.random.key(seed), value, 0.95 * sigma) - value
    assert not gaussian_scale_fits(small, sigma)
    large = gaussian(jax.random.key(seed), value, 1.05 * sigma) - value
    assert not gaussian_scale_fits(large, sigma)


@pytest.mark.parametrize("seed", range(5))
def test_laplace_noise_has_its_scale(seed):
    scale = 0.4
    value = jnp.zeros(RUNS)
    noise = laplace(jax.random.key(seed), value, scale)
    assert laplace_scale_fits(noise, scale)
    assert shape_fits(noise, stats.laplace(0, scale).cdf)
    small = laplace(jax.random.key(seed), value, 0.95 * scale)
    assert not laplace_scale_fits(small, scale)


@pytest.mark.parametrize("classes", (2, 7))
def test_randomised_response_answers_as_often_as_it_says(classes):
    epsilon = 1.2
    labels = jnp.arange(RUNS) % classes
    answers = randomised_response(
        jax.random.key(3), labels, epsilon=epsilon, classes=classes
    )
    assert answers.dtype == labels.dtype
    assert int(answers.min()) == 0 and int(answers.max()) == classes - 1
    keep = keep_probability(epsilon, classes)
    kept = int(np.sum(answers == labels))
    assert stats.binomtest(kept, RUNS, keep).pvalue > CAUGHT
    # epsilon 5 % too large keeps too many labels, and is caught.
    bolder = randomised_response(
        jax.random.key(3), labels, epsilon=1.05 * epsilon, classes=classes
    )
    assert stats.binomtest(int(np.sum(bolder == labels)), RUNS, keep).pvalue < 1e-3
    # The other labels are uniform.
    shifts = np.asarray((answers - labels) % classes)
    counts = np.bincount(shifts, minlength=classes)[1:]
    assert classes == 2 or stats.chisquare(counts).pvalue > CAUGHT
    rest = (1 - keep) / (classes - 1)
    assert math.log(keep / rest) == pytest.approx(epsilon)


@pytest.mark.parametrize(
    ("kind", "classes"), [(jnp.int8, 100), (jnp.int8, 128), (jnp.uint8, 256)]
)
def test_small_numbers_have_all_answers_too(kind, classes):
    """99 + 99 is no int8: an answer that never occurs tells labels apart for sure."""
    labels = jnp.full(RUNS, classes - 1, kind)
    answers = randomised_response(
        jax.random.key(5), labels, epsilon=1.0, classes=classes
    )
    assert answers.dtype == kind
    counts = np.bincount(np.asarray(answers, int), minlength=classes)
    assert len(counts) == classes
    assert stats.chisquare(counts[:-1]).pvalue > CAUGHT


def test_noise_is_a_function_of_the_key_and_keeps_the_dtype():
    value = jnp.zeros(8, jnp.float32)
    one, two = jax.random.split(jax.random.key(0))
    for mechanism in (gaussian, laplace):
        first = mechanism(one, value, 1.0)
        assert first.dtype == jnp.float32
        np.testing.assert_array_equal(first, mechanism(one, value, 1.0))
        assert not np.any(np.asarray(first) == np.asarray(mechanism(two, value, 1.0)))
    with jax.enable_x64(True):
        wide = gaussian(one, jnp.zeros(8, jnp.float64), 1.0)
        assert wide.dtype == jnp.float64
    old_style = jax.random.PRNGKey(0)
    assert gaussian(old_style, value, 1.0).shape == (8,)


def test_mechanisms_run_under_jit_and_vmap():
    keys = jax.random.split(jax.random.key(0), 3)
    values = jnp.arange(12.0).reshape(3, 4)
    batched = jax.jit(jax.vmap(gaussian, in_axes=(0, 0, None)))(keys, values, 0.5)
    one_by_one = jnp.stack(
        [gaussian(k, v, 0.5) for k, v in zip(keys, values, strict=True)]
    )
    np.testing.assert_allclose(batched, one_by_one, rtol=1e-6)
    respond = jax.jit(
        lambda key, y: randomised_response(key, y, epsilon=1.0, classes=3)
    )
    assert respond(keys[0], jnp.array([0, 1, 2])).shape == (3,)


@pytest.mark.parametrize("bad", (0.0, -1.0, math.nan, math.inf))
def test_scales_are_refused(bad):
    key, value = jax.random.key(0), jnp.zeros(2)
    with pytest.raises(TacitaError, match="noise_std"):
        gaussian(key, value, bad)
    with pytest.raises(TacitaError, match="scale"):
        laplace(key, value, bad)
    with pytest.raises(TacitaError, match="epsilon"):
        randomised_response(key, jnp.array([0]), epsilon=bad, classes=2)


def test_other_input_is_refused():
    key = jax.random.key(0)
    for wrong in (0, None, jax.random.split(key, 2), np.zeros(2, np.uint32)):
        with pytest.raises(TacitaError, match="JAX random key"):
            gaussian(wrong, jnp.zeros(2), 1.0)
    with pytest.raises(TacitaError, match="floating-point"):
        gaussian(key, jnp.array([1, 2]), 1.0)
    with pytest.raises(TacitaError, match="integers"):
        randomised_response(key, jnp.array([0.5]), epsilon=1.0, classes=2)
    with pytest.raises(TacitaError, match=r"labels in 0\.\.1, got labels from 0 to 2"):
        randomised_response(key, jnp.array([0, 2]), epsilon=1.0, classes=2)
    with pytest.raises(TacitaError, match="classes"):
        randomised_response(key, jnp.array([0]), epsilon=1.0, classes=1)
