"""What every robust rule promises, whatever the letters."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tacita
from tacita import aggregation as agg
from tacita.aggregation import Heard
from tacita.aggregation.gram import gram
from tacita.aggregation.robust_rule import MOST_WEIGHT, Vectors
from tacita.aggregation.sorting import _comparisons, _stages, nearest, rank_sum
from tacita.trees import double_precision

N, D, LIARS = 11, 4, 2
TRIMMED = agg.TrimmedMean(trim=LIARS)
RULES = [
    agg.ClippedMean(trim=LIARS),
    TRIMMED,
    agg.Median(),
    agg.GeometricMedian(),
    agg.RFA(steps=8),
    agg.Krum(liars=LIARS),
    agg.MultiKrum(liars=LIARS),
    agg.Bulyan(liars=LIARS),
    agg.CenteredClipping(start="median"),
    agg.NearestNeighbourMixing(liars=LIARS, rule=TRIMMED),
    agg.NearestNeighbourMixing(liars=LIARS, rule=agg.Krum(liars=LIARS)),
    agg.AdaptivelyClipped(liars=LIARS, rule=TRIMMED),
    agg.NormBound(),
    agg.FLTrust(root=0),
]
#: Where more lie than these bear, they are carried away; others only might be.
BREAKING = (
    *(agg.ClippedMean, agg.TrimmedMean, agg.Median, agg.GeometricMedian),
    *(agg.CenteredClipping, agg.NearestNeighbourMixing, agg.RFA),
)
each = pytest.mark.parametrize("rule", RULES, ids=lambda r: type(r).__name__)


def letters(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((N, D))


@each
def test_the_order_of_agents_does_not_matter(rule):
    rows = letters()
    order = np.r_[0, 1 + np.random.default_rng(1).permutation(N - 1)]
    np.testing.assert_allclose(rule.of(rows[order]), rule.of(rows), rtol=1e-8)


@each
def test_equal_letters_give_that_letter(rule):
    one = letters()[0]
    np.testing.assert_allclose(rule.of(np.tile(one, (N, 1)), centre=0.9 * one), one)


@each
def test_shifts_and_scales_go_through(rule):
    rows, centre = letters(), np.full(D, 0.1)
    there = rule.of(7 + 3 * rows, centre=7 + 3 * centre)
    here = rule.of(rows, centre=centre)
    np.testing.assert_allclose(there, 7 + 3 * here, rtol=1e-6)


@each
def test_letters_in_another_unit_are_joined_alike(rule):
    rows, centre, unit = letters(), np.full(D, 0.1), 2.0**-40
    there = rule.of(unit * rows, centre=unit * centre)
    np.testing.assert_array_equal(there, unit * rule.of(rows, centre=centre))


@each
def test_a_rule_bears_as_many_liars_as_it_says(rule):
    honest, borne = letters(), rule.bears(N)
    assert borne >= LIARS or isinstance(rule, agg.RFA)
    for liars in range(borne + 1):
        rows = honest.copy()
        rows[N - liars :] = 1e12
        assert np.linalg.norm(rule.of(rows)) < 10
    rows[N - borne - 1 :] = 1e12
    if isinstance(rule, BREAKING):
        assert np.linalg.norm(rule.of(rows)) > 1e3
    assert rule.bears(N // 4) <= N // 8


@pytest.mark.few(6)
@each
def test_silent_agents_are_as_if_not_there(rule):
    """And nothing they hold is looked at."""
    rows = letters()
    active = np.arange(N) != 5
    with double_precision():
        few = Heard(jnp.asarray(rows[active]), jnp.ones(N - 1), None, jax.random.key(3))
        dirty = np.where(active[:, None], rows, np.nan)
        many = Heard(jnp.asarray(dirty), jnp.ones(N), jnp.asarray(active), few.key)
        if rule.least <= N - 1:
            np.testing.assert_allclose(rule(many), rule(few), rtol=1e-9)


def test_groups_are_drawn_alike_with_and_without_the_silent():
    rule, rows = agg.Buckets(size=2), letters()
    active = np.arange(N) != 5
    with double_precision():
        few = Heard(jnp.asarray(rows[active]), jnp.ones(N - 1), None, jax.random.key(3))
        many = Heard(jnp.asarray(rows), jnp.ones(N), jnp.asarray(active), few.key)
        np.testing.assert_allclose(rule(many), rule(few), rtol=1e-12)


@pytest.mark.parametrize(
    ("rule", "agents"),
    [
        (agg.TrimmedMean(trim=2), 4),
        (agg.ClippedMean(trim=2), 4),
        (agg.Krum(liars=2), 6),
        (agg.Bulyan(liars=2), 10),
        (agg.Buckets(size=2), 4),
        (agg.FLTrust(root=4), 4),
    ],
)
def test_too_few_letters_are_refused(rule, agents):
    with pytest.raises(tacita.TacitaError):
        rule.of(letters()[:agents])
    rule.of(letters()[: agents + 1])


def test_no_trim_is_the_mean():
    found = agg.TrimmedMean(trim=0).of(letters())
    np.testing.assert_allclose(found, letters().mean(axis=0), rtol=1e-12)


def test_a_claim_of_rows_is_ignored_or_capped():
    rows = jnp.asarray(letters())
    claims = jnp.asarray([1.0] * (N - 1) + [1e9])
    with double_precision():
        key = jax.random.key(0)
        plain, asked = TRIMMED, dataclasses.replace(TRIMMED, weights="samples")
        heard = Heard(rows, claims, None, key)
        alike = Heard(rows, jnp.ones(N), None, key)
        np.testing.assert_array_equal(plain(heard), plain(alike))
        capped = Heard(rows, jnp.minimum(claims, MOST_WEIGHT), None, key)
        np.testing.assert_allclose(asked(heard), asked(capped), rtol=1e-12)
        assert not np.allclose(asked(heard), asked(alike))


def many_or_few(rule):
    """Ten thousand draws; of the one rule that takes long, most among long tests."""
    if not isinstance(rule, agg.GeometricMedian):
        return [pytest.param(rule, 10_000)]
    many = pytest.param(rule, 10_000, marks=pytest.mark.long)
    return [pytest.param(rule, 200), many]


BOUNDED = [r for r in RULES if np.isfinite(r.kappa(N, LIARS))]


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("rule", "draws"), [one for r in BOUNDED for one in many_or_few(r)]
)
def test_kappa_is_not_exceeded(rule, draws):
    """Liars near and far, in one direction and in all."""
    with double_precision():
        keys = jax.random.split(jax.random.key(1), draws)

        @jax.jit
        @functools.partial(jax.vmap)
        def ratios(key):
            one, two, three, four = jax.random.split(key, 4)
            rows = jax.random.normal(one, (N, D)) * jnp.exp(
                jax.random.normal(two, (N, 1))
            )
            far = 10 ** jax.random.uniform(three, (), minval=-1, maxval=2)
            aim = jax.random.normal(four, (D,))
            lie = rows[LIARS:].mean(axis=0) + far * aim
            rows = rows.at[:LIARS].set(lie)
            given = Vectors(rows, jnp.ones(N, bool), None, jnp.zeros(D), key)
            honest = rows[LIARS:]
            mean = honest.mean(axis=0)
            spread = jnp.mean(jnp.sum((honest - mean) ** 2, axis=1))
            return jnp.sum((rule.join(given) - mean) ** 2) / spread

        assert float(jnp.max(ratios(keys))) <= rule.kappa(N, LIARS)


def test_a_network_sorts_any_number_of_rows():
    """All of them up to 20: what sorts zeros and ones sorts everything."""
    rng = np.random.default_rng(0)
    for n in (*range(1, 21), 100):
        rows = rng.integers(0, 2, (n, 400)) if n > 8 else all_patterns(n)
        partners, lower = _stages(n)
        for partner, low in zip(
            partners.reshape(-1, n), lower.reshape(-1, n), strict=True
        ):
            other = rows[partner]
            rows = np.where((rows < other) == low[:, None], rows, other)
        assert np.all(np.diff(rows, axis=0) >= 0), n
        met = [
            (low, high)
            for stage in partners.reshape(-1, n)
            for low, high in enumerate(stage.tolist())
            if low < high
        ]
        assert _comparisons(n) == met


def all_patterns(n: int) -> np.ndarray:
    return (np.arange(2**n)[None, :] >> np.arange(n)[:, None]) & 1


@pytest.mark.parametrize("width", [3, 300, 700])
def test_columns_are_sorted(width):
    """In blocks of which the last laps over; what is no number counts as infinite.

    Every comparison is written out where there are 700 columns of 7 rows.
    """
    rows = np.random.default_rng(0).standard_normal((7, width))
    rows[5, ::3] = np.inf
    rows[2, 1] = np.nan
    rows[3:5, 0] = rows[0, 0]
    whole = np.where(np.isnan(rows), np.inf, rows)
    known = np.sort(whole, axis=0)
    with double_precision():
        given, summed = jnp.asarray(rows), jax.jit(rank_sum)
        for k in range(7):
            np.testing.assert_array_equal(summed(given, k, k + 1), known[k])
        few = np.sort(np.delete(whole, 5, axis=0), axis=0)
        heard = jnp.asarray([True] * 5 + [False, True])
        np.testing.assert_allclose(
            summed(given, 1, 4, heard), few[1:4].sum(axis=0), rtol=1e-14
        )
        np.testing.assert_array_equal(summed(-given, 0, 1)[0], -np.inf)
        away = np.abs(np.round(rows[[0, 1, 3, 4, 6]], 1))  # with ties
        rank = np.argsort(np.argsort(away, axis=0, kind="stable"), axis=0)
        np.testing.assert_array_equal(nearest(jnp.asarray(away), 3), rank < 3)


@pytest.mark.parametrize(("n", "width"), [(60, 700), (150, 5)])
def test_inner_products_of_letters(n, width):
    """Of several tiles of letters, of one block of columns and of several."""
    rng = np.random.default_rng(1)
    rows, centre = rng.standard_normal((n, width)), rng.standard_normal(width)
    active = np.arange(n) != 1
    with double_precision():
        given = Vectors(rows, active, None, centre, jax.random.key(0))
        found = jax.jit(gram)(given)
    seen = np.where(active[:, None], rows - centre, 0)
    np.testing.assert_allclose(found, seen @ seen.T, rtol=0, atol=1e-11)
    np.testing.assert_array_equal(found, found.T)
