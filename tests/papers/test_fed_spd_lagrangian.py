"""The augmented Lagrangian of FedSPD's runs, against NumPy written from the paper."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import tacita
from papers.fed_spd.common.lagrangian import curves
from tacita.problem.prox import L1

RHO, GAMMA, STEPS, WEIGHT, AGENTS = 0.7, 3.0, 3, 0.05, 4


@pytest.fixture(scope="module")
def problem() -> tacita.Problem:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(24, 3))
    y = np.where(rng.normal(size=24) + x[:, 0] > 0, 1.0, -1.0)
    agent = np.arange(24) % AGENTS
    return tacita.from_arrays(
        x, y, agent, model="logistic", h=L1(weight=WEIGHT * AGENTS)
    )


def rows_of(problem: tacita.Problem, i: int) -> tuple[np.ndarray, np.ndarray]:
    local = problem.population.rows
    x = np.asarray(local.x[i])
    return (x.T if problem.population.by_feature else x), np.asarray(local.y[i])


def by_hand(problem: tacita.Problem, rounds: int) -> tuple[list[float], list[float]]:
    """Algorithm 1 with full gradients, everybody active; (4) and (7) of every round."""
    data = [rows_of(problem, i) for i in range(AGENTS)]

    def loss(i, w):
        x, y = data[i]
        return np.mean(np.log1p(np.exp(-y * (x @ w))))

    def grad(i, w):
        x, y = data[i]
        return x.T @ (-y / (1 + np.exp(y * (x @ w)))) / len(y)

    u, lam, letters, means = (np.zeros((AGENTS, 3)) for _ in range(4))
    exact, linear = [], []
    for t in range(1, rounds + 1):
        gamma, x0, old = GAMMA * np.sqrt(t), letters.mean(0), means.copy()
        for i in range(AGENTS):
            total = np.zeros(3)
            for _ in range(STEPS):
                v = gamma * u[i] + RHO * x0 + lam[i] - grad(i, u[i])
                v /= gamma + RHO
                u[i] = np.sign(v) * np.maximum(np.abs(v) - WEIGHT / (gamma + RHO), 0)
                total += u[i]
            means[i] = total / STEPS
            letters[i] = 2 * means[i] - x0 - lam[i] / RHO
            lam[i] -= RHO * (means[i] - x0)
        known = lines = 0.0
        for i in range(AGENTS):
            x, step = means[i], means[i] - old[i]
            rest = WEIGHT * np.abs(x).sum() + lam[i] @ (x0 - x)
            rest += RHO / 2 * np.sum((x - x0) ** 2)
            known += loss(i, x) + rest
            lines += loss(i, old[i]) + grad(i, old[i]) @ step + rest
            lines += gamma / 2 * step @ step
        exact.append(known)
        linear.append(lines)
    return exact, linear


def fed_spd(**changes) -> tacita.FedSPD:
    growing = tacita.schedule.Polynomial(start=GAMMA, power=-0.5)
    given: dict[str, Any] = {"rho": RHO, "gamma": growing}
    given |= {"local_steps": STEPS, "state": "hidden"}
    return tacita.FedSPD(**given | changes)


def test_both_lagrangians_are_those_of_the_paper(problem):
    found = curves(problem, fed_spd(), 6, 2, lambda w: jnp.sum(w))
    exact, linear = by_hand(problem, 6)
    np.testing.assert_allclose(found.lagrangian[0], exact[1::2], rtol=1e-12)
    np.testing.assert_allclose(found.linearised[0], linear[1::2], rtol=1e-12)
    assert found.rounds.tolist() == [2, 4, 6]


def test_silent_clients_and_seeds_are_those_of_simulate(problem):
    """With noise and batches, two of four clients active: the same shared models."""
    made = fed_spd(
        noise_std=0.1,
        paper_noise=True,
        oracle=tacita.Minibatch(size=2, sampling="permutation"),
    )

    def sum_of(shared, agents=None):
        return jnp.sum(shared)

    found = curves(problem, made, 6, 3, sum_of, participation=2, seeds=2, seed=5)
    given = {"participation": 2, "seed": 5, "seeds": 2, "record_every": 3}
    run = tacita.simulate(problem, made, 6, record=(sum_of, "loss"), **given)
    np.testing.assert_allclose(found.accuracy, run.metrics["sum_of"], rtol=1e-12)
    np.testing.assert_allclose(found.objective, run.metrics["loss"], rtol=1e-12)
    assert np.ptp(found.lagrangian[:, -1]) > 0


def test_records_that_do_not_fit_are_refused(problem):
    with pytest.raises(ValueError, match="a divisor of rounds=6"):
        curves(problem, fed_spd(), 6, 4, jnp.sum)
