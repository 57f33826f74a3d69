"""Secure sums in simulations: the integers of a deployment, and its noise."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tacita
from tacita import keys
from tacita.aggregation import Heard, Summed, secure
from tacita.aggregation.secure import noise_table
from tacita.runtime import engine
from tacita.runtime.secret_noise import context_of, secret_bytes
from tacita.trees import replace

BUDGET = {"epsilon": 1.0, "delta": 1e-5, "observer": "coordinator", "rounds": 20}
ALGORITHMS = {
    "ServerGD": tacita.ServerGD(step_size=0.5),
    "DPSGD": tacita.DPSGD(step_size=0.5, momentum=0.5, average=0.2),
    "FedAvg": tacita.FedAvg(step_size=0.5, local_steps=1, weights="samples"),
    "DPFedAvg": tacita.DPFedAvg(step_size=0.5, local_steps=3),
    "ClientDPFedAvg": tacita.ClientDPFedAvg(step_size=0.3, clip=0.2),
    "ServerGD of 3 steps": tacita.ServerGD(step_size=0.5, local_steps=3),
}


def some(agents: int = 5, **more):
    return tacita.problem.synthetic.logistic(
        agents=agents, features=3, samples=40, **more
    )


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("name", "participation"), [*zip(ALGORITHMS, (1.0, 4, 1.0, 4, 4, 1.0), strict=True)]
)
def test_without_noise_it_is_the_mean_up_to_the_grid(name, participation):
    """Increments from zero, the regulariser after the sum: the same models."""
    problem, algorithm = some(l2=0.3), ALGORITHMS[name]
    chosen = {"participation": participation, "seed": 1, "record": ()}
    plain = tacita.simulate(problem, algorithm, 10, **chosen)
    rule = tacita.SecureSum(largest=50.0)
    sums = tacita.simulate(problem, algorithm, 10, **chosen, aggregation=rule)
    np.testing.assert_allclose(sums.params, plain.params, rtol=0, atol=2e-6)
    assert np.any(sums.params != plain.params)


def planned(algorithm=None, agents: int = 5, **rule):
    made = tacita.ServerGD(step_size=0.5) if algorithm is None else algorithm
    rule = tacita.SecureSum(**rule)
    return tacita.private(some(agents), made, **BUDGET, aggregation=rule)


@pytest.mark.long
def test_debug_draws_every_agents_noise_as_a_deployment_does():
    """Integers by hand: letters on the grid, noises of ChaCha20, added modulo 2^32."""
    problem, safe = some(l2=0.0), planned()
    run = tacita.debug(problem, safe, 1, seed=7, record=())
    rule, base = safe.aggregation, keys.from_seed(7)
    start = np.asarray(problem.start)
    context = context_of(1, 0, start)
    total = np.zeros(problem.dim, np.uint32)
    for agent in range(5):
        letter = clipped_gradient(problem, agent, start)
        q = secure.quantise(letter, rule.step, rule.word, rule.largest)
        secret = secret_bytes(base, agent)
        noise = noise_table.agent_noise(secret, context, rule.each, problem.dim)
        total += q + noise.astype(np.uint32)
    mean = secure.dequantise(total, rule.step, rule.word) / 5
    np.testing.assert_array_equal(run.params, start - 0.5 * mean)


def clipped_gradient(problem, agent, w):
    with jax.enable_x64(True):
        oracle = tacita.Clipped(norm=1.0)
        prepared = oracle.prepare(problem.population)
        rows = jax.tree.map(lambda leaf: leaf[agent], prepared.rows)
        return np.asarray(oracle.grad(prepared.local(rows), None, jnp.asarray(w)))


@pytest.mark.long
def test_a_simulation_has_the_noise_of_all_agents_together():
    problem, safe = some(), planned()
    quiet = replace(safe.aggregation, multiples=())
    silent = Summed(algorithm=safe.algorithm, aggregation=quiet)
    runs = tacita.simulate(problem, safe, 1, seeds=3000, seed=0, record=())
    still = tacita.simulate(problem, silent, 1, record=())
    noise = (runs.params - still.params).ravel() / 0.5
    expected = safe.aggregation.noise_std * np.sqrt(5) / 5
    assert abs(noise.std() / expected - 1) < 0.05
    assert abs(noise.mean()) < 5 * expected / np.sqrt(len(noise))
    steps = noise * 5 / safe.aggregation.step
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-4)


def test_a_round_with_too_few_letters_is_void():
    """Nobody below `least`: then the broadcast stays, and the round is paid for."""
    problem, rule = some(), tacita.SecureSum(least=4)
    safe = tacita.private(
        problem, tacita.ServerGD(), **BUDGET, aggregation=rule, participation=0.5
    )
    seeds, moved = 40, []
    run = tacita.simulate(
        problem, safe, 1, participation=0.5, seeds=seeds, seed=0, record=()
    )
    turns = run.info["turns"].sum(axis=1)
    moved = np.any(run.params != np.asarray(problem.start), axis=-1)
    assert set(turns) >= {2, 3, 4}
    np.testing.assert_array_equal(moved, turns >= 4)


def test_a_question_out_of_bounds_gets_no_answer():
    problem = some()
    rule = tacita.SecureSum(largest=10.0, broadcast=4.0)
    sums = Summed(algorithm=ALGORITHMS["ServerGD"], aggregation=rule).resolve(problem)
    for size, answers in ((3.0, True), (5.0, False), (np.inf, False), (np.nan, False)):
        letter = ask(problem, sums, np.full(3, size))
        assert np.isfinite(letter).all()
        assert np.any(letter != 0) == answers


def test_a_question_without_digits_for_a_step_gets_no_answer():
    """Whatever bound the description has: a coordinator chooses it, and the steps."""
    problem = some()
    rule = tacita.SecureSum(largest=10.0, broadcast=2.0**50)
    oracle = tacita.Clipped(norm=1.0)
    short = tacita.DPFedAvg(step_size=1e-10, local_steps=2, oracle=oracle)
    sums = Summed(algorithm=short, aggregation=rule)
    for size, answers in ((0.001, True), (0.01, False)):
        letter = ask(problem, sums, np.full(3, size))
        assert np.any(letter != 0) == answers


def ask(problem, sums, told):
    from tacita.problem.oracles import AgentOracle

    rows = jax.tree.map(lambda leaf: leaf[0], problem.population.rows)
    with jax.enable_x64(True):
        oracle = AgentOracle(sums.oracle, problem.population.local(rows))
        state = sums.init(jnp.zeros(3))[0]
        return np.asarray(
            sums.local(jax.random.key(0), oracle, state, jnp.asarray(told))[1]
        )


@pytest.mark.parametrize("name", ["FedAvg", "DPFedAvg"])
def test_a_record_moves_an_increment_no_further_whatever_was_asked(name):
    """Computed as a model less the broadcast it would move by digits of 2^46."""
    told = np.full(3, 2.0**46)
    rule = tacita.SecureSum(largest=10.0, broadcast=2.0**50)
    oracle = tacita.Clipped(norm=1.0)
    algorithm = replace(ALGORITHMS[name], oracle=oracle)
    sums = Summed(algorithm=algorithm, aggregation=rule)
    letter = ask(some(l2=0.1), sums, told)
    steps = algorithm.local_steps
    assert np.linalg.norm(letter) <= 0.5 * steps * (1 + 1e-12)
    assert np.all(letter % 2.0**-6 != 0) or np.any(np.abs(letter) < 2.0**-6)


def test_permuting_agents_changes_nothing():
    letters = np.random.default_rng(0).normal(size=(5, 7))
    rule = tacita.SecureSum(largest=10.0).without_noise_on(5).at_work(5)
    order = np.array([3, 1, 4, 0, 2])
    with jax.enable_x64(True):
        weights = jnp.arange(1.0, 6)
        one = rule(Heard(jnp.asarray(letters), weights, None, jax.random.key(0)))
        two = rule(
            Heard(jnp.asarray(letters[order]), weights[order], None, jax.random.key(0))
        )
    np.testing.assert_array_equal(one, two)


@pytest.mark.long
def test_another_budget_compiles_nothing():
    problem = some()
    sizes = []
    for epsilon in (1.0, 1.1, 1.2):
        safe = tacita.private(
            problem,
            tacita.DPSGD(),
            **BUDGET | {"epsilon": epsilon},
            aggregation="secure",
        )
        assert len(safe.aggregation.multiples) == 3
        tacita.simulate(problem, safe, 2, record=())
        sizes.append(engine.advance.programs)
    assert sizes[1] == sizes[2]


def test_letters_beyond_the_bound_are_refused_where_nothing_clips():
    rule = tacita.SecureSum(largest=1e-3)
    with pytest.raises(tacita.TacitaError, match="beyond largest=0.001"):
        tacita.simulate(some(), ALGORITHMS["ServerGD"], 3, aggregation=rule)


def noisy():
    return tacita.Noisy(std=0.1, oracle=tacita.Clipped(norm=1.0))


@pytest.mark.parametrize(
    ("algorithm", "rule", "words"),
    [
        (tacita.FedPLT(), {}, "FedPLT has no secure sum: it averages the last letters"),
        (tacita.FedSplit(), {}, "FedSplit has no secure sum: it averages"),
        (tacita.FiveGCS(), {}, "FiveGCS has no secure sum: it averages"),
        (tacita.DPADMM(), {}, "DPADMM has no secure sum: it averages"),
        (tacita.FedSPD(), {}, "FedSPD has no secure sum: its state needs"),
        (tacita.SCAFFOLD(), {}, "nobody has shown what a sum of its letters reveals"),
        (tacita.GossipSGD(), {}, "GossipSGD has no secure sum: it has no coordinator"),
        (tacita.ServerGD(oracle=noisy()), {}, "ServerGD has noise of its own"),
        (tacita.DPFedAvg(noise_std=1.0), {}, "DPFedAvg has noise of its own"),
        (tacita.FedBuff(), {}, "letters count by their age"),
        (tacita.ServerGD(), {"least": 6}, "expected least <= 5"),
        (tacita.ServerGD(), {"least": 3, "colluding": 2}, "one letter is no sum"),
        (tacita.ServerGD(), {"least": 2}, "take least >= 3"),
        (tacita.ServerGD(step_size=[0.1] * 5), {}, "common to all agents"),
    ],
)
def test_what_no_secure_sum_joins_is_refused(algorithm, rule, words):
    problem = some(graph=tacita.problem.graph.ring(5))
    chosen = {"aggregation": tacita.SecureSum(largest=5.0, **rule)}
    for run in (tacita.simulate, tacita.debug):
        with pytest.raises(tacita.TacitaError, match=words) as refusal:
            run(problem, algorithm, 1, **chosen)
        assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("kind", [tacita.FedAvg, tacita.ServerGD])
def test_noise_once_covers_one_gradient(kind):
    algorithm = kind(step_size=0.1, local_steps=3)
    with pytest.raises(tacita.TacitaError, match="use local_steps=1, or DPFedAvg"):
        tacita.private(some(), algorithm, **BUDGET, aggregation="secure")


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"aggregation": tacita.SecureSum(largest=0.5)}, "largest=0.5 is below"),
        ({"quantile": 0.5}, "leave quantile out"),
        ({"schedule": "prefix"}, "leave schedule out"),
        ({"largest_noise": 1.0}, "leave largest_noise out"),
        ({"participation": 0.5}, "give SecureSum"),
        ({"participation": 2}, "3 to 128 agents, got 2"),
        ({"observer": "colluders"}, "has no colluders"),
    ],
)
def test_plans_that_are_refused(how, words):
    asked = {**BUDGET, "aggregation": "secure", **how}
    with pytest.raises(tacita.TacitaError, match=words):
        tacita.private(some(), tacita.ServerGD(), **asked)


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        ({"agents": 2}, "3 to 128 agents, got 2"),
        ({"agents": 129}, "3 to 128 agents, got 129"),
        ({"dtype": "float32"}, "double precision"),
    ],
)
def test_problems_that_are_refused(problem, words):
    for how in ({"aggregation": "secure"}, {"aggregation": tacita.SecureSum()}):
        with pytest.raises(tacita.TacitaError, match=words):
            tacita.private(some(**problem), tacita.ServerGD(), **BUDGET, **how)


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ({"least": 1}, "least a whole number >= 2"),
        ({"colluding": -1}, "colluding a whole number >= 0"),
        ({"window": 65}, "window <= 64"),
        ({"largest": 0.0}, "largest > 0"),
        ({"step": 0.3}, "step a power of two"),
        ({"multiples": [2, 3]}, "begin with 1"),
        ({"multiples": [1, 86]}, "at most a third"),
        ({"multiples": [1, 2.5]}, "whole numbers"),
    ],
)
def test_numbers_that_are_refused(numbers, words):
    with pytest.raises(tacita.TacitaError, match=words):
        tacita.SecureSum(**numbers)


def test_a_grid_on_which_sums_wrap_is_refused():
    rule = tacita.SecureSum(largest=1.0, step=2.0**-30, multiples=[1])
    with pytest.raises(tacita.TacitaError, match="do not fit into 32 bits"):
        tacita.simulate(some(), tacita.ServerGD(), 1, aggregation=rule)


def test_a_grid_has_room_for_those_who_are_asked():
    """Planned for 4 of 60 agents, it need not hold the letters of all."""
    problem = some(60)
    chosen = {"participation": 4}
    safe = tacita.private(
        problem, tacita.ServerGD(), **BUDGET, aggregation="secure", **chosen
    )
    rule = safe.aggregation
    coarse = replace(rule, largest=rule.step * 2**28)
    wide = Summed(algorithm=safe.algorithm, aggregation=coarse)
    tacita.simulate(problem, wide, 1, record=(), **chosen)
    with pytest.raises(tacita.TacitaError, match="do not fit into 32 bits"):
        rule.at_work(60) and coarse.at_work(60)
    with pytest.raises(tacita.TacitaError, match="expected least <= 3"):
        tacita.simulate(problem, safe, 1, participation=3)


def test_letters_of_a_sum_are_not_wrapped():
    """Their noise is the sum's: within another wrapper it would be lost."""
    safe = planned()
    quiet = tacita.privacy.Budgeted(algorithm=safe, turns=3.0)
    with pytest.raises(tacita.TacitaError, match="needs single letters"):
        tacita.simulate(some(), quiet, 1)
    told = tacita.privacy.forecast(some(), quiet, rounds=2)
    assert all(row.epsilon is None for row in told.rows)


def test_a_sweep_has_one_rule():
    with pytest.raises(tacita.TacitaError, match="one by one"):
        tacita.sweep(some(), [planned(), planned()], 1)


def test_a_sum_is_not_put_around_a_sum():
    with pytest.raises(tacita.TacitaError, match="leave aggregation out"):
        tacita.simulate(some(), planned(), 1, aggregation="secure")
