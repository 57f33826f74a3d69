"""Every method ends at the exact optimum, or at the bias that it is known for."""

from __future__ import annotations

import functools

import jax
import numpy as np
import pytest

import tacita
from tacita.algorithm.fed_pd import State, Told
from tacita.algorithm.solvers import (
    Accelerated,
    ExactProx,
    GradientDescent,
    Mixed,
    Newton,
    QuasiNewton,
)
from tacita.algorithm.variance_reduced import SAGA, SVRG
from tacita.problem.oracles import AgentOracle
from tests.algorithm.by_hand import play

AGENTS, DIM = 10, 5


@functools.cache
def problem(h_weight: float = 0.0) -> tacita.Problem:
    """Every agent with clusters of its own, so that local steps pull apart."""
    h = tacita.problem.prox.L1(h_weight) if h_weight else None
    return tacita.problem.synthetic.logistic(
        agents=AGENTS, features=DIM, samples=30, seed=1, heterogeneous=True, h=h
    )


def distance(algorithm, rounds: int, participation=1.0, made=None) -> float:
    """Distance of the published model from the optimum at the end of a run."""
    made = made or problem()
    run = tacita.simulate(
        made, algorithm, rounds, participation=participation, record=(), seed=5
    )
    return float(np.linalg.norm(run.params - made.solve()))


COMPARATORS = [
    (tacita.FedPD(), 80),
    (tacita.FedLin(), 100),
    (tacita.FedLin(own_steps=1 + np.arange(AGENTS) % 5), 100),
    (tacita.FedLin(step_size=0.02, entries_told=2), 800),
    (tacita.SCAFFOLD(), 100),
    (tacita.LED(), 130),
    (tacita.ProxSkip(), 80),
    (tacita.TAMUNA(), 250),
    (tacita.TAMUNA(fixed=True), 250),
    (tacita.TAMUNA(local_steps=2, sparsity=5), 500),
    (tacita.FiveGCS(), 140),
    (tacita.FiveGCS(solver=Accelerated()), 140),
    (tacita.FedSplit(solver=ExactProx()), 40),
]


@pytest.mark.few(3)
@pytest.mark.parametrize(("algorithm", "rounds"), COMPARATORS)
def test_comparators_reach_the_optimum_with_theory_s_numbers(algorithm, rounds):
    assert distance(algorithm, rounds) < 1e-8


def stretched(condition: float, agents: int) -> tacita.Problem:
    """Least squares whose curvature spans L to L/condition at every agent."""
    rng = np.random.default_rng(0)
    length = np.geomspace(1, condition**-0.5, 4)
    rows = [np.linalg.qr(rng.standard_normal((12, 4)))[0] for _ in range(agents)]
    turned = [np.linalg.qr(rng.standard_normal((4, 4)))[0] for _ in range(agents)]
    x = np.concatenate([a * length @ b for a, b in zip(rows, turned, strict=True)])
    y = x.sum(axis=1) + rng.standard_normal(len(x))
    return tacita.from_arrays(x, y, np.repeat(np.arange(agents), 12), model="linear")


@pytest.mark.few(2)
@pytest.mark.parametrize("agents", [1, 5])
@pytest.mark.parametrize(("condition", "steps"), [(10, 1), (100, 5), (1000, 5)])
def test_few_local_steps_do_not_swing_apart(agents, condition, steps):
    """Duals and reflections of answers on the far side of a solution ran away."""
    made, few = stretched(condition, agents), GradientDescent(local_steps=steps)
    best, rounds = made.solve(), 100 + 4 * condition
    five = tacita.simulate(made, tacita.FiveGCS(solver=few), rounds, record=())
    assert np.linalg.norm(five.params - best) < 1e-6 * np.linalg.norm(best)
    split = tacita.simulate(made, tacita.FedSplit(solver=few), rounds, record=())
    assert np.linalg.norm(split.params - best) < np.linalg.norm(best)


PARTIAL = [
    (tacita.SCAFFOLD(), 5, 300),
    (tacita.SCAFFOLD(), 0.3, 500),
    (tacita.TAMUNA(local_steps=2), 5, 400),
    (tacita.TAMUNA(local_steps=2), 0.3, 800),
    (tacita.TAMUNA(local_steps=2, sparsity=3), 5, 1500),
    (tacita.FiveGCS(), 5, 250),
    (tacita.FiveGCS(), 0.3, 400),
]


