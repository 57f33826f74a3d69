"""Step sizes that differ between rounds: by hand, over all algorithms, refused."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import tacita
from tacita.algorithm import ALGORITHMS, solvers
from tacita.problem import graph
from tacita.schedule import (
    SCHEDULES,
    ByRound,
    Geometric,
    Listed,
    Piecewise,
    Polynomial,
    in_round,
    largest,
    smallest,
)
from tacita.trees import rules

K = np.arange(1, 8)
BY_HAND = [
    (Polynomial(start=0.3, power=0.75, decay=0.5), 0.3 / (1 + 0.5 * (K - 1)) ** 0.75),
    (Polynomial(start=0.3, power=-0.5), 0.3 * np.sqrt(K)),
    (
        Geometric(start=0.3, factor=0.5, least=0.02),
        np.maximum(0.3 * 0.5 ** (K - 1), 0.02),
    ),
    (Listed(values=[0.3, 0.2, 0.25]), np.array([0.3, 0.2, *[0.25] * 5])),
    (
        Piecewise(values=[0.3, 0.1, 0.2], until=[2, 5]),
        np.repeat([0.3, 0.1, 0.2], [2, 3, 2]),
    ),
]


@pytest.mark.parametrize(("schedule", "values"), BY_HAND)
def test_what_it_is_in_every_round(schedule: ByRound, values: np.ndarray):
    np.testing.assert_allclose(schedule.over(7), values, rtol=1e-14)
    assert smallest(schedule) <= values.min() <= values.max() <= largest(schedule)
    assert float(np.asarray(schedule.at(0))) == pytest.approx(values[0])
    late = schedule.over(4000)
    assert smallest(schedule) <= late.min() and late.max() <= largest(schedule)


@pytest.mark.parametrize("schedule", [one for one, _ in BY_HAND])
def test_single_precision_is_kept(schedule: ByRound):
    rows = np.arange(8.0).reshape(4, 2) / 8
    told = {"model": "linear", "dtype": "float32"}
    problem = tacita.from_arrays(rows, rows[:, 0], [0, 0, 1, 1], **told)
    algorithm = tacita.FedAvg(step_size=schedule, local_steps=2)
    run = tacita.simulate(problem, algorithm, 3, record=())
    assert run.agents.dtype == np.float32
    constant = tacita.FedAvg(step_size=float(schedule.over(1)[0]), local_steps=2)
    first = tacita.simulate(problem, constant, 1, record=()).params
    one = tacita.simulate(problem, algorithm, 1, record=()).params
    np.testing.assert_allclose(one, first, rtol=1e-6)


def test_every_schedule_is_tried():
    assert {type(one) for one, _ in BY_HAND} == set(SCHEDULES)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Polynomial(start=-1.0), "expected start > 0"),
        (lambda: Polynomial(start=0.1, decay=-1.0), "expected decay >= 0"),
        (lambda: Polynomial(start=0.1, power=float("nan")), "expected power"),
        (lambda: Geometric(start=0.1, factor=1.5), "expected factor"),
        (lambda: Listed(values=[]), "at least one number"),
        (lambda: Listed(values=0.1), "a list of numbers"),
        (lambda: Listed(values=["a"]), "a list of numbers"),
        (lambda: Listed(values=[[0.1, 0.2], [0.3, 0.4]]), "a list of numbers"),
        (lambda: Listed(values=[[0.1], [0.2, 0.3]]), "a list of numbers"),
        (lambda: Polynomial(start=10**400), "expected start > 0"),
        (lambda: Listed(values=[0.1, 0.0]), "expected values > 0"),
        (lambda: Piecewise(values=[1, 2, 3], until=[5, 4]), "expected until rising"),
        (lambda: Piecewise(values=[1, 2], until=[5, 6]), "expected until rising"),
    ],
)
def test_bad_schedules_are_refused(make: Any, words: str):
    with pytest.raises(tacita.TacitaError, match=words) as error:
        make()
    assert "\n" not in str(error.value)


def test_the_conditions_of_78():
    """Exercise 4.1: sums diverge up to power 1, those of squares converge from 1/2."""
    for power, goes_on, settles in (
        (0.4, 1, 0),
        (0.75, 1, 1),
        (1.0, 1, 1),
        (1.5, 0, 1),
    ):
        steps = Polynomial(start=1.0, power=power).over(64 * 32)
        late = [steps[64 * k : 64 * 2 * k] for k in (1, 2, 4, 8, 16)]
        # Of k^-p the sum over [n, 2n] grows as n^(1-p): it shrinks just where p > 1.
        sums = [float(np.sum(part)) for part in late]
        squares = [float(np.sum(part**2)) for part in late]
        assert (sums[-1] > 0.97 * sums[0]) == goes_on
        assert (squares[-1] < 0.9 * squares[0]) == settles


STEPS = ("step_size", "server_step")
FIELDS = [
    (cls, name)
    for cls in [*ALGORITHMS, *(vars(solvers)[name] for name in solvers.__all__)]
    if dataclasses.is_dataclass(cls)
    for name in STEPS
    if name in rules(cls)
]
CONSTANT = {"ProxSkip", "LED", "GraphLED", "DPNorm"}


@pytest.mark.parametrize(("cls", "name"), FIELDS)
def test_every_step_size_takes_a_schedule_or_says_why_not(cls: Any, name: str):
    schedule, needed = Polynomial(start=0.1), {}
    for field in dataclasses.fields(cls):
        if field.default is dataclasses.MISSING:
            needed[field.name] = 0.5
    if cls.__name__ in CONSTANT:
        with pytest.raises(tacita.TacitaError, match="one number for all rounds") as no:
            cls(**needed, **{name: schedule})
        assert name in str(no.value) and str(no.value).count(": ") == 1
        return
    assert rules(cls)[name].scheduled
    made = cls(**needed, **{name: schedule})
    assert float(getattr(in_round(made, 2), name)) == pytest.approx(0.05)


def test_theory_sets_the_start():
    problem = tacita.problem.synthetic.logistic(
        agents=3, features=2, samples=10, l2=0.1
    )
    for algorithm in (tacita.FedAvg, tacita.SCAFFOLD, tacita.DPSGD):
        usual = algorithm().resolve(problem).step_size
        made = algorithm(step_size=Polynomial(power=0.5)).resolve(problem).step_size
        assert made.start == usual and made.power == 0.5
    own = solvers.GradientDescent(step_size=Geometric(factor=0.9))
    ready = tacita.FedPLT(solver=own).resolve(problem)
    usual = tacita.FedPLT(solver=solvers.GradientDescent()).resolve(problem)
    np.testing.assert_array_equal(ready.solver.step_size.start, usual.solver.step_size)


def test_numbers_that_must_be_common_stay_so():
    problem = tacita.problem.synthetic.logistic(agents=3, features=2, samples=10)
    own = Polynomial(start=[0.1, 0.2, 0.3])
    with pytest.raises(tacita.TacitaError, match="common to all agents"):
        tacita.simulate(problem, tacita.ServerGD(step_size=own), 2)
    short = Polynomial(start=[0.1, 0.2])
    with pytest.raises(tacita.TacitaError, match="one per agent"):
        tacita.simulate(problem, tacita.FedAvg(step_size=short), 2)


def small(nodes: Any = None, agents: int = 3) -> tuple[tacita.Problem, Any]:
    """Linear regression, and every agent's gradient in NumPy."""
    draw = np.random.default_rng(4)
    x, y = draw.normal(size=(agents, 8, 2)), draw.normal(size=(agents, 8))
    problem = tacita.from_arrays(
        x.reshape(-1, 2),
        y.ravel(),
        np.repeat(np.arange(agents), 8),
        model="linear",
        graph=nodes,
    )

    def gradient(i: int, w: np.ndarray) -> np.ndarray:
        return 2 * x[i].T @ (x[i] @ w - y[i]) / 8

    return problem, gradient


