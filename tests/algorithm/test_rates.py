"""Measured convergence against the theorems in `tacita.theory.fed_plt`."""

from __future__ import annotations

import functools

import numpy as np
import pytest

import tacita
from tacita.algorithm.solvers import Accelerated, ExactProx, GradientDescent
from tacita.theory import fed_plt as theory

AGENTS, DIM = 6, 4


@functools.cache
def quadratic() -> tacita.Problem:
    """Every agent has curvature 0.5 and 2 in directions of its own, and in between."""
    rng = np.random.default_rng(0)
    curvature = np.array([0.5, 0.8, 1.3, 2.0])
    # The loss (x.w - y)^2, averaged over DIM rows, has Hessian 2 X^T X / DIM.
    turns = [np.linalg.qr(rng.normal(size=(DIM, DIM)))[0] for _ in range(AGENTS)]
    rows = [np.sqrt(curvature * DIM / 2)[:, None] * turn for turn in turns]
    return tacita.from_arrays(
        np.concatenate(rows),
        rng.normal(size=AGENTS * DIM),
        np.repeat(np.arange(AGENTS), DIM),
        model="linear",
    )


@functools.cache
def logistic() -> tacita.Problem:
    return tacita.problem.synthetic.logistic(
        agents=AGENTS, features=DIM, samples=20, seed=2, heterogeneous=True
    )


def moduli(made) -> tuple[float, float]:
    return made.moduli.smallest, made.moduli.largest


def errors(made, algorithm, rounds, **options) -> np.ndarray:
    """|x_k - x*| over all agents, round by round."""
    optimum = np.tile(made.solve(), (AGENTS, 1))
    run = tacita.simulate(
        made,
        algorithm,
        rounds,
        record=("error",),
        reference=optimum,
        start=np.ones(DIM),
        **options,
    )
    return run.metrics["error"]


def fitted(distances: np.ndarray, least: float = 1e-11) -> float:
    """exp of the slope of log |x_k - x*|, past the start and before rounding."""
    use = (distances < 1e-2 * distances[0]) & (distances > least)
    assert use.sum() >= 10
    rounds = np.arange(len(distances))
    return float(np.exp(np.polyfit(rounds[use], np.log(distances[use]), 1)[0]))


def algorithm_of(made, rho, steps, solver) -> tacita.FedPLT:
    low, high = moduli(made)
    if solver == "accelerated":
        local = Accelerated(local_steps=steps, strong_convexity=low, smoothness=high)
    else:
        size = float(theory.best_step_size(low, high, rho))
        local = GradientDescent(step_size=size, local_steps=steps)
    return tacita.FedPLT(rho=rho, solver=local)


SETTINGS = [
    (1.0, 5, "gradient"),
    (1.0, 2, "gradient"),
    (0.3, 5, "gradient"),
    (0.1, 3, "gradient"),
    (2.0, 8, "gradient"),
    (4.0, 20, "gradient"),
    (1.0, 8, "accelerated"),
]


@pytest.mark.few(8)
@pytest.mark.parametrize("made", [quadratic, logistic], ids=["quadratic", "logistic"])
@pytest.mark.parametrize(("rho", "steps", "solver"), SETTINGS)
def test_rate_is_within_the_prediction(made, rho, steps, solver):
    made = made()
    setting = *moduli(made), rho, steps
    predicted = theory.rate(theory.transition_matrix(*setting, solver=solver))
    assert predicted < 1
    measured = fitted(errors(made, algorithm_of(made, rho, steps, solver), 250))
    assert measured <= predicted
    assert measured <= theory.quadratic_rate(*setting, solver=solver)


@pytest.mark.parametrize(
    ("rho", "steps"), [(1.0, 1), (1.0, 5), (0.3, 5), (0.1, 3), (2.0, 8), (4.0, 20)]
)
def test_the_sharper_rate_is_nearly_attained(rho, steps):
    """A solver that was better than it should be would fail here."""
    made = quadratic()
    predicted = theory.quadratic_rate(*moduli(made), rho, steps)
    measured = fitted(errors(made, algorithm_of(made, rho, steps, "gradient"), 250))
    assert 0.9 * predicted <= measured <= predicted


def test_exact_answers_have_the_rate_of_peaceman_rachford():
    made = quadratic()
    for rho in (0.2, 1.0, 3.0):
        predicted = theory.prs_contraction(*moduli(made), rho)
        algorithm = tacita.FedPLT(rho=rho, solver=ExactProx())
        measured = fitted(errors(made, algorithm, 150))
        assert 0.85 * predicted <= measured <= predicted


@pytest.mark.few(3)
@pytest.mark.parametrize("made", [quadratic, logistic], ids=["quadratic", "logistic"])
@pytest.mark.parametrize("participation", [3, 0.3])
def test_mean_square_rate_with_silent_agents(made, participation):
    made = made()
    algorithm = algorithm_of(made, 1.0, 5, "gradient")
    each = errors(made, algorithm, 100, participation=participation, seeds=100)
    chance = participation / AGENTS if participation > 1 else participation
    full = theory.rate(theory.transition_matrix(*moduli(made), 1.0, 5))
    predicted = theory.mean_square_rate(full, chance)
    measured = fitted(np.sqrt(np.mean(each**2, axis=0)), least=1e-8)
    # Nobody can be faster than agents who reach their answer whenever they are active.
    assert np.sqrt(1 - chance) * 0.8 < measured <= predicted


def test_the_plan_of_theory_is_what_a_user_gets():
    made = logistic()
    low, high = moduli(made)
    plan = theory.plan(low, high, t_grad=1, t_comm=10)
    ready = tacita.FedPLT().resolve(made)
    assert ready.rho == plan.rho
    assert ready.solver.local_steps == plan.local_steps
    own = theory.best_step_size(
        made.moduli.strong_convexity, made.moduli.smoothness, plan.rho
    )
    np.testing.assert_allclose(ready.solver.step_size, own, rtol=1e-14)
    measured = fitted(errors(made, tacita.FedPLT(), 250))
    assert measured <= plan.rate
