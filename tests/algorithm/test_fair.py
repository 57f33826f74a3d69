"""q-FedAvg and agnostic FedAvg: known numbers, known optima, private losses."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tacita
from tacita.algorithm.base import Round
from tacita.privacy import Question, Scope, letters_of
from tacita.problem import synthetic
from tacita.problem.oracles import AgentOracle
from tacita.trees import in_double_precision
from tests.cases import case_of

KNOWN = json.loads((Path(__file__).parents[1] / "trust" / "vectors.json").read_text())
FAIR = KNOWN["fairness"]
NOBODY = Round(n_agents=4, h=None, number=1, active=4)


def two_agents() -> tacita.Problem:
    """(w - 1)^2 and (w + 1)^2 + 1: the mean is best at 0, the worst at -1/4."""
    x, y = np.ones((4, 1)), np.array([1.0, 1.0, 0.0, -2.0])
    return tacita.from_arrays(x, y, [0, 0, 1, 1], "linear")


@pytest.mark.parametrize(("q", "key"), [(0.5, "next"), (0.0, "next_q0")])
def test_a_step_of_q_fed_avg_is_the_known_one(q: float, key: str):
    told = FAIR["q_fair"]
    algorithm = tacita.QFedAvg(q=q, step_size=1.0, smoothness=told["smoothness"])
    with jax.enable_x64(True):
        letters = jax.vmap(algorithm.letter, (None, 0, 0))(
            *(jnp.asarray(told[k]) for k in ("w", "client_models", "losses"))
        )
        mean = jax.tree.map(lambda leaf: leaf.mean(axis=0), letters)
        _, found = algorithm.combine(jax.random.key(0), (), mean, NOBODY)
    np.testing.assert_allclose(found, told[key], rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "weights", ["uniform", pytest.param("samples", marks=pytest.mark.long)]
)
def test_q_of_zero_is_fed_avg(weights: str):
    problem = case_of("FedAvg").problem()
    same = {"step_size": 0.3, "local_steps": 2, "oracle": tacita.Minibatch(size=4)}
    told = (problem, 12, 3, 0.6)
    plain = run(tacita.FedAvg(weights=weights, **same), *told)
    fair = run(tacita.QFedAvg(q=0.0, weights=weights, **same), *told)
    if weights == "uniform":
        np.testing.assert_array_equal(fair.params, plain.params)
    # To rounding: weighted steps are added up here, weighted models there.
    np.testing.assert_allclose(fair.params, plain.params, rtol=1e-14)
    np.testing.assert_allclose(fair.agents, plain.agents, rtol=1e-14)
    other = run(tacita.QFedAvg(q=0.1, weights=weights, **same), *told)
    assert np.abs(other.params - plain.params).max() > 1e-4


def run(algorithm: Any, problem: Any, rounds: int, seed: int, participation: Any = 1.0):
    return tacita.simulate(problem, algorithm, rounds, seed, participation, record=())


def test_q_fed_avg_descends_the_sum_of_powers():
    """At the optimum sum_k F_k^q grad F_k = 0: of F_1^2 + F_2^2 here."""
    problem = two_agents()
    found = run(tacita.QFedAvg(q=1.0, step_size=0.5), problem, 200, 0)
    (w,) = found.params
    first, second = (w - 1) ** 2, (w + 1) ** 2 + 1
    assert abs(first * (w - 1) + second * (w + 1)) < 1e-10
    assert -0.25 < w < -0.05  # between the mean's optimum and the worst's


def test_agnostic_fed_avg_reaches_the_best_worst_loss():
    found = run(tacita.AgnosticFedAvg(step_size=0.1), two_agents(), 1500, 0)
    np.testing.assert_allclose(found.params, [-0.25], atol=1e-8)
    plain = run(
        tacita.AgnosticFedAvg(step_size=0.1, weight_step=0.0), two_agents(), 300, 0
    )
    np.testing.assert_allclose(plain.params, [0.0], atol=1e-8)


def test_the_goal_of_fair_algorithms_is_their_own():
    """Of F_1^2 + 3 F_2^2, rows weighing, the slope is zero; of the worst loss -1/4."""
    x, y = np.ones((8, 1)), np.array([1.0, 1.0, 0.0, -2.0, 0.0, -2.0, 0.0, -2.0])
    problem = tacita.from_arrays(x, y, [0, 0, *[1] * 6], "linear")
    for rows, share in (("uniform", 1), ("samples", 3)):
        (w,) = tacita.QFedAvg(q=1.0, weights=rows).goal(problem)
        assert abs((w - 1) ** 3 + share * ((w + 1) ** 2 + 1) * (w + 1)) < 1e-10
        plain = tacita.QFedAvg(q=0.0, weights=rows).goal(problem)
        np.testing.assert_allclose(plain, [(1 - share) / (1 + share)], atol=1e-12)
    np.testing.assert_allclose(
        tacita.AgnosticFedAvg().goal(problem), [-0.25], atol=1e-8
    )
    fixed = tacita.AgnosticFedAvg(weight_step=0.0)
    np.testing.assert_allclose(fixed.goal(problem), [0.0], atol=1e-12)
    kinked = tacita.from_arrays(x, y, np.arange(8) % 2, "absolute")
    with pytest.raises(tacita.TacitaError, match="without kinks only"):
        tacita.AgnosticFedAvg(step_size=0.1).goal(kinked)


def projected(mix: np.ndarray, losses: np.ndarray, step: float) -> np.ndarray:
    """The weights' step as it is in the paper: up along losses, onto the simplex."""
    up = np.asarray(mix) + step * np.asarray(losses)
    falling = np.sort(up)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(up) + 1)
    return np.maximum(up - excess[np.sum(falling > excess) - 1], 0)


