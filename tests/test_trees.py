"""Records: their fields keep their rules, and no two classes share a program."""

from __future__ import annotations

import itertools
import re

import jax
import numpy as np
import pytest

import tacita
from tacita import check, trees
from tacita.algorithm import fed_plt, fed_split
from tacita.problem import prox
from tacita.problem.model.regulariser import NonConvex, SquaredL2
from tests.cases import CASES


def test_records_alike_in_their_fields_differ_in_structure():
    one, other = SquaredL2(weight=0.1), NonConvex(weight=0.1)
    assert jax.tree.structure(one) != jax.tree.structure(other)
    assert jax.tree.structure(one) == jax.tree.structure(SquaredL2(weight=0.2))
    states = fed_plt.State(1.0, 2.0), fed_split.State(1.0, 2.0)
    assert jax.tree.structure(states[0]) != jax.tree.structure(states[1])


def test_no_two_algorithms_have_one_structure():
    for one, other in itertools.combinations(CASES, 2):
        if type(one.algorithm) is not type(other.algorithm):
            trees = map(jax.tree.structure, (one.algorithm, other.algorithm))
            assert next(trees) != next(trees)


def test_a_record_comes_back_from_its_leaves():
    for case in CASES:
        leaves, structure = jax.tree.flatten(case.algorithm)
        again = jax.tree.unflatten(structure, leaves)
        assert type(again) is type(case.algorithm)
        assert jax.tree.structure(again) == structure


def test_functions_h_alike_in_their_fields_differ_in_structure():
    l1, ball = prox.L1(0.2), prox.L2Ball(0.2)
    assert jax.tree.structure(l1) != jax.tree.structure(ball)


@trees.frozen
class Ruled:
    """A record whose second number needs the first."""

    first: float = trees.number(check.positive, theory=lambda problem: problem + 1)
    second: float = trees.number(check.below_one, theory=lambda _, record: record.first)
    given: float = trees.needed(check.fraction, common=True)
    steps: int = trees.count(3)
    exact: bool = trees.flag(False)


def test_theory_fills_what_is_left_out_in_the_order_of_the_fields():
    ready = trees.filled(Ruled(given=1), -0.5)
    assert (ready.first, ready.second, ready.given) == (0.5, 0.5, 1.0)
    assert trees.filled(Ruled(given=1, second=0.25), 6).second == 0.25
    # What theory finds must keep the rule too.
    with pytest.raises(check.TacitaError, match=r"second in \[0, 1\), got second=7.0"):
        trees.filled(Ruled(given=1), 6)


def test_theory_of_flat_losses_is_refused():
    flat = tacita.from_arrays(np.zeros((4, 2)), [0, 1, 0, 1], [0, 0, 1, 1])
    with pytest.raises(check.TacitaError, match="theory sets no step_size for losses"):
        tacita.simulate(flat, tacita.FedAvg(), 1)
    assert tacita.simulate(flat, tacita.FedAvg(step_size=1.0), 1).params.tolist() == [
        0.0,
        0.0,
    ]


def test_fields_refuse_what_is_against_their_rule():
    for wrong, words in {
        "first": (np.array([1.0, 0.0]), "expected first > 0, got first=0.0"),
        "given": (0, "expected given in (0, 1], got given=0.0"),
        "steps": (2.5, "expected steps a whole number >= 1, got steps=2.5"),
        "exact": ("no", "expected exact true or false, got exact='no'"),
    }.items():
        with pytest.raises(check.TacitaError, match=re.escape(words[1])):
            Ruled(**{"given": 1, wrong: words[0]})
    assert type(Ruled(given=1, steps=np.int64(4)).steps) is int
    leaves, structure = jax.tree.flatten(Ruled(given=1, first=2))
    # Tracers and placeholders have no number to look at.
    assert jax.tree.unflatten(structure, [object(), object()]).steps == 3
    assert jax.jit(lambda record: record.first)(Ruled(given=1, first=2)) == 2