def test_local_steps_by_hand():
    """FedAvg and SCAFFOLD, whose control variates are divided by K eta_k."""
    problem, gradient = small()
    eta = [0.1, 0.05, 0.02]
    schedule = Listed(values=eta)
    run = tacita.simulate(problem, tacita.FedAvg(step_size=schedule, local_steps=2), 3)
    w = np.zeros(2)
    for step in eta:
        ends = []
        for i in range(3):
            v = w
            for _ in range(2):
                v = v - step * gradient(i, v)
            ends.append(v)
        w = np.mean(ends, axis=0)
    np.testing.assert_allclose(run.params, w, atol=1e-13)
    algorithm = tacita.SCAFFOLD(step_size=schedule, local_steps=2)
    run = tacita.simulate(problem, algorithm, 3)
    x, c, own = np.zeros(2), np.zeros(2), np.zeros((3, 2))
    for step in eta:
        ends, before = [], own.copy()
        for i in range(3):
            v = x
            for _ in range(2):
                v = v - step * (gradient(i, v) - before[i] + c)
            ends.append(v)
            own[i] = before[i] - c + (x - v) / (2 * step)
        x, c = np.mean(ends, axis=0), c + np.mean(own - before, axis=0)
    np.testing.assert_allclose(run.params, x, atol=1e-13)