@pytest.mark.few(3)
@pytest.mark.parametrize(("algorithm", "participation", "rounds"), PARTIAL)
def test_comparators_with_silent_agents(algorithm, participation, rounds):
    assert distance(algorithm, rounds, participation) < 1e-8


STEPS = np.linspace(0.2, 0.6, AGENTS)
FED_PLT = [
    tacita.FedPLT(),
    tacita.FedPLT(rho=1),
    tacita.FedPLT(rho=0.5, solver=GradientDescent(local_steps=1)),
    tacita.FedPLT(rho=1, solver=Accelerated(local_steps=5)),
    tacita.FedPLT(rho=1, solver=Newton(local_steps=1)),
    tacita.FedPLT(rho=1, solver=QuasiNewton(local_steps=4)),
    tacita.FedPLT(rho=1, solver=ExactProx()),
    tacita.FedPLT(rho=1, solver=GradientDescent(step_size=STEPS)),
    tacita.FedPLT(rho=1, solver=GradientDescent(own_steps=1 + np.arange(AGENTS) % 5)),
    tacita.FedPLT(
        rho=1,
        solver=Mixed(
            solvers=(
                GradientDescent(step_size=STEPS, local_steps=3),
                Accelerated(),
                Newton(),
            ),
            group=np.arange(AGENTS) % 3,
        ),
    ),
]


@pytest.mark.few(3)
@pytest.mark.parametrize("algorithm", FED_PLT)
def test_fed_plt_reaches_the_optimum_with_every_solver(algorithm):
    assert distance(algorithm, 90) < 1e-8


@pytest.mark.few(1)
@pytest.mark.parametrize("model", ["hinge", "huber"])
def test_losses_that_gradients_do_not_solve_by_exact_steps(model):
    """Losses with kinks, or with curvature that jumps, have proximal points."""
    random = np.random.default_rng(0)
    x = random.normal(size=(40, 3))
    y = x @ [1.0, -2.0, 0.5] + random.standard_t(2, size=40)
    y = np.sign(y) if model == "hinge" else y
    made = tacita.from_arrays(x, y, np.arange(40) % 4, model=model, l2=0.1)
    assert distance(tacita.FedPLT(rho=1, solver=ExactProx()), 400, made=made) < 1e-8
    # One agent alone with FedProx: steps to proximal points end at the optimum too.
    alone = tacita.from_arrays(x, y, np.zeros(40, int), model=model, l2=0.1)
    assert distance(tacita.FedProx(eta=100.0), 20, made=alone) < 1e-8


@pytest.mark.few(1)
@pytest.mark.parametrize("solver", [SVRG(), SAGA()])
@pytest.mark.parametrize("participation", [1.0, 0.5])
def test_batches_without_variance_reach_the_optimum(solver, participation):
    batches = tacita.Minibatch(size=5)
    algorithm = tacita.FedPLT(rho=1, solver=solver, oracle=batches)
    assert distance(algorithm, 250, participation) < 1e-8
    plain = tacita.FedPLT(rho=1, solver=GradientDescent(), oracle=batches)
    assert distance(plain, 250, participation) > 1e-3


