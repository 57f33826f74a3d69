"""The theorem of secure sums: both halves in many digits, and what it prints."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

import tacita
from tacita.aggregation.secure.plan import effective_noise
from tacita.gaussian_table import BASE, REACH, table
from tacita.privacy import PoissonReplaced, forecast, gaussian_delta
from tacita.privacy.letters import Question, letters_of
from tacita.privacy.letters.secure_sum import rounding_of
from tacita.privacy.scope import Scope
from tacita.trees import replace

BUDGET = {"epsilon": 1.0, "delta": 1e-5, "observer": "coordinator", "rounds": 20}


def bell(x, s):
    """exp(-x^2 / (2 s^2))."""
    return mpmath.exp(-(mpmath.mpf(x) ** 2) / (2 * mpmath.mpf(s) ** 2))


def discrete(s, reach):
    """N_Z(0, s^2) on -reach..reach; what lies beyond is below the last digit."""
    values = {x: bell(x, s) for x in range(-reach, reach + 1)}
    total = mpmath.fsum(values.values())
    return {x: value / total for x, value in values.items()}


def factor(x):
    """log((1+e)/(1-e)) with e = 2x/(1-x)."""
    e = 2 * x / (1 - x)
    return mpmath.log((1 + e) / (1 - e))


@pytest.mark.parametrize(("a", "b", "k"), [(0.7, 0.6, 1), (3, 1.3, 2), (4, 2, 1)])
def test_scaled_sums_are_discrete_gaussians(a, b, k):
    """(a): everywhere within the factor, which is nearly reached."""
    with mpmath.workdps(60):
        reach = 60
        first, second = discrete(a, reach), discrete(b, reach // 2)
        whole = discrete(
            mpmath.sqrt(mpmath.mpf(a) ** 2 + k**2 * mpmath.mpf(b) ** 2), 90
        )
        worst = mpmath.mpf(0)
        for z in range(-12, 13):
            terms = (p * first.get(z - k * y, 0) for y, p in second.items())
            worst = max(worst, abs(mpmath.log(mpmath.fsum(terms) / whole[z])))
        tau = 1 / (1 / mpmath.mpf(b) ** 2 + k**2 / mpmath.mpf(a) ** 2)
        bound = factor(mpmath.exp(-2 * mpmath.pi**2 * tau))
        assert worst <= bound
        assert worst > bound / 5


@pytest.mark.parametrize("smoothing", [0.6, 1.0, 2.0])
def test_a_real_gaussian_then_a_near_integer_is_a_discrete_gaussian(smoothing):
    """(b): within the factor for the smoothing, 2.1e-34 for that of the theorem.

    The integral over the real Gaussian by the trapezoid rule, whose error for such
    functions is below all these digits.
    """
    with mpmath.workdps(60):
        narrow = mpmath.mpf("0.3")  # so that it shows
        s = mpmath.sqrt(narrow**2 + mpmath.mpf(smoothing) ** 2)
        grid = [mpmath.mpf(j) / 12 for j in range(-12 * 40, 12 * 40 + 1)]
        # The normaliser has period one: twelve values.
        theta = [
            mpmath.fsum(bell(x - mpmath.mpf(j) / 12, smoothing) for x in range(-40, 42))
            for j in range(12)
        ]
        weights = [bell(g, narrow) / theta[j % 12] for j, g in enumerate(grid)]
        weights = [w / 12 / (narrow * mpmath.sqrt(2 * mpmath.pi)) for w in weights]
        whole, worst = discrete(s, 120), mpmath.mpf(0)
        for x in (0, 1, 2, 5):
            terms = (
                w * bell(x - g, smoothing) for w, g in zip(weights, grid, strict=True)
            )
            worst = max(worst, abs(mpmath.log(mpmath.fsum(terms) / whole[x])))
        bound = factor(mpmath.exp(-2 * mpmath.pi**2 * mpmath.mpf(smoothing) ** 2))
        assert worst <= bound
        assert worst > bound / 100
        assert smoothing < 2 or bound < mpmath.mpf("2.1e-34")


def test_the_table_is_as_close_as_is_said():
    """Total variation of one draw: 3.3e-36, below 7168 2^-128."""
    with mpmath.workdps(60):
        law = discrete(BASE, REACH + 2000)
        edges = [mpmath.mpf(b) / 2**128 for b in (0, *table().exact, 2**128)]
        drawn = dict(enumerate(np.diff(np.array(edges, object)), -REACH))
        off = [abs(law[x] - drawn.get(x, 0)) for x in law]
        variation = mpmath.fsum(off) / 2
        assert mpmath.mpf("3.2e-36") < variation < mpmath.mpf("3.4e-36")


@pytest.mark.parametrize("variance", [4.5, 8.0, 32.0])
def test_the_correction_is_needed_and_suffices(variance):
    """Exact delta of integers one step apart, beside real Gaussians."""
    x = np.arange(-400, 401)
    law = np.exp(-(x**2) / (2 * variance))
    law /= law.sum()
    moved = np.roll(law, 1)
    excess, below = 1.0, 0.0
    for epsilon in np.linspace(0.05, 1.5, 30):
        exact = np.maximum(law - math.exp(epsilon) * moved, 0).sum()
        assert exact <= gaussian_delta(math.sqrt(variance - 4), epsilon)
        below = max(below, exact / gaussian_delta(math.sqrt(variance), epsilon))
    assert below > 1.02 > excess


def some(agents: int = 6, samples: int = 50, **more):
    return tacita.problem.synthetic.logistic(
        agents=agents, features=3, samples=samples, **more
    )


@pytest.mark.parametrize(
    ("observer", "honest"),
    [("coordinator", 5), ("colluders", 4), ("neighbour", 4), ("final_model", 5)],
)
@pytest.mark.parametrize(
    ("algorithm", "change"),
    [
        (tacita.ServerGD(step_size=0.5), 2 / 50),
        (tacita.DPSGD(step_size=0.5, momentum=0.5), 2 / 50),
        (tacita.FedAvg(step_size=0.5, local_steps=1), 0.5 * 2 / 50),
        (tacita.FedAvg(step_size=0.5, local_steps=1, weights="samples"), 0.5 * 2),
        (tacita.ClientDPFedAvg(clip=0.7), 2 * 0.7),
    ],
    ids=lambda value: type(value).__name__,
)
def test_mu_is_that_of_the_sum(algorithm, change, observer, honest):
    problem = some()
    rule = tacita.SecureSum(
        least=5, colluding=1, largest=50.0, step=2.0**-16, multiples=[1, 85, 400]
    )
    sums = tacita.aggregation.Summed(algorithm=clipped(algorithm), aggregation=rule)
    ready = sums.resolve(problem)
    question = Question(scope=Scope(observer), agent=0, rounds=9)
    found = letters_of(ready).theorem(problem, question)
    moved = letters_of(ready.algorithm).increments(problem, question)
    slack = rounding_of(moved.rows, problem.dim, question.scope.relation)
    steps = change * (1 + slack) * 2**16 + math.sqrt(problem.dim)
    spread = 256**2 * (1 + 85**2 + 400**2)
    expected = 3 * steps / math.sqrt(honest * spread - 4)
    assert found.mu == pytest.approx(expected, rel=1e-12)
    assert f"h = {honest}" in found.theorem
    words = " ".join(one.statement for one in found.assumptions)
    assert ("at most 1 agents collude" in words) == (observer == "colluders")
    for said in ("grid", "at least 5 letters", "computational", "added their noise"):
        assert said in words


def clipped(algorithm):
    return replace(algorithm, oracle=tacita.Clipped(norm=1.0))


def test_outsiders_see_sizes_and_times():
    safe = tacita.private(some(), tacita.ServerGD(), **BUDGET, aggregation="secure")
    told = forecast(some(), safe, rounds=20)
    row = told.row("eavesdropper")
    assert "sizes and times only" in row.theorem
    # If seals do not hold: masks do, and broadcasts are made of the coordinator's sums.
    assert row.epsilon == told.row("coordinator").epsilon


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("algorithm", "more"),
    [
        (tacita.DPSGD(step_size=0.5), {}),
        (tacita.FedAvg(step_size=0.5, local_steps=1, weights="samples"), {}),
        (tacita.DPFedAvg(step_size=0.5, local_steps=3), {}),
        (tacita.ClientDPFedAvg(), {"unit": "client"}),
        (tacita.DPSGD(oracle=tacita.Minibatch(size=10)), {}),
        (tacita.DPSGD(oracle=tacita.Minibatch(size=10, sampling="poisson")), {}),
        (
            tacita.DPSGD(oracle=tacita.Minibatch(size=10, sampling="poisson")),
            {"relation": "replace_one"},
        ),
        (tacita.DPSGD(step_size=0.5), {"participation": 5}),
        (tacita.DPSGD(step_size=0.5), {"participation": 0.9}),
    ],
    ids=lambda value: str(value)[:40] if value else "",
)
def test_a_budget_is_kept_and_nearly_used(algorithm, more):
    """Against the coordinator with its agents; less is spent against it alone."""
    problem = some(bound=1.0)
    rule = tacita.SecureSum(least=5, colluding=1)
    safe = tacita.private(problem, algorithm, **BUDGET, **more, aggregation=rule)
    unit, part = more.get("unit", "record"), more.get("participation", 1.0)
    told = forecast(problem, safe, rounds=20, participation=part)
    spent = told.row("colluders", unit).epsilon
    assert 0.97 < spent <= 1.0
    assert told.row("coordinator", unit).epsilon < spent
    assert told.promise["observer"] == "colluders"


def test_where_nobody_colludes_the_budget_holds_against_another_agent():
    """Who takes its own noise out of a sum, which the coordinator cannot."""
    safe = tacita.private(some(), tacita.DPSGD(), **BUDGET, aggregation="secure")
    told = forecast(some(), safe, rounds=20)
    assert 0.97 < told.row("neighbour").epsilon <= 1.0
    assert all(row.epsilon <= 1.0 for row in told.rows if row.unit == "record")
    assert told.promise["observer"] == "neighbour"


def test_poisson_batches_of_a_sum_are_rounded_twice():
    """A record, and the one in its place: half the change each, and sqrt(d) steps."""
    problem = some()
    rule = tacita.SecureSum(largest=50.0, step=2.0**-4, multiples=[1])
    batch = tacita.Minibatch(size=10, sampling="poisson")
    oracle = tacita.Clipped(norm=1.0, oracle=batch)
    inner = tacita.ServerGD(step_size=0.5, oracle=oracle)
    sums = tacita.aggregation.Summed(algorithm=inner, aggregation=rule).resolve(problem)
    asked = Question(scope=Scope("neighbour"), agent=0, rounds=9, active=6)
    ((one, times),) = letters_of(sums).theorem(problem, asked).curve.releases
    change = 2 * (1 / 10 * 16 + math.sqrt(problem.dim))
    noise = math.sqrt(5 * 256**2 - 4)
    assert times == 9 and one.multiplier == pytest.approx(noise / change, rel=1e-9)
    assert isinstance(one.sampling, PoissonReplaced)


@pytest.mark.long
def test_a_run_reports_what_was_planned():
    problem, rule = some(), tacita.SecureSum(least=5, colluding=1)
    safe = tacita.private(problem, tacita.DPSGD(), **BUDGET, aggregation=rule)
    planned = forecast(problem, safe, rounds=20)
    run = tacita.simulate(problem, safe, 20, record=())
    assert np.isfinite(run.params).all()
    for row in planned.rows:
        assert run.privacy.row(row.observer, row.unit).epsilon == row.epsilon
    assert "exact integers" in dict(run.privacy.notes())["noise"]
    again = tacita.privacy.report(run, problem, safe)
    assert again.rows == run.privacy.rows


def test_the_noise_of_a_sum_is_the_least_that_does():
    """Over that of a trusted curator: 1.6 % for rounding, 1.6 % for multiples."""
    problem = some(agents=20)
    safe = tacita.private(problem, tacita.ServerGD(), **BUDGET, aggregation="secure")
    std = safe.aggregation.noise_std * math.sqrt(20)
    mu = tacita.theory.gaussian.mu_of_epsilon(1.0, 1e-5)
    ideal = 2 / 50 * math.sqrt(20) / mu
    assert 1 <= std / ideal < 1.035
    effective = effective_noise(20, safe.aggregation.each) * safe.aggregation.step
    assert effective == pytest.approx(std, rel=1e-9)
    local = tacita.private(problem, tacita.ServerGD(), **BUDGET)
    assert local.oracle.std * math.sqrt(20) > 4 * std


def test_unequal_agents_are_all_within_the_budget():
    """Weighted by rows every record moves the sum alike; else the smallest most."""
    x, y = np.random.default_rng(0).normal(size=(120, 3)), np.ones(120)
    owner = np.repeat(np.arange(4), [10, 20, 30, 60])
    problem = tacita.from_arrays(x, y, owner, model="logistic", l2=0.1)
    noises = {}
    for weights in ("uniform", "samples"):
        algorithm = tacita.FedAvg(step_size=0.5, local_steps=1, weights=weights)
        safe = tacita.private(problem, algorithm, **BUDGET, aggregation="secure")
        told = forecast(problem, safe, rounds=20)
        assert 0.97 < told.row("neighbour").epsilon <= 1
        whole = 120 if weights == "samples" else 4
        noises[weights] = safe.aggregation.noise_std / whole
    assert noises["samples"] < noises["uniform"] / 2


def test_without_noise_there_is_no_epsilon():
    rule = tacita.SecureSum(largest=5.0)
    algorithm = clipped(tacita.ServerGD())
    run = tacita.simulate(some(), algorithm, 3, aggregation=rule)
    for observer in ("coordinator", "neighbour", "final_model"):
        row = run.privacy.row(observer)
        assert row.epsilon is None and "without noise" in row.theorem


@pytest.mark.parametrize(
    "algorithm",
    (
        tacita.FedAvg(step_size=0.5),
        tacita.FedAdam(step_size=0.5),
        tacita.DPFedAvg(step_size=0.5, local_steps=3),
        tacita.DPSGD(step_size=0.5),
    ),
    ids=lambda one: type(one).__name__,
)
def test_no_model_of_an_agent_holds_its_rows_without_noise(algorithm):
    """Letters have no noise of their own: what agents keep is what they were told."""
    problem = tacita.problem.synthetic.logistic(4, 3, 20, bound=2.0)
    safe = tacita.private(
        problem,
        algorithm,
        epsilon=1.0,
        delta=1e-5,
        observer="coordinator",
        rounds=1,
        aggregation="secure",
    )
    start = np.array([0.3, -0.2, 0.1])
    run = tacita.simulate(problem, safe, 1, start=start, record=())
    assert np.any(run.params != start)
    np.testing.assert_array_equal(run.agents, np.tile(start, (4, 1)))
