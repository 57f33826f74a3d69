"""TAMUNA's masks and control variates, and its relatives."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tacita
from tacita.algorithm import fed_pd, prox_skip, random_steps
from tacita.algorithm.base import Round
from tacita.algorithm.tamuna import Told
from tacita.problem.oracles import AgentOracle
from tacita.trees import in_double_precision, tree_rows
from tests.algorithm.by_hand import play

AGENTS, DIM = 6, 5


@pytest.fixture(scope="module")
def problem() -> tacita.Problem:
    return tacita.problem.synthetic.logistic(
        agents=AGENTS, features=DIM, samples=12, seed=4, heterogeneous=True
    )


def cohorts(rounds: int, sizes=(2, 3, 4, 6)) -> list[list[int]]:
    rng = np.random.default_rng(0)
    return [
        sorted(rng.choice(AGENTS, rng.choice(sizes), replace=False).tolist())
        for _ in range(rounds)
    ]


@pytest.mark.few(1)
@pytest.mark.parametrize("sparsity", [None, 2, 3])
def test_control_variates_sum_to_zero(problem, sparsity):
    algorithm = tacita.TAMUNA(sparsity=sparsity, local_steps=3)
    start = np.random.default_rng(1).normal(size=(AGENTS, DIM))
    moments = play(problem, algorithm, cohorts(25), start)
    for moment in moments:
        variates = np.array([state.h for state in moment.states])
        np.testing.assert_allclose(variates.sum(axis=0), 0, atol=1e-13)
    assert max(np.abs(state.h).max() for state in moments[-1].states) > 0.01


@pytest.mark.parametrize("sparsity", [None, 2])
def test_one_active_agent_is_refused(problem, sparsity):
    """Its control variate would never change: x = w_i."""
    algorithm = tacita.TAMUNA(sparsity=sparsity)
    (moment,) = play(problem, algorithm, [[2]], problem.start)
    assert not np.any([state.h for state in moment.states])
    with pytest.raises(tacita.TacitaError, match="use participation >= 2"):
        tacita.simulate(problem, algorithm, 5, participation=1)


@pytest.mark.parametrize("sparsity", [2, 3])
def test_every_coordinate_is_sent_by_exactly_s_of_the_cohort(problem, sparsity):
    algorithm = tacita.TAMUNA(sparsity=sparsity, local_steps=2)
    chosen = cohorts(25)
    before = problem.start
    for cohort, moment in zip(
        chosen, play(problem, algorithm, chosen, start=problem.start), strict=True
    ):
        sent = np.array([moment.sent["train"][i] for i in cohort])
        models = np.array([moment.states[i].w for i in cohort])
        senders = min(sparsity, len(cohort))
        np.testing.assert_array_equal((sent != 0).sum(axis=0), senders)
        np.testing.assert_array_equal(sent[sent != 0], models[sent != 0])
        # x is the mean over a coordinate's senders.
        np.testing.assert_allclose(moment.told.x, sent.sum(axis=0) / senders)
        # Work is shared: nobody sends more than one coordinate above another.
        load = (sent != 0).sum(axis=1)
        assert load.max() - load.min() <= 1
        assert not np.array_equal(moment.told.x, before)
        before = moment.told.x


def test_compression_is_unbiased():
    """Over the masks, the mean of x is the mean over the cohort."""
    algorithm = tacita.TAMUNA(sparsity=2, agent=np.arange(AGENTS))
    cohort, boss = [0, 2, 3, 5], Round(AGENTS, None, 1, 4)
    models = np.random.default_rng(2).normal(size=(AGENTS, DIM))
    here = np.zeros(AGENTS)
    here[cohort] = 1 / len(cohort)
    first = Told(jnp.zeros(DIM), jnp.array(1), jnp.zeros(AGENTS, int), jnp.array(1))

    @jax.jit
    @jax.vmap
    def average(key):
        told, _ = algorithm.assign(key, first, jnp.asarray(here), boss)
        sent = [
            tacita.TAMUNA(sparsity=2, agent=i)._mask(told, jnp.asarray(models[i]))
            for i in cohort
        ]
        return algorithm.average(key, told, sum(sent[1:], sent[0]) / len(cohort), boss)[
            0
        ].x

    with jax.enable_x64(True):
        got = np.asarray(average(jax.random.split(jax.random.key(0), 20_000)))
    spread = got.std(axis=0) / np.sqrt(len(got))
    assert spread.min() > 0
    error = got.mean(axis=0) - models[cohort].mean(axis=0)
    assert np.all(np.abs(error) < 4.5 * spread)


def test_all_of_the_cohort_sending_is_no_compression(problem):
    """s = |S| masks nothing; only the random number of steps may differ."""
    options = {"fixed": True, "step_size": 0.4, "eta": 0.2, "local_steps": 4}
    chosen = cohorts(8, sizes=(3,))
    plain = play(problem, tacita.TAMUNA(**options), chosen)[-1]
    masked = play(problem, tacita.TAMUNA(sparsity=3, **options), chosen)[-1]
    np.testing.assert_allclose(masked.told.x, plain.told.x, atol=1e-14)
    for one, other in zip(masked.states, plain.states, strict=True):
        np.testing.assert_allclose(one.h, other.h, atol=1e-14)


def test_a_fixed_number_of_steps_is_not_for_the_coordinator_to_change(problem):
    """Privacy is accounted for so many gradients, whatever an agent is told."""
    algorithm = tacita.TAMUNA(step_size=0.4, eta=0.15, local_steps=4, fixed=True)
    rows = tree_rows(problem.population.rows, 0)
    oracle = AgentOracle(tacita.Full(), problem.population.local(rows))
    letters = []
    with jax.enable_x64(True):
        start = jnp.ones(DIM)
        state = algorithm.init(start)[0]
        for steps in (4, 1, 400):
            told = Told(start, jnp.asarray(steps, jnp.int32), (), ())
            letters.append(algorithm.train(jax.random.key(0), oracle, state, told)[1])
    np.testing.assert_array_equal(letters[1], letters[0])
    np.testing.assert_array_equal(letters[2], letters[0])


def test_with_fixed_steps_and_everyone_it_is_led(problem):
    led = tacita.LED(step_size=0.4, beta=0.15, local_steps=4)
    tamuna = tacita.TAMUNA(step_size=0.4, eta=0.15, local_steps=4, fixed=True)
    runs = [tacita.simulate(problem, a, 12, start=np.ones(DIM)) for a in (led, tamuna)]
    np.testing.assert_allclose(runs[0].params, runs[1].params, atol=1e-14)


def test_with_probability_one_prox_skip_is_led_with_one_step(problem):
    """p = 1 exchanges after every step: both are then gradient descent."""
    led = tacita.LED(step_size=0.4, beta=1.0, local_steps=1)
    skip = tacita.ProxSkip(step_size=0.4, probability=1.0)
    descent = tacita.ServerGD(step_size=0.4)
    runs = [
        tacita.simulate(problem, a, 12, start=np.ones(DIM))
        for a in (led, skip, descent)
    ]
    np.testing.assert_allclose(runs[0].params, runs[1].params, atol=1e-14)
    np.testing.assert_allclose(runs[2].params, runs[1].params, atol=1e-14)


def test_prox_skip_iteration_by_iteration(problem):
    """The per-step form of the paper, in NumPy, with the coin that the rounds imply."""
    size, chance = 0.4, 0.25
    algorithm = tacita.ProxSkip(step_size=size, probability=chance)
    moments = play(problem, algorithm, [list(range(AGENTS))] * 15)
    assert len({int(moment.told.steps) for moment in moments}) > 3
    x = np.tile(moments[0].told.x, (AGENTS, 1))
    before = np.array([state.x for state in moments[0].states])
    h = chance / size * (x - before)  # h_i was zero in the first round
    for now, after in zip(moments, moments[1:], strict=False):
        x_hat = x
        for step in range(int(now.told.steps)):
            x_hat = x - size * (problem.grad(x) - h)
            exchange = step == int(now.told.steps) - 1
            x = np.tile(x_hat.mean(axis=0), (AGENTS, 1)) if exchange else x_hat
        h = h + chance / size * (x - x_hat)
        np.testing.assert_allclose(after.told.x, x[0], atol=1e-13)
        np.testing.assert_allclose(h.sum(axis=0), 0, atol=1e-13)


def test_a_coordinator_has_nobody_train_for_ever(problem):
    """What is told of a draw is cut to what may have been drawn, 64 times its mean."""
    population = problem.population
    oracle = AgentOracle(tacita.Full(), population.local(tree_rows(population.rows, 0)))
    key, start = jax.random.key(0), np.zeros(DIM)

    @in_double_precision
    def told(algorithm, words):
        state = algorithm.init(start)[0]
        return algorithm.phases[0].local(key, oracle, state, words)[0][0]

    tamuna = tacita.TAMUNA(step_size=0.4, eta=0.2, local_steps=2.0)
    skip = tacita.ProxSkip(step_size=0.4, probability=0.5)
    pd = tacita.FedPD(eta=1.0, step_size=0.4, local_steps=1, skip=0.5)
    for algorithm, words in (
        (tamuna, lambda n: Told(start, n, (), ())),
        (skip, lambda n: prox_skip.Told(start, n)),
        (pd, lambda n: fed_pd.Told(start, n)),
    ):
        most, endless = (told(algorithm, words(jnp.int32(n))) for n in (128, 2**31 - 1))
        np.testing.assert_array_equal(most, endless)
        fewer = told(algorithm, words(jnp.int32(2)))
        assert not np.allclose(fewer, most)


def test_number_of_steps_is_geometric():
    keys = jax.random.split(jax.random.key(1), 100_000)
    draws = np.asarray(jax.vmap(lambda k: random_steps.geometric(k, 0.25))(keys))
    assert draws.dtype == np.int32 and draws.min() == 1
    for value in (1, 2, 5):
        share = 0.25 * 0.75 ** (value - 1)
        deviation = np.sqrt(share / len(draws))
        np.testing.assert_allclose((draws == value).mean(), share, atol=4 * deviation)
    assert np.all(
        np.asarray(jax.vmap(lambda k: random_steps.geometric(k, 1.0))(keys[:9])) == 1
    )


@pytest.mark.parametrize("steps", [1, 5, 16, 17, 40])
def test_a_traced_number_of_steps(problem, steps):
    """As many gradients as asked for, also beyond what is drawn at once."""
    with jax.enable_x64(True):
        people = problem.population
        rows = jax.tree.map(lambda leaf: jnp.asarray(leaf)[0], people.rows)
        oracle = AgentOracle(tacita.Minibatch(size=3), people.local(rows))
        count = jax.jit(
            lambda n: random_steps.descend(
                jax.random.key(0), oracle, jnp.zeros(DIM), n, lambda w, g: w + 1 + 0 * g
            )
        )
        np.testing.assert_array_equal(count(jnp.array(steps, jnp.int32)), steps)


def test_the_second_exchange_is_counted(problem):
    plain = tacita.simulate(problem, tacita.TAMUNA(), 10).info["communication"]
    assert plain["letters"] == 10 * AGENTS * 2
    lin = tacita.simulate(problem, tacita.FedLin(), 10).info["communication"]
    assert lin["letters"] == 10 * AGENTS * 2
    assert lin["bytes_up"] == 10 * AGENTS * 2 * DIM * 8


def test_bad_numbers():
    for name, value in {"sparsity": 1, "local_steps": 0.5, "eta": 0.0}.items():
        with pytest.raises(tacita.TacitaError, match=name):
            tacita.TAMUNA(**{name: value})
