"""Noise of exact integers: the table in JAX, the grid, the law."""

from __future__ import annotations

import hashlib
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tacita
from tacita import gaussian_table, integer_noise
from tacita.aggregation.secure.noise_table import chain
from tacita.integer_noise import MULTIPLES, SPREAD, with_noise
from tacita.trees import in_double_precision


@in_double_precision
def test_words_in_jax_find_the_values_of_the_table():
    """At, below and above every boundary; where a low half decides, that is said."""
    first = gaussian_table.table().first
    near = {int(b) + k for b in first for k in (-1, 0, 1)} - {-1, 2**64}
    rng = np.random.default_rng(0)
    words = np.array([*sorted(near), *rng.integers(0, 2**63, 5000)], np.uint64)
    found, ties = integer_noise._looked_up(jnp.asarray(words))
    ties = np.asarray(ties)
    np.testing.assert_array_equal(ties, np.isin(words, first))
    expected = gaussian_table.draw(words, np.zeros_like(words))
    np.testing.assert_array_equal(np.asarray(found)[~ties], expected[~ties])


def test_low_halves_decide_ties_by_all_128_bits():
    exact = gaussian_table.table().exact
    high = np.array([b >> 64 for b in exact[::50]], np.uint64)
    key = np.arange(8, dtype=np.uint32)
    found = integer_noise._on_host(key, high)
    low = hashlib.shake_256(b"low halves" + key.tobytes()).digest(8 * len(high))
    words = [(int(h) << 64) | int(x) for h, x in zip(high, np.frombuffer(low, "<u8"))]  # noqa: B905
    counted = [sum(b <= word for b in exact) for word in words]
    np.testing.assert_array_equal(found, np.array(counted) - gaussian_table.REACH)


def test_multiples_make_a_discrete_gaussian():
    assert chain(MULTIPLES) == MULTIPLES
    assert math.sqrt(sum((256 * k) ** 2 for k in MULTIPLES)) == SPREAD


@in_double_precision
def test_what_leaves_is_an_integer_that_depends_on_the_rounded_number_alone():
    step, drawn = 0.5 / SPREAD, jnp.array([5, -(2**40), 0])
    exact = jnp.array([3.0, -7.0, 2.0]) * step
    off = exact + jnp.array([0.4, -0.4, 0.3]) * step
    released = np.asarray(with_noise(exact, drawn, 0.5))
    np.testing.assert_array_equal(released, with_noise(off, drawn, 0.5))
    np.testing.assert_array_equal(released, step * np.array([8, -(2**40) - 7, 2]))


@in_double_precision
def test_strange_numbers_do_not_show():
    drawn = jnp.array([1, 2, 3, 4])
    strange = jnp.array([jnp.nan, jnp.inf, -jnp.inf, 0.0])
    released = np.asarray(with_noise(strange, drawn, 1.0))
    assert np.isfinite(released).all()
    assert released[0] == 1 / SPREAD
    # Without noise nothing is rounded.
    np.testing.assert_array_equal(with_noise(strange[3:], drawn[3:], 0.0), [0.0])


@in_double_precision
def test_the_noise_has_its_size():
    drawn = integer_noise.integers(jax.random.key(1), (50_000,), jnp.array(MULTIPLES))
    scaled = np.asarray(drawn) / SPREAD
    assert abs(scaled.std() - 1) < 0.015 and abs(scaled.mean()) < 0.02
    assert abs(np.mean(np.abs(scaled) > 1.959964) - 0.05) < 0.005


def test_single_precision_is_refused():
    problem = tacita.problem.synthetic.logistic(
        agents=3, features=2, samples=20, dtype="float32"
    )
    with pytest.raises(tacita.TacitaError, match="double precision, got float32; make"):
        tacita.private(
            problem,
            tacita.DPSGD(step_size=0.5),
            epsilon=1.0,
            delta=1e-5,
            observer="coordinator",
            rounds=3,
            noise_kind="integers",
        )
    noisy = tacita.DPFedAvg(step_size=0.5, noise_std=1.0, noise_kind="integers")
    with pytest.raises(tacita.TacitaError, match="use noise_kind='float'"):
        tacita.simulate(problem, noisy, rounds=2)


@in_double_precision
def test_a_standard_deviation_of_either_sign_hides_as_much():
    """It may be made of a number that was received."""
    value, drawn = jnp.ones(2), jnp.asarray([7, -7])
    plus, minus = (with_noise(value, drawn, s) for s in (0.5, -0.5))
    assert np.array_equal(plus, minus) and not np.any(np.asarray(minus) == 1.0)
