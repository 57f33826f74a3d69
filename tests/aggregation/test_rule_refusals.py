"""What rules refuse: letters that are none, rules inside rules, wrong company."""

from __future__ import annotations

import numpy as np
import pytest

import tacita
from tacita import aggregation as agg
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
