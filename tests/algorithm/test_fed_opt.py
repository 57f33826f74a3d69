"""FedOpt against loops in NumPy, against FedAvg, and with optimisers of optax."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import tacita
from tacita.job import table_of
from tacita.privacy.letters import letters_of

ROUNDS, ETA, TAU, BETA_1, BETA_2 = 6, 0.2, 0.01, 0.8, 0.9
SQUARES = {
    "FedAdagrad": lambda v, d: v + d**2,
    "FedYogi": lambda v, d: np.where(
        v > d**2, v - (1 - BETA_2) * d**2, v + (1 - BETA_2) * d**2
    ),
    "FedAdam": lambda v, d: BETA_2 * v + (1 - BETA_2) * d**2,
}
LOCAL = {"step_size": 0.3, "local_steps": 2}


@pytest.fixture(scope="module")
def problem():
    return tacita.problem.synthetic.linear(agents=3, features=2, samples=4, seed=3)


def local_models(problem, x):
    """Two gradient steps of every agent, from its rows."""
    rows, labels, _ = problem.stacked()
    made = []
    for features, targets in zip(rows, labels, strict=True):
        w = x.copy()
        for _ in range(LOCAL["local_steps"]):
            residual = features @ w - targets
            w = w - LOCAL["step_size"] * 2 * features.T @ residual / len(targets)
        made.append(w)
    return np.array(made)


def record(shared, agents):
    return shared[0]


@pytest.mark.parametrize("name", SQUARES)
def test_adaptive_steps_are_those_of_a_loop(name, problem):
    x, m, v = np.zeros(2), np.zeros(2), np.full(2, TAU**2)
    path = []
    for _ in range(ROUNDS):
        d = local_models(problem, x).mean(axis=0) - x
        m = BETA_1 * m + (1 - BETA_1) * d
        v = SQUARES[name](v, d)
        x = x + ETA * m / (np.sqrt(v) + TAU)
        path.append(x[0])
    numbers = {"server_step": ETA, "beta_1": BETA_1, "tau": TAU, **LOCAL}
    if name != "FedAdagrad":
        numbers["beta_2"] = BETA_2
    algorithm = getattr(tacita, name)(**numbers)
    run = tacita.simulate(problem, algorithm, ROUNDS, record=(record,))
    np.testing.assert_allclose(run.metrics["record"], path, rtol=0, atol=1e-12)
    np.testing.assert_allclose(run.params, x, rtol=0, atol=1e-12)


def test_momentum_is_that_of_a_loop(problem):
    x, m = np.zeros(2), np.zeros(2)
    for _ in range(ROUNDS):
        m = 0.7 * m + local_models(problem, x).mean(axis=0) - x
        x = x + 0.5 * m
    algorithm = tacita.FedAvgM(momentum=0.7, server_step=0.5, **LOCAL)
    run = tacita.simulate(problem, algorithm, ROUNDS, record=())
    np.testing.assert_allclose(run.params, x, rtol=0, atol=1e-12)


@pytest.mark.long
def test_without_momentum_and_with_plain_steps_it_is_fed_avg_to_the_bit():
    optax = pytest.importorskip("optax")
    problem = tacita.problem.synthetic.logistic(agents=4, features=3, samples=5)
    start = np.random.default_rng(0).normal(size=(4, 3))
    chosen = {"participation": 2, "start": start, "record": (), "seed": 5}
    same = {**LOCAL, "weights": "samples"}
    twins = [
        tacita.FedAvg(**same),
        tacita.FedAvgM(momentum=0.0, **same),
        tacita.FedOpt(server=optax.sgd(1.0), **same),
        tacita.FedOpt(**same),
    ]
    first, *others = (tacita.simulate(problem, a, 3, **chosen) for a in twins)
    for other in others:
        np.testing.assert_array_equal(other.params, first.params)
        np.testing.assert_array_equal(other.agents, first.agents)


@pytest.mark.few(1)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_an_optimiser_of_optax_steps_at_agents_and_coordinator(dtype):
    optax = pytest.importorskip("optax")
    problem = tacita.problem.synthetic.linear(
        agents=3, features=2, samples=4, seed=3, dtype=dtype
    )
    client, server = optax.adam(0.05), optax.sgd(0.5, momentum=0.9)
    algorithm = tacita.FedOpt(client=client, server=server, local_steps=2)
    run = tacita.simulate(problem, algorithm, 3, record=())
    assert run.params.dtype == dtype
    rows, labels, _ = problem.stacked()
    x, trace = np.zeros(2), np.zeros(2)
    for _ in range(3):
        made = []
        for features, targets in zip(rows, labels, strict=True):
            w, m, v = x.copy(), np.zeros(2), np.zeros(2)
            for t in (1, 2):  # Adam, begun anew in every round
                g = 2 * features.T @ (features @ w - targets) / len(targets)
                m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
                size = np.sqrt(v / (1 - 0.999**t)) + 1e-8
                w = w - 0.05 * m / (1 - 0.9**t) / size
            made.append(w)
        trace = 0.9 * trace + x - np.mean(made, axis=0)
        x = x - 0.5 * trace
    atol = 1e-12 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(run.params, x, rtol=0, atol=atol)


def test_optimisers_that_cannot_be_used_are_refused(problem):
    optax = pytest.importorskip("optax")
    with pytest.raises(tacita.TacitaError, match="expected client an optimiser"):
        tacita.FedOpt(client="adam")
    with pytest.raises(tacita.TacitaError, match="leave step_size out, or client"):
        tacita.FedOpt(client=optax.adam(0.1), step_size=0.1)
    with pytest.raises(tacita.TacitaError, match="along a gradient alone") as error:
        tacita.simulate(problem, tacita.FedOpt(server=optax.lbfgs()), 1)
    assert "\n" not in str(error.value)
    with pytest.raises(tacita.TacitaError, match="a run file cannot carry"):
        table_of(tacita.FedOpt(client=optax.adam(0.1)))


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["FedAvgM", "FedAdam", "FedOpt"])
def test_letters_are_accounted_as_those_of_fed_avg(name):
    problem = tacita.problem.synthetic.logistic(
        agents=3, features=2, samples=20, bound=1.0
    )
    budget = {"epsilon": 2.0, "delta": 1e-5, "rounds": 4, "norm": 1.0}
    budget |= {"observer": "coordinator"}
    plain = tacita.private(problem, tacita.FedAvg(**LOCAL), **budget)
    safe = tacita.private(problem, getattr(tacita, name)(**LOCAL), **budget)
    assert safe.oracle.std == pytest.approx(float(plain.oracle.std))
    run = tacita.simulate(problem, safe, 4, record=())
    assert run.privacy is not None
    assert letters_of(safe).public_state
    # Others' noise in a mean: also where only that is seen of it afterwards.
    assert (letters_of(safe).mixed is None) == (name == "FedOpt")


def test_nobody_answering_moves_no_moment():
    problem = tacita.problem.synthetic.logistic(agents=2, features=2, samples=5)
    algorithm = tacita.FedAdam(**LOCAL)
    rare = {"participation": 1e-9, "record": ()}
    run = tacita.simulate(problem, algorithm, 3, **rare)
    np.testing.assert_array_equal(run.params, problem.start)
    kept = algorithm.init_coordinator(jnp.ones(2))
    np.testing.assert_allclose(kept.v, 1e-6)