def test_the_papers_own_weights_lead_to_the_same_point():
    told = FAIR["agnostic"]
    one = projected(told["mix"], told["losses"], told["step"])
    np.testing.assert_allclose(one, told["next"], atol=1e-9)
    w, mix = 0.0, np.array([0.5, 0.5])
    for _ in range(2000):
        losses = np.array([(w - 1) ** 2, (w + 1) ** 2 + 1])
        mix = projected(mix, losses, 0.05)
        w -= 0.1 * (mix @ np.array([2 * (w - 1), 2 * (w + 1)]))
    assert abs(w + 0.25) < 1e-8


def test_weights_of_agnostic_fed_avg_neither_overflow_nor_vanish():
    """Losses of 1e4 a round: exp of their sums is beyond any number."""
    y = np.array([100.0, 100.0, 0.0, 0.0])
    problem = tacita.from_arrays(
        np.ones((4, 1)), y, [0, 0, 1, 1], "linear", dtype=np.float32
    )
    found = run(tacita.AgnosticFedAvg(step_size=0.1, weight_step=1.0), problem, 60, 0)
    assert np.all(np.isfinite(found.params)) and 1 < found.params[0] < 100


NOISY = tacita.Noisy(std=0.4, oracle=tacita.Clipped(norm=2.0))
FAIR_ONES = [
    tacita.QFedAvg(step_size=0.1, local_steps=2, loss_bound=3.0, oracle=NOISY),
    tacita.AgnosticFedAvg(step_size=0.1, local_steps=2, loss_bound=3.0, oracle=NOISY),
]
each = pytest.mark.parametrize("algorithm", FAIR_ONES, ids=lambda a: type(a).__name__)


@each
def test_a_loss_is_paid_for_like_a_gradient(algorithm: Any):
    """Two steps and a loss cost what three steps of FedAvg do."""
    problem = synthetic.logistic(agents=3, features=2, samples=20)
    scope = Scope("coordinator", "record", "replace_one")
    asked = Question(scope=scope, agent=0, rounds=4)
    same = tacita.FedAvg(step_size=0.1, local_steps=3, oracle=NOISY)
    costs = [letters_of(a).theorem(problem, asked).mu for a in (algorithm, same)]
    assert costs[0] == pytest.approx(costs[1], rel=1e-12)


