"""Batches: their laws, and that their gradients estimate the full one."""

from __future__ import annotations

from itertools import combinations

import jax
import numpy as np
import pytest

import tacita
from tacita.privacy import Clipped
from tacita.problem.oracles import SAMPLINGS, AgentOracle, Full, Minibatch
from tacita.sampling import below, cohort, without_replacement


def local_of(problem, i):
    rows = jax.tree.map(lambda leaf: leaf[i], problem.population.rows)
    return problem.population.local(rows)


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(14, 3)), rng.choice([-1, 1], 14)
    agent = np.array([0] * 8 + [1] * 6)  # unequal: agent 1 is padded
    return tacita.from_arrays(x, y, agent, l2=0.2)


@pytest.mark.few(4)
@pytest.mark.parametrize("agent", [0, 1])
@pytest.mark.parametrize("sampling", SAMPLINGS)
def test_batch_gradients_are_unbiased(problem, sampling, agent):
    with jax.enable_x64(True):
        local = local_of(problem, agent)
        oracle = AgentOracle(Minibatch(size=2, sampling=sampling), local)
        w = jax.numpy.asarray([0.3, -0.2, 0.5])
        draws = oracle.draws(jax.random.key(1), 6000)
        gradients = jax.vmap(lambda d: oracle(d, w))(draws)
        error = gradients.mean(axis=0) - local.grad(w)
        spread = gradients.std(axis=0) / np.sqrt(6000)
        assert np.all(np.abs(error) < 4.5 * spread + 1e-12)


@pytest.mark.parametrize("agent, rows", [(0, 8), (1, 6)])
def test_rows_are_real_and_different(problem, agent, rows):
    with jax.enable_x64(True):
        local = local_of(problem, agent)
        key = jax.random.key(0)
        chosen = np.asarray(Minibatch(size=3).draws(local, key, 200))
        assert chosen.min() == 0 and chosen.max() == rows - 1
        assert all(len(set(batch)) == 3 for batch in chosen.tolist())
        drawn = np.asarray(
            Minibatch(size=3, sampling="with_replacement").draws(local, key, 200)
        )
        assert drawn.max() == rows - 1
        assert any(len(set(batch)) < 3 for batch in drawn.tolist())
        weights = np.asarray(
            Minibatch(size=3, sampling="poisson").draws(local, key, 200)
        )
        assert weights.shape == (200, 8)
        assert np.all(weights[:, rows:] == 0)


def test_permutation_uses_every_row_once_an_epoch_and_reshuffles(problem):
    with jax.enable_x64(True):
        local = local_of(problem, 1)
        oracle = Minibatch(size=2, sampling="permutation")
        draws = np.asarray(oracle.draws(local, jax.random.key(3), 9))
        epochs = draws.reshape(3, 6)
        for epoch in epochs:
            assert sorted(epoch.tolist()) == list(range(6))
        assert not np.array_equal(epochs[0], epochs[1])


def test_full_oracle_needs_no_draws(problem):
    with jax.enable_x64(True):
        oracle = AgentOracle(Full(), local_of(problem, 0))
        key, w = jax.random.key(0), jax.numpy.zeros(3)
        assert oracle.draws(key, 3) is None
        np.testing.assert_array_equal(oracle.once(key, w), oracle.local.grad(w))


def test_floyd_draws_every_set_equally_often():
    with jax.enable_x64(True):
        sets = np.asarray(without_replacement(jax.random.key(0), 5, 2, times=20_000))
    counts = {
        pair: np.sum(np.all(np.sort(sets, axis=1) == pair, axis=1))
        for pair in combinations(range(5), 2)
    }
    # Chi-square with 9 degrees of freedom: 27.9 is the 0.999 quantile.
    expected = 20_000 / 10
    assert sum((c - expected) ** 2 / expected for c in counts.values()) < 27.9


@pytest.mark.few(1)
@pytest.mark.parametrize("n, k", [(10, 2), (10, 7), (1000, 5)])
def test_cohorts_are_sorted_and_distinct(n, k):
    with jax.enable_x64(True):
        chosen = np.asarray(cohort(jax.random.key(4), n, k))
    assert len(set(chosen.tolist())) == k
    assert np.all(np.diff(chosen) > 0)
    assert 0 <= chosen.min() and chosen.max() < n


