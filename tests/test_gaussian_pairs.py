"""Noise in pairs: Gaussian, independent, as long as asked for, and scaled by std."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import tacita
from tacita import gaussian_pairs

KEY = jax.random.key(5)


@pytest.fixture(scope="module")
def numbers():
    """A million, added to nothing."""
    nothing, one = jnp.zeros(10**6, jnp.float32), jnp.float32(1)
    return np.asarray(gaussian_pairs.drawn_and_added(nothing, KEY, one), float)


def test_they_are_gaussian(numbers):
    assert stats.kstest(numbers, "norm").pvalue > 1e-3
    # Tails too, where few numbers lie: as many as there should be.
    for edge in (3.0, 4.0):
        expected = 2 * stats.norm.sf(edge) * len(numbers)
        assert stats.poisson.cdf((np.abs(numbers) > edge).sum(), expected) > 1e-3
        assert stats.poisson.sf((np.abs(numbers) > edge).sum(), expected) > 1e-3
    # The scale to 0.3 per cent: one per cent less is refused.
    total = stats.chi2(len(numbers))
    assert 1e-3 < total.cdf(np.sum(numbers**2)) < 1 - 1e-3
    assert total.cdf(np.sum((0.99 * numbers) ** 2)) < 1e-9


def test_both_of_a_pair_and_neighbours_are_independent(numbers):
    half = len(numbers) // 2
    partners = numbers[:half], numbers[half:]
    for one, other in (partners, (numbers[1:], numbers[:-1])):
        # Of their values, of their sizes, of signs with sizes.
        for f, g in ((np.copy, np.copy), (np.square, np.square), (np.copy, np.square)):
            r = np.corrcoef(f(one), g(other))[0, 1]
            assert abs(r) * np.sqrt(half) < 4
    angles = np.arctan2(*partners) / (2 * np.pi) + 0.5
    assert stats.kstest(angles, "uniform").pvalue > 1e-3


def test_logarithms_and_circles_are_exact_to_single_precision():
    words = jnp.asarray([0, 1, 2, 2**31, 2**32 - 1, *range(77, 2**32, 10**8)], "uint32")
    u = np.maximum(((np.asarray(words) >> 1) + 0.5) / 2**31, 2.0**-32)
    minus_log = jax.jit(gaussian_pairs._minus_log)(words)  # pyright: ignore
    np.testing.assert_allclose(minus_log, -np.log(u), rtol=2e-6, atol=1e-7)
    sine, cosine = jax.jit(gaussian_pairs._on_the_circle)(words)  # pyright: ignore
    np.testing.assert_allclose(sine**2 + cosine**2, 1, atol=1e-6)


@pytest.mark.parametrize("size", (511, 1026))
def test_numbers_ahead_or_in_time_are_as_many_as_asked_for(size):
    value = jnp.linspace(0, 1, size, dtype=jnp.float32)

    @jax.jit
    def found(key, std):
        pairs = gaussian_pairs.drawn(key, 2, size)
        ahead = jax.vmap(lambda one: gaussian_pairs.added(value, one, std))(pairs)
        return ahead, gaussian_pairs.drawn_and_added(value, key, std)

    ahead, now = found(KEY, jnp.float32(0.5))
    np.testing.assert_allclose(ahead[0], now, atol=1e-6)
    noise = np.asarray(ahead - value)
    assert noise.shape == (2, size) and len(np.unique(noise)) > 1.99 * size
    assert 0.45 < noise.std() < 0.55
    for silent in found(KEY, jnp.float32(0)):
        np.testing.assert_array_equal(silent, jnp.broadcast_to(value, silent.shape))


def test_other_precisions_and_keys_are_drawn_as_before():
    assert gaussian_pairs.fit(KEY, 512, np.float32)
    assert not gaussian_pairs.fit(KEY, 511, np.float32)
    assert not gaussian_pairs.fit(KEY, 512, np.float64)
    assert not gaussian_pairs.fit(jax.random.key(0, impl="rbg"), 512, np.float32)


@pytest.mark.parametrize("features", (600, 8194))
def test_steps_and_agents_have_noise_of_their_own(features):
    """Rows without gradients: letters are noise, ahead of time or drawn in the step."""
    agents, steps = 3, 4
    problem = tacita.from_arrays(
        np.zeros((agents, features)),
        np.ones(agents),
        np.arange(agents),
        dtype="float32",
    )
    oracle = tacita.Noisy(std=2.0, oracle=tacita.Clipped(norm=1.0))
    algorithm = tacita.FedAvg(step_size=0.5, local_steps=steps, oracle=oracle)
    local = tacita.simulate(problem, algorithm, 1, seed=0, record=()).agents
    assert local.shape == (agents, features)
    # -0.5 (n_1 + ... + n_4), of standard deviation 0.5 * 2 * 2
    side = stats.chi2(local.size).cdf(np.sum((local / 2) ** 2))
    assert 1e-3 < side < 1 - 1e-3
    assert np.abs(np.corrcoef(local) - np.eye(agents)).max() < 4 / np.sqrt(features)
