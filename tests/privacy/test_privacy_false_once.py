"""Epsilons that were false once: each compared with what the observer really sees."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tacita
from tacita.privacy import Clipped, gaussian_epsilon
from tacita.privacy.accounting.mechanisms import randomised_response_guarantee
from tacita.problem import synthetic

DELTA = 1e-5


def noisy(std, sampling: str = "", norm: float = 1.0) -> tacita.Noisy:
    inner = tacita.Minibatch(size=4, sampling=sampling) if sampling else tacita.Full()
    return tacita.Noisy(std=std, oracle=Clipped(norm=norm, oracle=inner))


@pytest.mark.few(1)
@pytest.mark.parametrize("observer, known", [("final_model", 0), ("neighbour", 1)])
@pytest.mark.parametrize("weights", ["uniform", "samples"])
def test_steps_of_their_own_weigh_the_noise_of_others(observer, known, weights):
    """The mean letter moves by a_i eta_i g_i and carries the noise a_j eta_j n_j."""
    problem = synthetic.logistic(agents=5, features=3, samples=20)
    steps, std, rounds = np.array([1.0, 0.1, 0.1, 0.2, 0.1]), 0.3, 4
    algorithm = tacita.FedAvg(step_size=steps, oracle=noisy(std), weights=weights)
    run = tacita.simulate(problem, algorithm, rounds)
    exact = []
    for i in range(5):
        others = np.sort(np.delete(steps, i))[: 4 - known]
        noise = std * np.sqrt(steps[i] ** 2 + np.sum(others**2)) / steps[i]
        exact.append(gaussian_epsilon(noise / (2 / 20) / np.sqrt(rounds), DELTA))
    row = run.privacy.row(observer)
    assert row.epsilon == pytest.approx(max(exact), rel=1e-9)
    assert max(exact) > 1.5 * min(exact)


ON_RING = tacita.problem.graph.ring(4)


@pytest.mark.few(4)
@pytest.mark.parametrize(
    "algorithm",
    [
        tacita.DPFedAvg(step_size=0.1, local_steps=3, noise_std=1.0),
        tacita.FedSPD(rho=0.7, gamma=2.0, local_steps=3, noise_std=1.0),
        tacita.DPNorm(step_size=0.1, local_steps=3, noise_std=1.0),
    ],
    ids=lambda a: type(a).__name__,
)
@pytest.mark.parametrize("unit", ["record", "client"])
def test_batches_of_any_size_bound_no_local_steps(algorithm, unit):
    """A Poisson batch may hold all rows: then a step is m/b times as long."""
    problem = synthetic.logistic(
        agents=4, features=3, samples=20, l2=0.1, graph=ON_RING
    )
    batches = tacita.Minibatch(size=4, sampling="poisson")
    made = tacita.trees.replace(algorithm, oracle=Clipped(norm=1.0, oracle=batches))
    run = tacita.simulate(problem, made, 3, record=())
    row = run.privacy.row("neighbour", unit)
    assert row.epsilon is None
    assert "Poisson batches have no largest size" in row.theorem


def test_budgets_per_client_look_at_each_clients_curvature():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    x[40:] *= 4  # steeper
    problem = tacita.from_arrays(x, np.sign(x[:, 0]), np.repeat([0, 1, 2], 20), l2=0.5)
    algorithm = tacita.FedPLT(
        rho=1.0,
        solver=tacita.solvers.GradientDescent(step_size=0.4, local_steps=3),
        oracle=noisy(2.0),
    )
    ready = algorithm.resolve(problem)

    def exact(agent: int, rounds: int) -> float:
        scope = tacita.privacy.Scope("coordinator")
        asked = tacita.privacy.Question(scope=scope, agent=agent, rounds=rounds)
        return tacita.privacy.guarantee(ready, problem, asked).epsilon(DELTA)

    budget = {"epsilon": 3.0, "delta": DELTA, "observer": "coordinator"}
    silent = tacita.privacy.within_budgets(problem, algorithm, **budget)
    for agent, turns in enumerate(silent.turns.tolist()):
        assert exact(agent, int(turns)) <= 3.0 < exact(agent, int(turns) + 1)
    # With as many turns for each, the steepest spends most, and the report says so.
    alike = tacita.privacy.Budgeted(algorithm=ready, turns=5.0)
    row = tacita.simulate(problem, alike, 8).privacy.row("coordinator")
    spent = [exact(agent, 5) for agent in range(3)]
    assert row.epsilon == pytest.approx(max(spent)) and spent[2] > 1.05 * spent[0]


@pytest.mark.long
def test_an_empty_row_has_a_gradient_in_a_network():
    """Its biases learn from it: emptying a record moves the mean by up to 2 C/m."""
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(6, 3)), np.array([1, 1, 2, 0, 1, 2])
    model = tacita.problem.mlp(3, (4,), 3)
    norm, oracle = 0.1, Clipped(norm=0.1)

    def gradient(rows, labels):
        problem = tacita.from_arrays(rows, labels, np.zeros(6, int), model=model)
        with jax.enable_x64(True):
            local = problem.population.local(
                jax.tree.map(lambda leaf: leaf[0], problem.population.rows)
            )
            return np.asarray(oracle.grad(local, None, jnp.asarray(problem.start)))

    x_empty, y_empty = x.copy(), y.copy()
    x_empty[0] = y_empty[0] = 0
    moved = np.linalg.norm(gradient(x, y) - gradient(x_empty, y_empty))
    problem = tacita.from_arrays(x, y, np.zeros(6, int), model=model)
    told = oracle.sensitivity("add_remove", 6, model=problem.model)
    assert norm / 6 < moved <= told == 2 * norm / 6
    asked = {"rounds": 1, "participation": 1.0}
    algorithm = tacita.ServerGD(step_size=0.1, oracle=noisy(1.0, "poisson", norm))
    forecast = tacita.privacy.forecast(problem, algorithm, **asked)
    assert forecast.row("coordinator").relation == "add_remove"
    assert "0.05 in l2 norm" in str(forecast)  # 2 C/b, b = 4


def test_randomised_response_with_a_large_epsilon():
    for epsilon in (700.0, 710.0, 5000.0):
        told = randomised_response_guarantee(
            observer="coordinator", epsilon=epsilon, classes=3
        )
        assert told.epsilon(1e-9) == pytest.approx(epsilon, rel=0.05)


@pytest.mark.few(2)
@pytest.mark.parametrize("label", [0, 1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_whose_square_is_not_finite_breaks_no_letter(label, dtype):
    """Whether a letter is a number would tell of the label."""
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(9, 3)), np.arange(9) % 3
    x[0], y[0] = (1e20 if dtype == np.float32 else 1e160), label
    problem = tacita.from_arrays(
        x, y, np.zeros(9, int), model="softmax", dtype=dtype, l2=0.1
    )
    clipped = tacita.ServerGD(step_size=0.5, oracle=Clipped(norm=1.0))
    run = tacita.simulate(problem, clipped, 3, seed=0, record=())
    assert np.all(np.isfinite(run.params))
    assert np.linalg.norm(run.params) < 2


def test_when_a_private_run_ends_is_no_release():
    problem = synthetic.logistic(agents=3, features=3, samples=20)
    private = tacita.FedAvg(step_size=0.1, oracle=noisy(0.5))
    with pytest.raises(tacita.TacitaError, match="stop reads metrics of private rows"):
        tacita.simulate(problem, private, 20, stop={"loss": 1.0})
    assert "metrics of the run" in str(tacita.simulate(problem, private, 2).privacy)
