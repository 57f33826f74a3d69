"""What rules refuse: letters that are none, rules inside rules, wrong company."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tacita
from tacita import aggregation as agg
from tacita.aggregation import Heard
from tacita.trees import double_precision
from tests.aggregation.test_rule_properties import D, N, each, letters

NAN_ROW = np.full(D, np.nan)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (([1.0, 2.0, 3.0],), r"letters of shape \(any, any\), got shape \(3,\)"),
        (([[1.0], [2.0, 3.0], [4.0]],), "expected letters an array of numbers"),
        (([["a"], ["b"], ["c"]],), "expected letters an array of numbers"),
        ((letters(), np.ones(N + 1)), r"weights of shape \(11,\)"),
        ((letters(), np.full(N, -1.0)), "expected weights >= 0"),
        ((letters(), np.zeros(N)), "expected weights that are not all zero"),
        ((letters(), None, np.zeros(D + 1)), r"centre of shape \(4,\)"),
        ((letters(), None, NAN_ROW), "centre has 4 NaN"),
        ((np.tile(NAN_ROW, (N, 1)),), "joins at least 3 letters, got 0"),
    ],
)
def test_what_is_no_exchange_of_letters(given, words):
    with pytest.raises(tacita.TacitaError, match=words):
        agg.GeometricMedian().of(*given)


@each
def test_rows_that_are_not_finite_are_silence(rule):
    rows = letters()
    broken = np.vstack([rows, NAN_ROW, np.full(D, np.inf)])
    np.testing.assert_allclose(rule.of(broken), rule.of(rows), rtol=1e-8)


@pytest.mark.parametrize(
    "rule",
    [
        *(kind() for kind in agg.RULES if kind is not agg.Mean),
        agg.NearestNeighbourMixing(rule=agg.Median()),
        agg.AdaptivelyClipped(rule=agg.Krum()),
        agg.Buckets(rule=agg.TrimmedMean()),
    ],
    ids=repr,
)
def test_weights_count_or_are_refused(rule):
    rows = letters()
    weights = np.random.default_rng(1).uniform(0.2, 3, N)
    if rule.weighs:
        assert np.abs(rule.of(rows, weights) - rule.of(rows)).max() > 1e-3
    else:
        with pytest.raises(tacita.TacitaError, match="all letters weigh alike"):
            rule.of(rows, weights)


def test_claims_of_rows_count_inside_another_rule_or_are_refused():
    """The outer rule dropped them, whatever the inner one asked for."""
    inner = agg.TrimmedMean(trim=2, weights="samples")
    rows, claims = jnp.asarray(letters()), jnp.linspace(1, 2, N)
    with double_precision():
        for outer in (agg.NearestNeighbourMixing, agg.AdaptivelyClipped):
            rule = outer(liars=2, rule=inner)
            plain = outer(liars=2, rule=agg.TrimmedMean(trim=2))
            heard = Heard(rows, claims, None, jax.random.key(0))
            assert np.abs(rule(heard) - plain(heard)).max() > 1e-3
    with pytest.raises(tacita.TacitaError, match="groups weigh alike"):
        agg.Buckets(rule=inner)


@pytest.mark.parametrize("way", [tacita.simulate, tacita.debug])
def test_claims_of_rows_are_refused_where_none_are_made(way):
    """FedAvg weighs letters alike unless it is told not to."""
    problem = tacita.problem.synthetic.logistic(agents=4, features=2, samples=6)
    rule = agg.GeometricMedian(weights="samples")
    with pytest.raises(tacita.TacitaError, match="to FedAvg all weigh alike"):
        way(problem, tacita.FedAvg(step_size=0.5), rounds=1, aggregation=rule)


ASKING = [agg.NearestNeighbourMixing, agg.Buckets, agg.AdaptivelyClipped]


@pytest.mark.parametrize("outer", ASKING)
@pytest.mark.parametrize(
    ("inner", "words"),
    [
        (agg.Mean(), r"expected rule a robust rule such as Median\(\), got rule=Mean"),
        ("Median", "expected rule a robust rule"),
        (agg.Median, "expected rule a robust rule"),
        (agg.FLTrust(root=3), "needs letters as they came"),
    ],
)
def test_only_robust_rules_are_asked_about_mixed_letters(outer, inner, words):
    with pytest.raises(tacita.TacitaError, match=words):
        outer(rule=inner)


def test_a_root_is_an_agent_and_takes_part_in_every_round():
    """Of a cohort the first would be trusted, whoever it is."""
    problem = tacita.problem.synthetic.logistic(agents=6, features=3, samples=12)
    trust = {"aggregation": agg.FLTrust(root=0)}
    for run in (tacita.simulate, tacita.debug):
        with pytest.raises(tacita.TacitaError, match="letter in every round, and part"):
            run(problem, tacita.FedAvg(), 1, participation=3, **trust)


def test_a_graph_has_no_root():
    ring = tacita.problem.graph.ring(5)
    problem = tacita.problem.synthetic.linear(agents=5, features=2, graph=ring)
    trust = {"aggregation": agg.FLTrust(root=0)}
    with pytest.raises(tacita.TacitaError, match="on a graph nobody coordinates"):
        tacita.simulate(problem, tacita.FedGD(alpha=1.0), 1, **trust)


def test_a_rule_of_nodes_is_no_coordinators_inside_another_either():
    problem = tacita.problem.synthetic.logistic(agents=6, features=3, samples=12)
    rule = agg.NearestNeighbourMixing(liars=1, rule=agg.Bridge(trim=1))
    with pytest.raises(tacita.TacitaError, match="Bridge starts from a node's own"):
        tacita.simulate(problem, tacita.FedAvg(), 1, aggregation=rule)