def test_the_decreasing_step_of_table_2_by_hand():
    """DP-ADMM of the DP-Norm paper: 1/mu = sqrt(k r)/mu_1 in step k of round r."""
    problem, gradient = small(graph.ring(3))
    mu, rho, steps = 0.2, 0.3, 3
    algorithm = tacita.GraphADMM(
        rho=rho,
        step_size=Polynomial(start=mu, power=0.5),
        local_power=0.5,
        local_steps=steps,
    )
    run = tacita.simulate(problem, algorithm, 4)
    w, lam = np.zeros((3, 2)), np.zeros((3, 2))
    for r in range(1, 5):
        bar = w.copy()
        others = bar.sum(axis=0) - bar
        lam = lam + rho * (2 * bar - others)
        for i in range(3):
            v = bar[i]
            for k in range(1, steps + 1):
                e = np.sqrt(k * r) / mu
                pull = rho * (2 * bar[i] + others[i])
                v = (e * v - gradient(i, v) - lam[i] + pull) / (4 * rho + e)
            w[i] = v
    np.testing.assert_allclose(run.agents, w, atol=1e-13)


def alike(nodes: Any) -> tacita.Problem:
    """Four agents with the same rows: one optimum, whatever the step size."""
    draw = np.random.default_rng(5)
    x, y = draw.normal(size=(12, 2)), draw.normal(size=12)
    return tacita.from_arrays(
        np.tile(x, (4, 1)),
        np.tile(y, 4),
        np.repeat(np.arange(4), 12),
        model="linear",
        graph=nodes,
    )


NOISY = tacita.Noisy(std=1.0)
DESCENDS: list[Any] = [
    lambda s: tacita.ServerGD(step_size=s, oracle=NOISY),
    lambda s: tacita.GossipSGD(step_size=s, oracle=NOISY),
    lambda s: tacita.FedAvg(step_size=s, local_steps=2, oracle=NOISY),
    lambda s: tacita.SCAFFOLD(step_size=s, local_steps=2, oracle=NOISY),
    lambda s: tacita.FedSGD(alpha=1.0, step_size=s, oracle=NOISY),
    lambda s: tacita.DPSGD(step_size=s, momentum=0.5, oracle=NOISY),
    lambda s: tacita.FedLin(step_size=s, local_steps=2, oracle=NOISY),
    lambda s: tacita.GradientTracking(step_size=s, oracle=NOISY),
    lambda s: tacita.GraphADMM(rho=0.3, step_size=s, local_steps=2, oracle=NOISY),
    lambda s: tacita.FedProx(eta=1.0, step_size=s, local_steps=2, oracle=NOISY),
    lambda s: tacita.FedAvgM(step_size=s, momentum=0.5, oracle=NOISY),
    lambda s: tacita.FedPLT(
        rho=1.0,
        solver=solvers.GradientDescent(step_size=s, local_steps=2),
        oracle=NOISY,
    ),
    lambda s: tacita.DPADMM(rho=1.0, step_size=s, oracle=NOISY),
    lambda s: tacita.DPFedAvg(step_size=s, noise_std=1.0),
    lambda s: tacita.FedPD(eta=1.0, step_size=s, local_steps=2, oracle=NOISY),
]


@pytest.mark.long
@pytest.mark.few(4)
@pytest.mark.parametrize("make", DESCENDS, ids=lambda make: type(make(0.1)).__name__)
def test_steps_of_noisy_gradients_must_shrink(make: Any):
    """With a constant step the error stays, with (78) it goes on falling."""
    algorithm = make(0.1)
    on_graph = isinstance(algorithm, tacita.algorithm.base.GraphAlgorithm)
    problem = alike(graph.ring(4) if on_graph else None)
    # One program: power 0 is a constant step.
    both = [make(Polynomial(start=0.1, power=p, decay=0.05)) for p in (0.0, 1.0)]
    run = tacita.sweep(
        problem,
        both,
        3000,
        seed=1,
        seeds=40,
        record=("error",),
        record_every=50,
        reference=problem.solve(),
    )
    constant, shrinking = (run.metrics["error"] ** 2).mean(axis=1)
    # After 300 rounds the constant step has settled; later it gains nothing.
    late, early = slice(-10, None), slice(6, 16)
    assert constant[late].mean() > 0.4 * constant[early].mean()
    # Errors follow the step, which is 0.21 of what it was then; 40 seeds leave about a
    # sixth of doubt in each mean.
    assert shrinking[late].mean() < 0.4 * shrinking[early].mean()
    assert shrinking[late].mean() < 0.15 * constant[late].mean()
