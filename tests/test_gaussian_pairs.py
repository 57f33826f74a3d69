"""Noise in pairs: Gaussian, independent, as long as asked for, and scaled by std."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import tacita
from tacita import gaussian_pairs
from tacita.random_numbers import hashed_places
from tacita.runtime import engine
from tacita.runtime.ready import make_world, prepare

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


def test_the_hash_is_that_of_its_authors():
    """Known answers of Random123, for a key of zeros at place 0."""
    key = jax.random.wrap_key_data(jnp.zeros(2, jnp.uint32))
    known = {13: (0x9D1C5EC6, 0x8BD50731), 20: (0x6B200159, 0x99BA4EFE)}
    for rounds, words in known.items():
        found = hashed_places(key, 1, rounds)
        assert tuple(int(word[0]) for word in found) == words


def test_numbers_are_those_of_box_and_muller_in_double_precision():
    """The same words, hashed and turned into numbers by NumPy."""
    x, y = threefry(np.asarray(jax.random.key_data(KEY)), np.arange(1000), rounds=13)
    u, t = ((x >> 1) + 0.5) / 2**31, (y >> 9) / 2**23 - 0.5
    side = np.where(y & 1, -1, 1)
    radius = np.sqrt(-2 * np.log(u))
    wanted = radius * np.sin(np.pi * t), radius * side * np.cos(np.pi * t)
    pairs = 1024  # of which the first 1000 are asked for here
    found = np.asarray(gaussian_pairs.drawn(KEY, 1, 2 * pairs)[0])
    for place, numbers in zip((0, pairs), wanted, strict=True):
        mine = found[place : place + 1000]
        np.testing.assert_allclose(mine, numbers, rtol=2e-6, atol=1e-6)


def threefry(key, places, rounds):
    """Written from the paper, in integers of 64 bits."""
    low = 2**32 - 1
    k = [int(key[0]), int(key[1])]
    k.append(k[0] ^ k[1] ^ 0x1BD11BDA)
    x, y = np.full(len(places), k[0]), (places + k[1]) & low
    for r in range(rounds):
        turn = (13, 15, 26, 6, 17, 29, 16, 24)[r % 8]
        x = (x + y) & low
        y = ((y << turn | y >> (32 - turn)) & low) ^ x
        if r % 4 == 3:
            part = r // 4 + 1
            x = (x + k[part % 3]) & low
            y = (y + k[(part + 1) % 3] + part) & low
    return x, y


def test_logarithms_and_circles_are_exact_to_single_precision():
    words = jnp.asarray([0, 1, 2, 2**31, 2**32 - 1, *range(77, 2**32, 10**8)], "uint32")
    u = np.maximum(((np.asarray(words) >> 1) + 0.5) / 2**31, 2.0**-32)
    logs = jax.jit(gaussian_pairs._minus_two_logs)(words)  # pyright: ignore
    np.testing.assert_allclose(logs, -2 * np.log(u), rtol=2e-6, atol=2e-7)
    sine, cosine = jax.jit(gaussian_pairs._on_the_circle)(words)  # pyright: ignore
    np.testing.assert_allclose(sine**2 + cosine**2, 1, atol=1e-6)


@pytest.mark.long
@pytest.mark.parametrize("seed", (0, 1))
def test_ten_million_are_gaussian_to_five_deviations_and_independent(seed):
    """Of four agents: all of them together, and each beside the others."""
    agents, size = 4, 2_500_000
    keys = jax.random.split(jax.random.key(seed), agents)
    nothing, one = jnp.zeros(size, jnp.float32), jnp.float32(1)
    draw = jax.jit(lambda k: gaussian_pairs.drawn_and_added(nothing, k, one))
    each = np.stack([np.asarray(draw(key), float) for key in keys])
    every = each.ravel()
    assert stats.kstest(every, "norm").pvalue > 1e-3
    # Moments 1 to 6 against their own spread: E x^k, and Var x^k = E x^2k - (E x^k)^2.
    even = {k: float(np.prod(np.arange(1, k, 2))) for k in range(2, 13, 2)}
    for k in range(1, 7):
        mean = even.get(k, 0.0)
        spread = np.sqrt((even[2 * k] - mean**2) / every.size)
        assert abs(np.mean(every**k) - mean) < 4 * spread
    for edge in (1.0, 2.0, 3.0, 4.0, 4.5, 5.0):
        for tail in (every > edge, every < -edge):
            expected = stats.norm.sf(edge) * every.size
            assert stats.poisson.cdf(tail.sum(), expected) > 1e-4
            assert stats.poisson.sf(tail.sum() - 1, expected) > 1e-4
    for f in (np.copy, np.square, np.abs):
        r = np.corrcoef(f(each)) - np.eye(agents)
        assert np.abs(r).max() * np.sqrt(size) < 4.5
    # Neighbours, and numbers a power of two apart, where a weak hash would show.
    for gap in 2 ** np.arange(0, 21, 2):
        for f in (np.copy, np.square):
            r = np.corrcoef(f(each[0, gap:]), f(each[0, :-gap]))[0, 1]
            assert abs(r) * np.sqrt(size - gap) < 4.5


@pytest.mark.parametrize("size", (511, 1026))
def test_numbers_ahead_or_in_time_are_as_many_as_asked_for(size):
    value = jnp.linspace(0, 1, size, dtype=jnp.float32)

    @jax.jit
    def found(key, std):
        one, two = (gaussian_pairs.drawn(key, n, size)[:, :size] for n in (1, 2))
        now = gaussian_pairs.drawn_and_added(value, key, std)
        return value + std * two, value + std * one[0], now

    ahead, alone, now = found(KEY, jnp.float32(0.5))
    np.testing.assert_allclose(alone, now, atol=1e-6)
    noise = np.asarray(ahead - value)
    assert noise.shape == (2, size) and len(np.unique(noise)) > 1.99 * size
    assert 0.45 < noise.std() < 0.55
    for silent in found(KEY, jnp.float32(0)):
        np.testing.assert_array_equal(silent, jnp.broadcast_to(value, silent.shape))


def test_each_lane_has_its_own_deviation_and_the_words_of_its_key():
    """Where branches become choices, words that are no floats must survive them."""
    size, keys = 4096, jax.random.split(KEY, 3)
    stds = jnp.asarray([0.5, 0.0, 2.0], jnp.float32)
    value = jnp.zeros(size, jnp.float32)

    def one(key, std):
        ahead = gaussian_pairs.drawn(key, 1, size)[0]
        now = gaussian_pairs.drawn_and_added(value, key, std)
        return now, gaussian_pairs.added(value, ahead, std)

    together = jax.jit(jax.vmap(one))(keys, stds)
    for lane in range(3):
        for found, alone in zip(together, one(keys[lane], stds[lane]), strict=True):
            np.testing.assert_allclose(found[lane], alone, atol=1e-6)


def test_other_precisions_and_keys_are_drawn_as_before():
    assert gaussian_pairs.fit(KEY, 64, np.float32)
    assert not gaussian_pairs.fit(KEY, 63, np.float32)
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


@tacita.trees.in_double_precision
def test_programs_with_noise_in_pairs_have_wide_vectors(monkeypatch):
    monkeypatch.setattr(engine, "abilities", lambda: "flags: sse avx512f")
    rows, labels = np.random.default_rng(0).normal(size=(6, 300)), np.ones(6)
    quiet = tacita.Noisy(std=0.3, oracle=tacita.Clipped(norm=1.0))
    exact = tacita.Noisy(std=0.3, oracle=quiet.oracle, noise_kind="integers")
    used = {}
    for dtype, oracle in (
        ("float32", quiet),
        ("float32", quiet.oracle),
        ("float64", quiet),
        ("float64", exact),
    ):
        problem = tacita.from_arrays(rows, labels, np.arange(6) % 3, dtype=dtype)
        algorithm = tacita.FedAvg(step_size=0.1, local_steps=2, oracle=oracle)
        world = make_world(problem, prepare(problem, algorithm), 1.0)
        program = engine.advance.of(world, algorithm)
        used[dtype, oracle] = program is engine.advance._wide
    assert list(used.values()) == [True, False, False, False]
    monkeypatch.setattr(engine, "abilities", lambda: "flags: sse avx2")
    problem = tacita.from_arrays(rows, labels, np.arange(6) % 3, dtype="float32")
    algorithm = tacita.FedAvg(step_size=0.1, oracle=quiet)
    world = make_world(problem, prepare(problem, algorithm), 1.0)
    assert engine.advance.of(world, algorithm) is engine.advance._usual


@pytest.mark.long
def test_wide_programs_have_the_numbers_of_agents_one_by_one():
    rows = np.random.default_rng(0).normal(size=(6, 300))
    problem = tacita.from_arrays(rows, np.ones(6), np.arange(6) % 3, dtype="float32")
    quiet = tacita.Noisy(std=0.3, oracle=tacita.Clipped(norm=1.0))
    algorithm = tacita.FedAvg(step_size=0.1, local_steps=2, oracle=quiet)
    found = tacita.simulate(problem, algorithm, 2, seed=3, record=()).agents
    one_by_one = tacita.debug(problem, algorithm, 2, seed=3, record=()).agents
    np.testing.assert_allclose(found, one_by_one, rtol=1e-4, atol=1e-6)
