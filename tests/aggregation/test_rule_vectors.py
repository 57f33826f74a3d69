"""Rules against numbers worked out apart from this code."""

from __future__ import annotations

import json
import math
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tacita import aggregation as agg
from tacita.aggregation.bulyan import mean_around_median
from tacita.aggregation.fl_trust import trusted
from tacita.aggregation.gram import squared_distances
from tacita.aggregation.krum import scores
from tacita.aggregation.robust_rule import Vectors
from tacita.aggregation.trimmed_mean import trimmed_by_mass
from tacita.trees import double_precision

KNOWN = json.loads((Path(__file__).parent / "vectors.json").read_text())["aggregation"]
LETTERS, CENTRE = np.array(KNOWN["letters"]), np.array(KNOWN["centre"])
WEIGHTS = np.array(KNOWN["weights"])
TRIMMED = agg.TrimmedMean(trim=2)

RULES = {
    "clipped_by_order_trim2": agg.ClippedMean(trim=2),
    "trimmed_mean_trim2": TRIMMED,
    "median": agg.Median(),
    "geometric_median": agg.GeometricMedian(),
    "smoothed_weiszfeld_4_steps_nu0.1_from_mean": agg.RFA(steps=4, smoothing=0.1),
    "krum_f2": agg.Krum(liars=2),
    "multi_krum_f2_keep7": agg.MultiKrum(liars=2),
    "multi_krum_f2_keep9": agg.MultiKrum(liars=2, keep=9),
    "bulyan_f2": agg.Bulyan(liars=2),
    "centered_clipping_radius1_steps3": agg.CenteredClipping(radius=1.0, steps=3),
    "norm_bounded_mean_radius0.8": agg.NormBound(radius=0.8),
    "nnm_then_trimmed_f2": agg.NearestNeighbourMixing(liars=2, rule=TRIMMED),
}


def given(letters=LETTERS, centre=CENTRE, weights=None) -> Vectors:
    return Vectors(
        jnp.asarray(letters),
        jnp.ones(len(letters), bool),
        None if weights is None else jnp.asarray(weights),
        jnp.asarray(centre),
        jax.random.key(0),
    )


def close(found, name, tolerance=1e-9):
    np.testing.assert_allclose(found, KNOWN[name], rtol=tolerance, atol=1e-12)


@pytest.mark.parametrize("name", RULES)
def test_rules(name):
    close(RULES[name].of(LETTERS, centre=CENTRE), name)


def test_an_even_number_has_two_middle_values():
    close(agg.Median().of(LETTERS[:10]), "median_of_first_10")


def test_weights():
    found = agg.GeometricMedian().of(LETTERS, weights=WEIGHTS)
    close(found, "weighted_geometric_median")
    with double_precision():
        found = trimmed_by_mass(given(weights=WEIGHTS), 0.25)
    close(found, "weighted_trimmed_mean_mass0.25")
    found = agg.TrimmedMean(trim=0).of(LETTERS, weights=WEIGHTS)
    close(found, "weighted_mean")


@pytest.mark.parametrize("length", [2, 9, 40])
@pytest.mark.parametrize("far", [1.0, 1e9])
def test_pulls_cancel_at_a_geometric_median(length, far):
    """(176), of letters that are fewer than their numbers and more."""
    dice = np.random.default_rng(length)
    rows, weights = dice.normal(size=(20, length)), dice.uniform(0.5, 1.5, 20)
    rows[15:] = far * (3 + dice.normal(size=(5, length)))
    found = agg.GeometricMedian().of(rows, weights=weights)
    away = rows - found
    pulls = weights[:, None] * away / np.linalg.norm(away, axis=1)[:, None]
    assert np.linalg.norm(pulls.sum(axis=0)) < 1e-9 * weights.sum()


def test_a_geometric_median_may_be_a_letter():
    """Which pulls more than all others together, or lies between them."""
    rows = np.array([[0.0, 0], [1, 0], [1, 0], [1, 0], [5, 5]])
    np.testing.assert_allclose(agg.GeometricMedian().of(rows), [1, 0], atol=1e-9)
    line = np.array([[0.0], [1], [2], [7], [100]])
    np.testing.assert_allclose(agg.GeometricMedian().of(line), [2], atol=1e-9)


