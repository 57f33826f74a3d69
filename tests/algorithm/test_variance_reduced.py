"""SVRG and SAGA against loops in NumPy, and what they cannot work with."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tacita
from tacita.algorithm.solvers import SAGA, SVRG, Mixed
from tacita.privacy.blind import looks_at_rows
from tacita.problem.oracles import AgentOracle

RHO, STEP, L2 = 0.7, 0.05, 0.1


@pytest.fixture(autouse=True)
def _double():
    with jax.enable_x64(True):
        yield


def made(counts=(12, 9)) -> tacita.Problem:
    """Agents with unequal numbers of rows, so that the shorter one is padded."""
    rng = np.random.default_rng(0)
    total = sum(counts)
    labels = np.where(rng.random(total) < 0.5, -1.0, 1.0)
    return tacita.from_arrays(
        rng.normal(size=(total, 3)),
        labels,
        np.repeat(np.arange(len(counts)), counts),
        model="logistic",
        l2=L2,
    ).with_weights(np.array([0.5, 1.5]))


def agent(problem: tacita.Problem, number: int, oracle) -> AgentOracle:
    people = problem.population
    rows = jax.tree.map(lambda leaf: jnp.asarray(leaf)[number], people.rows)
    return AgentOracle(oracle, people.local(rows))


def row_gradients(problem: tacita.Problem, number: int):
    """The gradient of every row's loss, in NumPy."""
    people = problem.population
    count = int(problem.counts[number])
    x = np.asarray(people.rows.x)[number]
    x = (x.T if people.by_feature else x)[:count]
    y = np.asarray(people.rows.y)[number][:count]

    def at(w):
        return (-y / (1 + np.exp(y * (x @ w))))[:, None] * x

    return at


def test_a_public_bound_is_the_steepest_row():
    """Theory takes smoothness from it then, and looks at no row."""
    problem = made()
    bounded = tacita.trees.replace(problem, bound=9.0)
    algorithm = tacita.FedPLT(rho=RHO, solver=SVRG(), oracle=tacita.Minibatch(size=2))
    assert looks_at_rows(algorithm, problem)
    assert not looks_at_rows(algorithm, bounded)
    # 1/4 of the square of the bound, weighed, and l2.
    steepest = np.array([0.5, 1.5]) * 9.0**2 / 4 + L2
    expected = 1 / (3 * (steepest + 1 / RHO))
    found = algorithm.resolve(bounded).solver.step_size
    np.testing.assert_allclose(found, expected)


def starts():
    rng = np.random.default_rng(1)
    return rng.normal(size=3), rng.normal(size=3)


SAMPLINGS = "without_replacement", "with_replacement", "permutation"


@pytest.mark.few(2)
@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("solver", [SVRG, SAGA])
def test_steps_are_those_of_the_papers(solver, sampling):
    """A batch of 10 is more than the second agent's 9 rows: one place is void."""
    problem = made()
    number, weight = 1, 1.5
    batches = tacita.Minibatch(size=10 if solver is SAGA else 4, sampling=sampling)
    oracle = agent(problem, number, batches)
    w, v = starts()
    key = jax.random.key(3)
    got = solver(step_size=STEP, local_steps=6).solve(
        key, oracle, jnp.asarray(w), jnp.asarray(v), RHO
    )
    rows = row_gradients(problem, number)
    table, x = rows(w), w
    for drawn in np.asarray(oracle.draws(key, 6)):
        batch = drawn[drawn >= 0]
        known = rows(w) if solver is SVRG else table
        g = rows(x)[batch].mean(0) - known[batch].mean(0) + known.mean(0)
        table = table.copy()
        table[batch] = rows(x)[batch]
        x = x - STEP * (weight * g + L2 * x + (x - v) / RHO)
    np.testing.assert_allclose(got, x, rtol=0, atol=1e-14)


def test_the_default_step_is_a_third_of_the_steepest_row_s():
    problem = made()
    rows = np.asarray(problem.population.rows.x)
    longest = (rows**2).sum(axis=1 if problem.population.by_feature else 2).max(axis=1)
    ready = SVRG().resolve(problem, RHO)
    steepest = 0.25 * longest * np.array([0.5, 1.5]) + L2
    np.testing.assert_allclose(ready.step_size, 1 / (3 * (steepest + 1 / RHO)))


BOTH = Mixed(solvers=(SVRG(local_steps=40), SAGA()), group=[0, 1])


@pytest.mark.parametrize("solver", [SAGA(), BOTH])
def test_five_gcs_is_exact_with_them_too(solver):
    """Its duals were gradients of batches, and gamma longer than these steps bear."""
    problem = made()
    algorithm = tacita.FiveGCS(solver=solver, oracle=tacita.Minibatch(size=2))
    run = tacita.simulate(problem, algorithm, 400, record=())
    np.testing.assert_allclose(run.params, problem.solve(), rtol=0, atol=1e-8)


REFUSED = [
    (SVRG(), tacita.Full(), "compares gradients of the same rows"),
    (
        SAGA(),
        tacita.Clipped(oracle=tacita.Minibatch(size=4), norm=1.0),
        "got oracle=Clipped",
    ),
    (SAGA(), tacita.Minibatch(size=4, sampling="poisson"), "or SVRG"),
]


@pytest.mark.parametrize(("solver", "oracle", "words"), REFUSED)
def test_what_they_cannot_work_with_is_refused(solver, oracle, words):
    algorithm = tacita.FedPLT(rho=1, solver=solver, oracle=oracle)
    with pytest.raises(tacita.TacitaError, match=words):
        tacita.simulate(made(), algorithm, 2)


def test_no_account_takes_them_for_private():
    with pytest.raises(tacita.TacitaError, match="SVRG compares gradients"):
        tacita.private(
            made(),
            tacita.FedPLT(rho=1, solver=SVRG(), oracle=tacita.Minibatch(size=4)),
            epsilon=1.0,
            delta=1e-5,
            rounds=5,
            norm=1.0,
            observer="coordinator",
        )
    assert "looks at all rows" in SVRG().gradients()