@each
def test_losses_without_a_bound_have_no_account(algorithm: Any):
    problem = synthetic.logistic(agents=3, features=2, samples=20)
    free = dataclasses.replace(algorithm, loss_bound=None)
    budget: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-5, "rounds": 3}
    with pytest.raises(tacita.TacitaError, match="give loss_bound="):
        tacita.private(problem, free, observer="coordinator", **budget)
    safe = tacita.private(problem, algorithm, observer="coordinator", **budget)
    report = run(safe, problem, 3, 1).privacy
    assert report is not None
    assert report.row("coordinator").epsilon == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize("sampling", ["all", "without_replacement", "poisson"])
def test_one_row_moves_a_loss_by_no_more_than_its_share(sampling: str):
    """And by as much: the worst neighbours of [0, bound] are reached."""
    problem = synthetic.linear(agents=1, features=2, samples=8, seed=3)
    batch = None if sampling == "all" else tacita.Minibatch(size=4, sampling=sampling)
    oracle = tacita.Clipped(norm=2.0, oracle=batch or tacita.Full())
    x, y, _ = problem.stacked()
    w, bound = jnp.asarray([0.3, -0.2]), 1.5
    changes = []
    for label in (float(x[0, 0] @ np.asarray(w)), 1e3, np.nan, 0.0):
        own = np.array(y[0])
        own[0] = label
        local = problem.population.local(
            problem.population.rows._replace(
                x=jnp.asarray(np.array(x[0]).T), y=jnp.asarray(own)
            )
        )
        seat = AgentOracle(oracle, local)
        # A row that is always drawn, the first.
        draw = {"all": None, "poisson": jnp.full(8, 0.25)}.get(sampling, jnp.arange(4))
        changes.append(float(seat.loss(draw, w, bound)))
    largest = max(changes) - min(changes)
    used = 8 if sampling == "all" else 4
    assert largest == pytest.approx(bound / used, rel=1e-5)
    assert largest <= oracle.sensitivity("add_remove", 8) * bound / 2.0 * (1 + 1e-5)


@in_double_precision
def test_the_noise_of_a_loss_has_the_size_that_is_accounted():
    """std bound / norm, fresh for every draw, and not that of a gradient."""
    problem = synthetic.linear(agents=1, features=3, samples=8, seed=3)
    local = problem.population.local(
        jax.tree.map(lambda a: a[0], problem.population.rows)
    )
    seat, quiet = AgentOracle(NOISY, local), AgentOracle(NOISY.oracle, local)
    w, keys = jnp.zeros(3), jax.random.split(jax.random.key(1), 4000)
    found = jax.vmap(lambda key: seat.loss_once(key, w, 3.0))(keys)
    noise = np.asarray(found - quiet.loss_once(keys[0], w, 3.0))
    # The standard error of a standard deviation is 1/sqrt(2 n) of it: 1.1 per cent.
    assert np.std(noise) == pytest.approx(0.4 * 3.0 / 2.0, rel=0.05)
    assert abs(np.mean(noise)) < 4 * 0.6 / np.sqrt(4000)


@in_double_precision
def test_no_word_of_a_gradients_noise_is_the_key_of_a_losss():
    """A small fold of a key is a word of what is drawn with it."""
    asked: list[Any] = []

    class Listening(AgentOracle):
        def draws(self, key: Any, steps: int) -> Any:
            asked.append(jax.random.key_data(key))
            return super().draws(key, steps)

    problem = synthetic.linear(agents=1, features=3, samples=8, seed=3)
    rows = jax.tree.map(lambda a: a[0], problem.population.rows)
    seat, key = Listening(NOISY, problem.population.local(rows)), jax.random.key(1)
    seat.once(key, jnp.zeros(3, problem.dtype))
    seat.loss_once(key, jnp.zeros(3, problem.dtype), 3.0)
    words = {tuple(np.asarray(w).tolist()) for w in asked}
    folds = [jax.random.fold_in(key, k) for k in range(1000)]
    small = {tuple(np.asarray(jax.random.key_data(k)).tolist()) for k in folds}
    assert len(words) == 2 and not words & small
