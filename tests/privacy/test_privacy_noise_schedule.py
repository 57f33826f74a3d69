"""Noise schedules: the optimum of the vectors, the account, and the run itself."""

import numpy as np
import pytest

import tacita
from tacita.privacy import Question, Scope, account, guarantee
from tacita.privacy.accounting.releases import levelled
from tacita.privacy.letters import question

#: RNG-free: (K, momentum) -> the noise of the first rounds over constant noise, and
#: the error of the models over that of constant noise.
OPTIMA = {
    (4, 0.0): ([0.876517567561, 0.941879422816, 1.042360927768], 0.9718097255278189),
    (4, 0.9): ([0.767194380028, 0.911135362707, 1.156210455805], 0.8927773427721086),
    (20, 0.0): ([0.830329206656, 0.841045348196, 0.85249077296], 0.9515266954990104),
    (20, 0.9): ([0.717637850359, 0.735160579392, 0.75440786736], 0.8636147751251095),
}


def problem(agents=3, **given):
    given = {"agents": agents, "features": 3, "samples": 40, "seed": 1} | given
    return tacita.problem.synthetic.logistic(**given)


def noisy(std=0.3, schedule=None, **given):
    oracle = tacita.Noisy(
        std=std, oracle=tacita.Clipped(norm=1.0), schedule=schedule, **given
    )
    return tacita.FedAvg(step_size=0.5, oracle=oracle)


def coordinator(rounds, **given):
    return Question(scope=Scope("coordinator"), agent=0, rounds=rounds, **given)


@pytest.mark.parametrize(("rounds", "momentum"), OPTIMA)
def test_schedules_are_the_optimum_of_the_vectors(rounds, momentum):
    first, ratio = OPTIMA[rounds, momentum]
    schedule = tacita.NoiseSchedule.prefix(rounds, momentum=momentum)
    found, weights = schedule.multiples(), schedule.weights[:, 0]
    np.testing.assert_allclose(found[:3], first, rtol=1e-9)
    error = np.sqrt(np.sum((weights * found) ** 2) / np.sum(weights**2))
    np.testing.assert_allclose(error, ratio, rtol=1e-9)


def test_a_schedule_costs_what_constant_noise_costs():
    here, schedule = problem(), tacita.NoiseSchedule.prefix(20)
    constant = guarantee(noisy(), here, coordinator(20))
    spread = guarantee(noisy(schedule=schedule), here, coordinator(20))
    assert constant.mu <= spread.mu < constant.mu * (1 + 2e-6)
    assert "the first half of 20 rounds spends 64%" in str(spread.assumptions)


@pytest.mark.parametrize("kind", ["float", "integers"])
@pytest.mark.parametrize("observer", ["coordinator", "final_model"])
def test_rounds_together_cost_what_they_cost_one_by_one(kind, observer):
    here = problem()
    algorithm = noisy(schedule=tacita.NoiseSchedule.prefix(20), noise_kind=kind)
    seen = {"scope": Scope(observer), "agent": 0, "active": 3}
    each = [
        guarantee(algorithm, here, Question(**seen, rounds=1, number=k))
        for k in (1, 2, 9, 30)
    ]
    some = guarantee(algorithm, here, Question(**seen, rounds=4, number=(30, 1, 9, 2)))
    np.testing.assert_allclose(some.mu, np.hypot.reduce([g.mu for g in each]), 1e-11)
    whole = guarantee(algorithm, here, Question(**seen, rounds=20, total=20))
    numbers = tuple(range(1, 21))
    again = guarantee(algorithm, here, Question(**seen, rounds=20, number=numbers))
    np.testing.assert_allclose(whole.mu, again.mu, rtol=1e-12)


@pytest.mark.parametrize("chance", [1.0, 0.5])
def test_very_many_rounds_are_not_accounted_one_by_one(chance, monkeypatch):
    asked = []

    def counted(**about):
        asked.append(about)
        return account(**about)

    monkeypatch.setattr(question, "account", counted)
    algorithm = noisy(std=30.0, schedule=tacita.NoiseSchedule.prefix(2000))
    asks = coordinator(2000, total=2000, participation=chance)
    found = guarantee(algorithm, problem(), asks)
    assert len(asked) == 1
    assert len(levelled(getattr(found.curve, "releases", ()))) < 200


def test_a_schedule_for_very_many_rounds():
    """The models' average forgets by half: by_age = 1 - 2^-(age + 1)."""
    rounds = 200_000
    weights = tacita.NoiseSchedule.prefix(rounds, average=0.5).weights[::-1, 0]
    by_age = 1 - 0.5 ** np.arange(1, rounds + 1)
    np.testing.assert_allclose(weights, np.sqrt(np.cumsum(by_age**2)), rtol=1e-12)


