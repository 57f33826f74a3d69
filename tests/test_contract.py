"""The promises that every algorithm keeps, over one table (tests/cases.py)."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tacita
from tacita.algorithm import ALGORITHMS
from tacita.algorithm.base import GraphAlgorithm, ServerAlgorithm
from tacita.runtime import engine
from tacita.runtime.ready import prepare
from tacita.trees import in_double_precision
from tests import units
from tests.cases import CASES, Case

ROUNDS = 3
PARTIAL = [2, 0.3, np.linspace(0.3, 0.9, 6)]


def partial(case: Case):
    """One kind of partial participation; rows take the kinds in turn."""
    return PARTIAL[CASES.index(case) % len(PARTIAL)]


def participations(case: Case):
    """Everybody, and a part of them where the algorithm goes on without the others."""
    return [1.0, partial(case)] if case.algorithm.partial else [1.0]


each_case = pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)


def in_turn(turn: int):
    """Every row, but all rows only in the long tests: a program takes long to compile.

    In the short ones a row has at most one of three variants of its program.
    """
    marks = [() if k % 5 == turn else pytest.mark.long for k in range(len(CASES))]
    rows = [
        pytest.param(case, marks=mark, id=case.name)
        for case, mark in zip(CASES, marks, strict=True)
    ]
    return pytest.mark.parametrize("case", rows)


def test_every_algorithm_has_a_row():
    assert {type(c.algorithm) for c in CASES} == set(ALGORITHMS)


@each_case
def test_is_of_one_of_the_two_kinds(case: Case):
    kinds = isinstance(case.algorithm, ServerAlgorithm), case.on_graph
    assert sum(kinds) == 1
    assert case.algorithm.source


@pytest.mark.few(5)
@each_case
def test_mapped_over_agents_equals_one_agent_at_a_time(case: Case):
    require_equal(case, participations(case)[-1])


@pytest.mark.long
@each_case
def test_and_so_with_everybody(case: Case):
    require_equal(case, 1.0)


def require_equal(case: Case, participation: Any) -> None:
    """The compiled program gives the numbers of a loop over agents."""
    problem = case.problem()
    told = (problem, case.algorithm, ROUNDS, 3, participation)
    fast, slow = tacita.simulate(*told), tacita.debug(*told)
    np.testing.assert_allclose(fast.params, slow.params, rtol=0, atol=1e-12)
    np.testing.assert_allclose(fast.agents, slow.agents, rtol=0, atol=1e-12)
    for name, values in slow.metrics.items():
        np.testing.assert_allclose(fast.metrics[name], values, atol=1e-11)


@pytest.mark.few(3)
@in_turn(0)
def test_one_by_one_equals_together(case: Case):
    problem = case.problem()
    runs = [
        tacita.simulate(problem, case.algorithm, ROUNDS, seed=0, mapping=mapping)
        for mapping in ("together", "one_by_one")
    ]
    np.testing.assert_allclose(runs[0].agents, runs[1].agents, rtol=0, atol=1e-12)


@pytest.mark.few(16)
@each_case
def test_silent_agents_keep_their_model(case: Case):
    if not case.algorithm.partial:
        pytest.skip("needs every agent in every round")
    problem, seen = case.problem(), 0
    for seed in range(10):
        chosen = {"seed": seed, "participation": partial(case)}
        before = tacita.simulate(problem, case.algorithm, 3, **chosen)
        after = tacita.simulate(problem, case.algorithm, 4, **chosen)
        active = after.info["turns"] > before.info["turns"]
        np.testing.assert_array_equal(before.agents[~active], after.agents[~active])
        assert np.all(np.any(before.agents[active] != after.agents[active], axis=1))
        seen += 0 < active.sum() < len(active)
        if seen == 2:
            return
    raise AssertionError("no round had both active and silent agents")


@pytest.mark.few(4)
@each_case
def test_same_seed_same_bits(case: Case):
    problem = case.problem()
    first = tacita.simulate(problem, case.algorithm, ROUNDS, seed=7)
    again = tacita.simulate(problem, case.algorithm, ROUNDS, seed=7)
    np.testing.assert_array_equal(first.agents, again.agents)


@pytest.mark.few(3)
@each_case
def test_another_unit_same_run(case: Case):
    require_same(case, units.Unit(rows=2.0**-30), "logistic")


@pytest.mark.few(2)
@each_case
def test_another_unit_of_labels_same_run(case: Case):
    require_same(case, units.Unit(rows=2.0**25, labels=2.0**10), "linear")


@each_case
@pytest.mark.parametrize("model", ["logistic", "linear"])
def test_numbers_by_theory_have_a_unit(case: Case, model: str):
    labels = 1.0 if model == "logistic" else 2.0**10
    one, unit = units.Unit(1.0), units.Unit(rows=2.0**-30, labels=labels)
    bare = units.left_out(case.algorithm)
    here = bare.resolve(units.problem(case, one, model))
    there = unit.converted(bare).resolve(units.problem(case, unit, model))
    expected = jax.tree.leaves(unit.converted(here))
    for ours, wanted in zip(jax.tree.leaves(there), expected, strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=1e-9)


def require_same(case: Case, unit: units.Unit, model: str) -> None:
    """Products with powers of two are exact: what differs has a unit of its own."""
    here, there = (
        tacita.simulate(
            units.problem(case, one, model),
            one.converted(case.algorithm),
            ROUNDS,
            seed=3,
        )
        for one in (units.Unit(1.0), unit)
    )
    # A loss to the power of q is rounded.
    near = dict(rtol=1e-13, atol=1e-13 * unit.of(units.MODEL))
    expected = unit.of(units.MODEL) * here.agents
    np.testing.assert_allclose(there.agents, expected, **near)
    losses = unit.of(units.LOSS) * here.metrics["loss"]
    np.testing.assert_allclose(there.metrics["loss"], losses, rtol=1e-13)
    slopes = unit.of(units.GRADIENT) ** 2 * here.metrics["grad_norm_sq"]
    np.testing.assert_allclose(there.metrics["grad_norm_sq"], slopes, rtol=1e-12)


@pytest.mark.few(3)
@in_turn(1)
def test_seeds_in_one_call(case: Case):
    problem = case.problem()
    first = tacita.simulate(problem, case.algorithm, ROUNDS, seed=7)
    many = tacita.simulate(problem, case.algorithm, ROUNDS, seed=6, seeds=3)
    assert many.params.shape == (3, problem.dim)
    np.testing.assert_allclose(many.agents[1], first.agents, rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        many.metrics["loss"][1], first.metrics["loss"], rtol=1e-12
    )


def assert_dtype_is_kept(case: Case, dtype):
    run = tacita.simulate(case.problem(dtype), case.algorithm, 2, seed=0)
    assert run.params.dtype == dtype
    assert run.agents.dtype == dtype
    assert not jax.config.read("jax_enable_x64")


@pytest.mark.few(12)
@each_case
def test_float64_is_kept(case: Case):
    assert_dtype_is_kept(case, np.float64)


@pytest.mark.few(3)
@in_turn(2)
def test_float32_is_kept(case: Case):
    assert_dtype_is_kept(case, np.float32)


@each_case
def test_changing_a_number_compiles_nothing(case: Case):
    problem = case.problem()
    tacita.simulate(problem, case.algorithm, 2)
    before = engine.advance.programs
    other = tacita.simulate(problem, case.other, 5, seed=9, record_every=2)
    assert engine.advance.programs == before
    base = tacita.simulate(problem, case.algorithm, 5, seed=9, record_every=2)
    assert not np.array_equal(other.agents, base.agents)


@each_case
@in_double_precision
def test_numbers_of_a_sweep_can_be_stacked(case: Case):
    problem = case.problem()
    both = [prepare(problem, one) for one in (case.algorithm, case.other)]
    stacked = jax.tree.map(lambda *v: jnp.stack([jnp.asarray(x) for x in v]), *both)
    assert type(stacked) is type(case.algorithm)


@each_case
def test_bad_numbers_are_refused_in_one_line(case: Case):
    assert case.bad, "name at least one bad argument"
    for name, value in case.bad.items():
        with pytest.raises(tacita.TacitaError) as error:
            type(case.algorithm)(**{**fields(case), name: value})
        assert name in str(error.value)
        assert "\n" not in str(error.value)


def fields(case: Case) -> dict:
    names = dataclasses.fields(case.algorithm)  # pyright: ignore
    return {f.name: getattr(case.algorithm, f.name) for f in names}


@each_case
def test_needs_are_refused_clearly(case: Case):
    if isinstance(case.algorithm, GraphAlgorithm):
        without = tacita.problem.synthetic.logistic(agents=6, features=3, samples=12)
        with pytest.raises(tacita.TacitaError, match="needs a graph"):
            tacita.simulate(without, case.algorithm, 2)
    if not case.algorithm.partial:
        with pytest.raises(tacita.TacitaError, match="every agent in every round"):
            tacita.simulate(case.problem(), case.algorithm, 2, participation=3)
    if not case.algorithm.composite:
        sparse = tacita.problem.synthetic.logistic(
            agents=6, features=3, samples=12, h=tacita.problem.prox.L1(weight=0.1)
        )
        with pytest.raises(tacita.TacitaError, match="smooth"):
            tacita.simulate(sparse, case.algorithm, 2)