def test_parts_of_rules():
    with double_precision():
        one = given()
        close(scores(squared_distances(one), one.active, 2), "krum_scores_f2")
        close(mean_around_median(one, 7), "mean_around_median_keep7")
        mixed = agg.NearestNeighbourMixing(liars=2).mixed(one)
        close(mixed, "nearest_neighbour_mixing_f2")
        clipped = agg.AdaptivelyClipped(liars=2).clipped(one)
        close(clipped - CENTRE, "adaptive_clipping_f2")


def test_distances_between_long_letters():
    """Taken in blocks of columns, of which the last is not full."""
    dice = np.random.default_rng(0)
    letters, centre = dice.normal(size=(5, 5000)), dice.normal(size=5000)
    active = np.array([True, True, False, True, True])
    with double_precision():
        one = Vectors(
            *map(jnp.asarray, (letters, active)), None, jnp.asarray(centre), None
        )
        found = np.asarray(squared_distances(one))
    apart = np.sum((letters[:, None] - letters[None]) ** 2, axis=-1)
    heard = np.ix_(active, active)
    np.testing.assert_allclose(found[heard], apart[heard], rtol=1e-11, atol=1e-11)
    assert np.all(np.isinf(found[2, [0, 1, 3, 4]]))


def test_trust_follows_the_root():
    root = CENTRE + np.array(KNOWN["root_update"])
    found = agg.FLTrust(root=11).of(np.vstack([LETTERS, root]), centre=CENTRE)
    close(found - CENTRE, "fltrust_update", 1e-9)
    with double_precision():
        updates = jnp.asarray(LETTERS - CENTRE)
        trust, _ = trusted(updates, jnp.asarray(root - CENTRE), jnp.ones(11, bool))
    close(trust, "fltrust_scores")


def test_buckets_of_a_known_order():
    rank = np.argsort(KNOWN["bucket_order"])
    with double_precision():
        rule = agg.Buckets(size=2, rule=agg.Median())
        groups = rule.grouped(given(), jnp.asarray(rank))
        close(groups.letters, "bucket_means_size2")
        close(rule.rule.join(groups), "bucket_median_size2")


def test_rules_on_a_graph():
    graph = KNOWN["graph"]
    own, near = np.array(graph["own"]), np.array(graph["neighbours"])
    mixing = np.array(graph["mixing"])
    with double_precision():
        left = agg.ClippedGossip(drop=1).left(given(near, own))
    assert left == pytest.approx(graph["gossip_radius_drop1"], rel=1e-9)
    found = agg.ClippedGossip(radius=1.0).of(near, weights=mixing, centre=own)
    # There a node keeps a share of its own letter as well.
    found = own + mixing.sum() * (found - own)
    np.testing.assert_allclose(found, graph["clipped_gossip_radius1"], rtol=1e-9)
    for rule, name in (
        (agg.Bridge(trim=1), "bridge_trim1"),
        (agg.NearestToOwn(liars=1), "nearest_to_own_f1"),
    ):
        np.testing.assert_allclose(rule.of(near, centre=own), graph[name], rtol=1e-9)


def test_bounds():
    found = {
        "trimmed_mean": TRIMMED.kappa(11, 2),
        "median": agg.Median().kappa(11, 2),
        "geometric_median": agg.GeometricMedian().kappa(11, 2),
        "krum": agg.Krum(liars=2).kappa(11, 2),
        "nnm+trimmed_mean": RULES["nnm_then_trimmed_f2"].kappa(11, 2),
        "nnm+krum": agg.NearestNeighbourMixing(liars=2, rule=agg.Krum(liars=2)).kappa(
            11, 2
        ),
    }
    assert found == pytest.approx(KNOWN["kappa_n11_f2"], rel=1e-9)


def test_the_reach_of_a_geometric_median():
    """Honest letters in a ball of radius 1, liars far away on one side of it."""
    rule = agg.GeometricMedian()
    assert rule.reach(11, 2) == pytest.approx(KNOWN["median_radius_n11_f2"], rel=1e-9)
    assert rule.reach(10, 0) == 1 and rule.reach(10, 5) == math.inf
    dice, worst = np.random.default_rng(0), 0.0
    for _ in range(20):
        honest = dice.normal(size=(9, 2))
        honest /= np.linalg.norm(honest, axis=1, keepdims=True)
        honest[:, 0] = np.abs(honest[:, 0])
        letters = np.vstack([honest, [[1e3, 0]] * 2])
        worst = max(worst, float(np.linalg.norm(rule.of(letters))))
    assert 0.8 < worst < rule.reach(11, 2)