def test_turns_are_charged_at_the_least_noise():
    here, schedule = problem(), tacita.NoiseSchedule.prefix(20)
    algorithm = noisy(schedule=schedule)
    some = guarantee(algorithm, here, coordinator(5, total=20))
    each = [guarantee(algorithm, here, coordinator(1, number=k)) for k in range(1, 21)]
    exact = np.sqrt(np.sum([one.mu**2 for one in each[:5]]))
    np.testing.assert_allclose(some.mu, exact, rtol=1e-9)
    assert each[0].mu > each[-1].mu
    last = guarantee(algorithm, here, coordinator(1, number=200))
    assert last.mu == each[-1].mu  # the last weight holds for later rounds


def test_chances_of_taking_part_are_mixed_round_by_round():
    here, schedule = problem(), tacita.NoiseSchedule(weights=[1, 1, 1])
    asked = coordinator(3, participation=0.5, total=3)
    spread = guarantee(noisy(schedule=schedule), here, asked)
    constant = guarantee(noisy(), here, asked)
    np.testing.assert_allclose(spread.epsilon(1e-5), constant.epsilon(1e-5), rtol=1e-4)


@pytest.mark.long
def test_every_round_of_a_run_has_its_own_noise():
    # Labels far off saturate the clipping: gradients do not depend on the model, so
    # the last model is an affine function of the noise.
    x, y = np.ones((8, 1)), 1e6 * np.ones(8)
    flat = tacita.from_arrays(x, y, agent=np.arange(8) % 2, model="linear")

    def last(weights):
        schedule = tacita.NoiseSchedule(weights=weights)
        algorithm = noisy(schedule=schedule)
        return tacita.simulate(flat, algorithm, rounds=2, seed=5).params[0]

    seen = [[1.0, 1.0], [1.0, 4.0], [4.0, 1.0]]
    made = [[1.0, *tacita.NoiseSchedule(weights=w).multiples()] for w in seen]
    start, first, second = np.linalg.solve(made, [last(w) for w in seen])
    assert abs(first) > 1e-3 and abs(second) > 1e-3
    other = tacita.NoiseSchedule(weights=[1.0, 9.0]).multiples()
    expected = start + first * other[0] + second * other[1]
    np.testing.assert_allclose(last([1.0, 9.0]), expected, rtol=1e-10)


@pytest.mark.long
@pytest.mark.few(1)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_agents_and_rounds_may_be_equally_many(dtype):
    here = problem(agents=4, dtype=dtype)
    algorithm = noisy(schedule=tacita.NoiseSchedule.prefix(4), std=[0.1, 0.2, 0.3, 0.4])
    run = tacita.simulate(here, algorithm, rounds=4, seed=1)
    alone = tacita.debug(here, algorithm, rounds=4, seed=1)
    assert run.params.dtype == dtype
    tolerance = {"float32": 1e-5, "float64": 1e-12}[dtype]
    np.testing.assert_allclose(run.params, alone.params, rtol=tolerance)


@pytest.mark.long
def test_private_sets_the_schedule_and_keeps_the_budget():
    here = problem()
    budget = {"epsilon": 1.0, "delta": 1e-5, "observer": "coordinator", "rounds": 30}
    descent = tacita.DPSGD(step_size=0.5, momentum=0.9)
    for word in ("prefix", "momentum"):
        safe = tacita.private(here, descent, schedule=word, **budget)
        run = tacita.simulate(here, safe, rounds=30, seed=3)
        assert 0.9999 < run.privacy.row("coordinator").epsilon <= 1.0
    again = tacita.private(here, safe, **budget)
    assert again.oracle.schedule is not None  # it has one of its own
    plain = tacita.private(here, safe, schedule="uniform", **budget)
    assert plain.oracle.schedule is None


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (
            lambda: tacita.Noisy(std=1.0, correlation=0.8),
            "independent noise is optimal",
        ),
        (lambda: tacita.NoiseSchedule(weights=[1.0, 0.0]), "weights > 0"),
        (lambda: tacita.NoiseSchedule(weights=[]), "weights"),
    ],
)
def test_refusals(build, words):
    with pytest.raises(tacita.TacitaError, match=words):
        build()


@pytest.mark.parametrize(
    ("algorithm", "schedule", "words"),
    [
        (tacita.FedAvg(step_size=0.5), "momentum", "no momentum"),
        (tacita.FedAvg(step_size=0.5), "later", "schedule"),
        (tacita.FedSPD(rho=1.0, gamma=3.0), "prefix", "adds noise to its letters"),
    ],
)
def test_private_refuses_schedules_that_mean_nothing(algorithm, schedule, words):
    with pytest.raises(tacita.TacitaError, match=words):
        tacita.private(
            problem(),
            algorithm,
            schedule=schedule,
            epsilon=1.0,
            delta=1e-5,
            observer="coordinator",
            rounds=5,
        )


def test_a_run_file_holds_a_schedule():
    algorithm = noisy(schedule=tacita.NoiseSchedule.prefix(3))
    table = tacita.job.table_of(algorithm)
    again = tacita.job.records.build(table)
    np.testing.assert_array_equal(
        again.oracle.schedule.weights, algorithm.oracle.schedule.weights
    )
