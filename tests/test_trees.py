"""Records of different classes never share a compiled program."""

from __future__ import annotations

import itertools

import jax

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