@pytest.mark.few(2)
@pytest.mark.parametrize("participation", [AGENTS // 2, 0.5, 0.2])
@pytest.mark.parametrize("solver", [GradientDescent(), Accelerated()])
def test_fed_plt_with_silent_agents(participation, solver):
    algorithm = tacita.FedPLT(rho=1, solver=solver)
    assert distance(algorithm, 220, participation) < 1e-8


@pytest.mark.few(1)
@pytest.mark.parametrize("participation", [1.0, AGENTS // 2])
@pytest.mark.parametrize("solver", [GradientDescent(), Accelerated()])
def test_composite_problems_have_the_exact_zeros(participation, solver):
    made = problem(1.0)
    algorithm = tacita.FedPLT(rho=1, solver=solver)
    run = tacita.simulate(made, algorithm, 250, participation=participation)
    optimum = made.solve()
    zeros = optimum == 0
    assert 0 < zeros.sum() < DIM
    np.testing.assert_array_equal(run.params == 0, zeros)
    np.testing.assert_allclose(run.params, optimum, rtol=0, atol=1e-8)


@pytest.mark.long
def test_exact_local_answers_are_peaceman_rachford_splitting():
    """Newton, Newton to the end, and FedSplit with exact answers: the same numbers."""
    made, rho = problem(), 0.7
    runs = [
        tacita.simulate(made, algorithm, 6, start=np.ones(DIM))
        for algorithm in (
            tacita.FedPLT(rho=rho, solver=ExactProx()),
            tacita.FedPLT(rho=rho, solver=Newton(local_steps=8)),
            tacita.FedPLT(rho=rho, solver=GradientDescent(local_steps=400)),
            tacita.FedSplit(rho=rho, solver=ExactProx()),
        )
    ]
    for other in runs[1:]:
        np.testing.assert_allclose(other.params, runs[0].params, atol=1e-11)
        np.testing.assert_allclose(other.agents, runs[0].agents, atol=1e-11)


@pytest.mark.long
def test_without_the_warm_start_or_a_correction_there_is_a_bias():
    """FedSplit and FedAvg with few local steps stop short; Fed-PLT does not."""
    descent = GradientDescent(step_size=0.5, local_steps=5)
    for algorithm in (
        tacita.FedSplit(rho=1, solver=descent),
        tacita.FedAvg(step_size=0.5, local_steps=5),
    ):
        early, late = distance(algorithm, 300), distance(algorithm, 600)
        assert early > 1e-4
        assert abs(early - late) < 1e-10
    # More local steps from the same start shrink FedSplit's bias.
    patient = GradientDescent(step_size=0.5, local_steps=50)
    assert distance(tacita.FedSplit(rho=1, solver=patient), 300) < 1e-8
    assert distance(tacita.FedPLT(rho=1, solver=descent), 300) < 1e-8


def test_fixed_point_of_fed_plt():
    """z_i = x* - rho grad f_i(x*), and x_i = y = x*."""
    made, rho = problem(), 0.8
    everyone = [list(range(AGENTS))] * 80
    last = play(made, tacita.FedPLT(rho=rho), everyone)[-1]
    optimum = made.solve()
    gradients = made.grad(np.tile(optimum, (AGENTS, 1)))
    for state, gradient in zip(last.states, gradients, strict=True):
        np.testing.assert_allclose(state.z, optimum - rho * gradient, atol=1e-13)
        np.testing.assert_allclose(state.x, optimum, atol=1e-13)
    np.testing.assert_allclose(last.told, optimum, atol=1e-13)


@pytest.mark.parametrize(
    "algorithm",
    [
        tacita.FedPLT(),
        tacita.FedPD(),
        tacita.FedLin(),
        tacita.SCAFFOLD(),
        tacita.LED(),
        tacita.FiveGCS(),
    ],
    ids=lambda a: type(a).__name__,
)
def test_the_optimum_does_not_depend_on_the_start(algorithm):
    made = problem()
    start = np.random.default_rng(0).normal(size=(AGENTS, DIM)) * 3
    run = tacita.simulate(made, algorithm, 160, start=start, record=())
    np.testing.assert_allclose(run.params, made.solve(), atol=1e-8)


@pytest.mark.parametrize(
    ("algorithm", "words"),
    [
        (tacita.FedPLT(rho=np.ones(AGENTS)), "rho"),
        (tacita.FedPD(eta=np.ones(AGENTS)), "eta"),
        (tacita.LED(step_size=np.ones(AGENTS)), "step_size"),
        (tacita.ProxSkip(step_size=np.ones(AGENTS)), "step_size"),
        (tacita.TAMUNA(eta=np.ones(AGENTS)), "eta"),
        (tacita.FiveGCS(gamma=np.ones(AGENTS)), "gamma"),
    ],
)
def test_numbers_that_must_be_common_are_refused_per_agent(algorithm, words):
    with pytest.raises(tacita.TacitaError, match=f"{words} one number"):
        tacita.simulate(problem(), algorithm, 2)


def test_five_gcs_needs_strong_convexity():
    flat = tacita.problem.synthetic.logistic(agents=3, features=2, samples=5, l2=0.0)
    with pytest.raises(tacita.TacitaError, match="strongly convex"):
        tacita.simulate(flat, tacita.FiveGCS(), 2)


def test_networks_need_no_moduli_when_numbers_are_given():
    """A model without known smoothness works if every number is given."""
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(24, 3)), rng.integers(0, 2, 24)
    made = tacita.from_arrays(
        rows, labels, np.arange(24) % 4, model=tacita.problem.mlp(3, (4,), 2)
    )
    algorithm = tacita.FedPLT(rho=0.5, solver=GradientDescent(step_size=0.1))
    run = tacita.simulate(made, algorithm, 30)
    assert run.metrics["loss"][-1] < run.metrics["loss"][0]
    with pytest.raises(tacita.TacitaError, match="smoothness"):
        tacita.simulate(made, tacita.FedPLT(), 2)


def test_sparse_letters_of_unlike_agents_end_near_the_optimum():
    """What an agent leaves out never ends, for its own gradient does not vanish."""
    sparse = tacita.FedLin(step_size=0.02, entries_sent=2)
    assert 1e-6 < distance(sparse, 800) < 0.1


def test_skipped_exchanges_are_exact_where_agents_are_alike():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, DIM))
    labels = np.where(rows[:, 0] + rng.normal(size=30) > 0, 1.0, -1.0)
    alike = tacita.from_arrays(
        np.tile(rows, (AGENTS, 1)),
        np.tile(labels, AGENTS),
        np.repeat(np.arange(AGENTS), 30),
        model="logistic",
        l2=0.5,
    )
    skipping = tacita.FedPD(skip=0.5)
    assert distance(skipping, 60, made=alike) < 1e-8
    assert 1e-3 < distance(skipping, 150) < 1.0


def test_a_skipped_exchange_goes_on_from_the_agent_s_own_model():
    """Against a loop in NumPy, with as many turns as the coordinator says."""
    made = problem()
    ready = tacita.FedPD(skip=0.5, local_steps=3, step_size=0.1, eta=0.7)
    x, lam, c = np.ones(DIM), np.full(DIM, 0.2), np.zeros(DIM)
    with jax.enable_x64(True):
        rows = jax.tree.map(lambda leaf: leaf[0], made.population.rows)
        oracle = AgentOracle(tacita.Full(), made.population.local(rows))
        (got, _), letter = ready.local(
            jax.random.key(0),
            oracle,
            State(jax.numpy.asarray(x), jax.numpy.asarray(lam)),
            Told(jax.numpy.asarray(c), jax.numpy.asarray(3)),
        )
        for _ in range(3):
            for _ in range(3):
                slope = np.asarray(oracle.local.grad(jax.numpy.asarray(x)))
                x = x - 0.1 * (slope + lam + (x - c) / 0.7)
            lam = lam + (x - c) / 0.7
            c = x + 0.7 * lam
    np.testing.assert_allclose(got, x, atol=1e-13)
    np.testing.assert_allclose(letter, c, atol=1e-13)


@pytest.mark.parametrize(
    "algorithm",
    [
        tacita.FedLin(own_steps=6),
        tacita.FedPLT(solver=GradientDescent(own_steps=6)),
    ],
)
def test_own_steps_are_of_the_local_steps(algorithm):
    with pytest.raises(tacita.TacitaError, match="at most local_steps=5, got 6"):
        tacita.simulate(problem(), algorithm, 1)


def test_numbers_of_a_wrong_length_are_named():
    """Not the step sizes that theory computes from them."""
    with pytest.raises(tacita.TacitaError, match="expected own_steps one number"):
        tacita.simulate(problem(), tacita.FedLin(own_steps=[1, 2, 3]), 1)


def test_tamuna_refuses_a_single_agent():
    """Its control variates never change, and theory would have eta = 0."""
    alone = tacita.from_arrays(np.ones((3, 1)), np.ones(3), [0, 0, 0], model="linear")
    with pytest.raises(tacita.TacitaError, match="never converges with 1 agent"):
        tacita.simulate(alone, tacita.TAMUNA(), 2)