def test_numbers_below_a_limit_are_uniform():
    with jax.enable_x64(True):
        drawn = np.asarray(below(jax.random.key(0), 7, (70_000,)))
    counts = np.bincount(drawn, minlength=7)
    assert len(counts) == 7
    # Chi-square with 6 degrees of freedom: 22.5 is the 0.999 quantile.
    assert np.sum((counts - 10_000) ** 2 / 10_000) < 22.5


@pytest.mark.long
@pytest.mark.parametrize("clip", [lambda o: o, lambda o: Clipped(norm=1.0, oracle=o)])
def test_a_node_without_rows_learns_nothing_from_padding(clip):
    """A network with biases has gradients at rows of zeros."""
    rng = np.random.default_rng(0)
    nodes = tacita.from_arrays(
        rng.normal(size=(12, 2)),
        rng.integers(0, 2, 12),
        np.arange(12) % 2,
        model=tacita.problem.mlp(2, (3,), 2),
        graph=tacita.problem.graph.star(3),
        unlabelled=[2],
    )
    batches = clip(Minibatch(size=4, sampling="with_replacement"))
    alone = tacita.FedSGD(alpha=0.0, step_size=0.1, oracle=batches)
    run = tacita.simulate(nodes, alone, 2, seed=0, record=())
    np.testing.assert_array_equal(run.agents[2], nodes.start)
    assert np.all(np.abs(run.agents[:2] - nodes.start).max(axis=1) > 0)


@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.parametrize("size", [7, 99])
def test_an_agent_with_fewer_rows_than_a_batch_takes_all_of_them(problem, size):
    """Also where nobody has so many."""
    with jax.enable_x64(True):
        local, w = local_of(problem, 1), jax.numpy.asarray([0.3, -0.2, 0.5])
        for sampling in ("without_replacement", "permutation", "poisson"):
            oracle = AgentOracle(Minibatch(size=size, sampling=sampling), local)
            for draw in oracle.draws(jax.random.key(3), 2):
                np.testing.assert_allclose(oracle(draw, w), local.grad(w), rtol=1e-12)
                loss = oracle.loss(draw, w, None)
                np.testing.assert_allclose(loss, local.loss(w), rtol=1e-12)
    run = tacita.FedAvg(step_size=0.1, oracle=Minibatch(size=size))
    assert np.all(np.isfinite(tacita.simulate(problem, run, 2, record=()).params))


def test_draws_with_replacement_weigh_as_much_as_a_batch(problem):
    """Also of an agent with fewer rows: some of them are in it more than once."""
    with jax.enable_x64(True):
        local, w = local_of(problem, 1), jax.numpy.asarray([0.3, -0.2, 0.5])
        sampling = Minibatch(size=50, sampling="with_replacement")
        oracle = AgentOracle(sampling, local)
        draw = oracle.draws(jax.random.key(3), 1)[0]
        drawn = np.bincount(draw, minlength=local.padded_rows) / 50
        np.testing.assert_allclose(oracle(draw, w), local.weighted_grad(w, drawn))


def test_private_batches_larger_than_an_agent_are_refused(problem):
    for oracle in (
        Minibatch(size=7),
        tacita.Clipped(norm=1.0, oracle=Minibatch(size=7)),
    ):
        algorithm = tacita.FedAvg(step_size=0.1, oracle=oracle)
        with pytest.raises(tacita.TacitaError, match="6 rows of agent 1.* use batch=6"):
            tacita.private(
                problem,
                algorithm,
                epsilon=1.0,
                delta=1e-5,
                rounds=2,
                observer="coordinator",
            )
    with pytest.raises(tacita.TacitaError, match="batch=7 exceeds the 6 rows"):
        tacita.simulate(problem, algorithm, 2)
    with pytest.raises(tacita.TacitaError, match="did you mean 'poisson'"):
        Minibatch(size=2, sampling="poison")
    with pytest.raises(tacita.TacitaError, match="batch"):
        Minibatch(size=0)
