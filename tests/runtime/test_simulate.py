"""The simulator: schedules, seeds, sweeps, stopping, traffic and refusals."""

from __future__ import annotations

import functools

import jax
import numpy as np
import pytest

import tacita
from tacita.participation import schedule_for
from tacita.problem import graph, synthetic
from tacita.runtime import engine


@pytest.fixture(scope="module")
def problem() -> tacita.Problem:
    return synthetic.logistic(agents=6, features=3, samples=12, seed=1)


AVERAGE = tacita.FedAvg(step_size=0.3, local_steps=2, oracle=tacita.Minibatch(size=3))


@pytest.mark.few(1)
@pytest.mark.long
def test_hundred_seeds_equal_hundred_calls(problem):
    many = tacita.simulate(problem, AVERAGE, 5, participation=2, seeds=100)
    assert many.params.shape == (100, 3)
    assert many.metrics["loss"].shape == (100, 5)
    for seed in range(100):
        one = tacita.simulate(problem, AVERAGE, 5, participation=2, seed=seed)
        np.testing.assert_allclose(many.params[seed], one.params, atol=1e-12)
    assert len(np.unique(many.params[:, 0])) == 100


def test_listed_seeds(problem):
    many = tacita.simulate(problem, AVERAGE, 3, seeds=[5, 2])
    one = tacita.simulate(problem, AVERAGE, 3, seed=2)
    np.testing.assert_allclose(many.params[1], one.params, atol=1e-12)


def test_sweep_equals_one_call_each(problem):
    configs = [tacita.FedProx(eta=e, step_size=0.2, local_steps=3) for e in (0.2, 1, 5)]
    swept = tacita.sweep(problem, configs, 6, seed=4)
    assert swept.params.shape == (3, 3)
    for k, config in enumerate(configs):
        one = tacita.simulate(problem, config, 6, seed=4)
        np.testing.assert_allclose(swept.params[k], one.params, atol=1e-12)
        np.testing.assert_allclose(
            swept.metrics["loss"][k], one.metrics["loss"], rtol=1e-12
        )
    many = tacita.sweep(problem, configs[:2], 6, seeds=[4, 7])
    assert many.params.shape == (2, 2, 3) and many.agents.shape == (2, 2, 6, 3)
    assert many.metrics["loss"].shape == (2, 2, 6) and many.metrics["round"].ndim == 1
    for k, config in enumerate(configs[:2]):
        other = tacita.simulate(problem, config, 6, seed=7)
        np.testing.assert_allclose(many.params[k, 0], swept.params[k], atol=1e-12)
        np.testing.assert_allclose(many.params[k, 1], other.params, atol=1e-12)
    assert many.config["algorithm"]["eta"] == [0.2, 1.0]
    table = many.to_frame()
    assert list(table)[:3] == ["configuration", "repeat", "round"] and len(table) == 24
    last = table[(table.configuration == "eta=1") & (table.repeat == 1)].iloc[-1]
    assert last.loss == many.metrics["loss"][1, 1, -1] and last["round"] == 6


@pytest.mark.parametrize(
    ("algorithms", "message"),
    [
        ([], "at least one algorithm"),
        (AVERAGE, r"expected algorithms a list such as \[tacita.FedAvg"),
        ([AVERAGE, tacita.ServerGD()], "differ in class, in counts"),
        (
            [tacita.FedAvg(step_size=s) for s in (0.1, [0.1] * 6)],
            "which numbers are per agent",
        ),
    ],
)
def test_a_sweep_of_unlike_algorithms_is_refused(problem, algorithms, message):
    with pytest.raises(tacita.TacitaError, match=message):
        tacita.sweep(problem, algorithms, 2)


def test_records_do_not_change_the_run_and_the_last_round_is_recorded(problem):
    every = tacita.simulate(problem, AVERAGE, 11, seed=3)
    some = tacita.simulate(problem, AVERAGE, 11, seed=3, record_every=4)
    assert some.metrics["round"].tolist() == [4, 8, 11]
    np.testing.assert_array_equal(some.params, every.params)
    np.testing.assert_array_equal(
        some.metrics["loss"], every.metrics["loss"][[3, 7, 10]]
    )
    assert every.metrics["round"].tolist() == list(range(1, 12))
    none = tacita.simulate(problem, AVERAGE, 11, seed=3, record=())
    np.testing.assert_array_equal(none.params, every.params)
    assert none.rounds == 11


def test_metrics_are_what_they_say(problem):
    def largest(shared, agents):
        return abs(agents).max()

    reference = problem.solve()
    run = tacita.simulate(
        problem,
        AVERAGE,
        4,
        record=("loss", "grad_norm_sq", "disagreement", "accuracy", "error", largest),
        reference=reference,
    )
    last = {name: values[-1] for name, values in run.metrics.items()}
    assert last["loss"] == pytest.approx(problem.loss(run.params), rel=1e-13)
    gradient = problem.grad(run.params)
    assert last["grad_norm_sq"] == pytest.approx(gradient @ gradient, rel=1e-12)
    centred = run.agents - run.agents.mean(axis=0)
    assert last["disagreement"] == pytest.approx((centred**2).sum() / 6, rel=1e-12)
    assert last["accuracy"] == problem.accuracy(run.params)
    assert last["error"] == pytest.approx(np.linalg.norm(run.params - reference))
    assert last["largest"] == np.abs(run.agents).max()


def test_personal_models_are_measured_at_their_own(problem):
    on_ring = synthetic.linear(agents=5, features=2, samples=6, graph=graph.ring(5))
    run = tacita.simulate(on_ring, tacita.FedGD(alpha=0.1), 5, record=("loss",))
    assert run.metrics["loss"][-1] == pytest.approx(on_ring.loss(run.agents), rel=1e-12)
    np.testing.assert_allclose(run.params, run.agents.mean(axis=0))


def test_test_set_metrics():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(30, 2)), rng.choice([0, 1], 30)
    held = rng.normal(size=(9, 2)), rng.choice([0, 1], 9)
    problem = tacita.from_arrays(x, y, np.arange(30) % 3, l2=0.1, test=held)
    run = tacita.simulate(
        problem, tacita.ServerGD(), 30, record=("test_accuracy", "test_loss")
    )
    scores = held[0] @ run.params
    signs = 2 * held[1] - 1
    share = np.mean(np.sign(scores) == signs)
    assert run.metrics["test_accuracy"][-1] == pytest.approx(share, rel=1e-14)
    losses = np.log1p(np.exp(-signs * scores))
    assert run.metrics["test_loss"][-1] == pytest.approx(losses.mean())


def test_early_stopping_at_the_first_record_below_the_tolerance(problem):
    full = tacita.simulate(problem, tacita.ServerGD(), 200)
    small = np.flatnonzero(full.metrics["grad_norm_sq"] <= 1e-8)[0]
    run = tacita.simulate(problem, tacita.ServerGD(), 200, stop={"grad_norm_sq": 1e-8})
    assert run.rounds == small + 1 == len(run.metrics["round"])
    assert run.info["stopped_early"]
    before = engine.advance.programs
    tacita.simulate(problem, tacita.ServerGD(), 2, stop={"grad_norm_sq": 1})
    assert engine.advance.programs == before
    with pytest.raises(tacita.TacitaError, match="not recorded"):
        tacita.simulate(problem, AVERAGE, 5, stop={"accuracy": 0.1})


def test_an_accuracy_stops_a_run_by_being_large(problem):
    slow, start = tacita.ServerGD(step_size=0.01), -problem.solve()
    choices = dict(start=start, record=("accuracy",), record_every=2)
    run = tacita.simulate(problem, slow, 200, stop={"accuracy": 0.8}, **choices)
    reached = run.metrics["accuracy"] >= 0.8
    assert reached[-1] and not reached[:-1].any() and 2 < run.rounds < 200


def test_participation_happens_as_often_as_asked(problem):
    chances = np.array([0.1, 0.3, 0.5, 0.7, 0.9, 1.0])
    run = tacita.simulate(problem, AVERAGE, 2000, participation=chances, record=())
    share = run.info["turns"] / 2000
    spread = np.sqrt(chances * (1 - chances) / 2000)
    assert np.all(np.abs(share - chances) <= 4 * spread)
    cohort = tacita.simulate(problem, AVERAGE, 2000, participation=2, record=())
    assert cohort.info["turns"].sum() == 4000
    assert np.all(np.abs(cohort.info["turns"] / 2000 - 1 / 3) < 0.05)


def test_few_active_agents_are_computed_in_blocks():
    assert schedule_for(0.1, 100).block > 0
    assert schedule_for(0.9, 100).block == 0
    assert schedule_for(0.1, 100, lanes=True).block == 0
    # Numbers nearby share a program, which has room for at most twice as many.
    assert schedule_for(0.2, 100).block == schedule_for(0.31, 100).block == 50
    assert schedule_for(0.05, 1000).block == 125


def test_nobody_active_changes_nothing(problem):
    quiet = np.full(6, 1e-9)
    run = tacita.simulate(problem, AVERAGE, 5, participation=quiet)
    np.testing.assert_array_equal(run.params, problem.start)
    assert run.info["communication"]["letters"] == 0


def test_letters_and_bytes(problem):
    run = tacita.simulate(problem, AVERAGE, 7, participation=2)
    sent = run.info["communication"]
    assert sent["letters"] == 14
    assert sent["bytes_up"] == sent["bytes_down"] == 14 * 3 * 8
    on_star = synthetic.linear(agents=5, features=2, samples=6, graph=graph.star(5))
    run = tacita.simulate(on_star, tacita.FedGD(alpha=0.1), 3)
    assert run.info["communication"] == {"letters": 3 * 8, "bytes": 3 * 8 * 2 * 8}


def test_start_points(problem):
    start = np.arange(18.0).reshape(6, 3)
    still = tacita.FedAvg(step_size=1e-300)
    run = tacita.simulate(problem, still, 1, start=start)
    np.testing.assert_allclose(run.params, start.mean(axis=0))
    run = tacita.simulate(problem, still, 1, start=start[1])
    np.testing.assert_allclose(run.params, start[1])


def test_rounds_and_schedules_compile_once(problem):
    tacita.simulate(problem, AVERAGE, 5, participation=0.5)
    before = engine.advance.programs
    tacita.simulate(problem, AVERAGE, 9, seed=8, participation=0.6, record_every=2)
    assert engine.advance.programs == before


def test_progress_bar_shows_rounds_and_loss(problem, capsys):
    run = tacita.simulate(problem, AVERAGE, 300, progress=True)
    shown = capsys.readouterr().err
    assert "300/300" in shown and "loss" in shown
    quiet = tacita.simulate(problem, AVERAGE, 300, progress=False)
    assert capsys.readouterr().err == ""
    np.testing.assert_array_equal(run.params, quiet.params)


def test_the_users_jax_settings_are_untouched(problem):
    assert not jax.config.read("jax_enable_x64")
    tacita.simulate(problem, AVERAGE, 2)
    assert jax.numpy.ones(2).dtype == np.float32


BAD = {
    "participation 0": (dict(participation=0), "1 to 6 agents, got participation=0"),
    "participation > N": (dict(participation=7), "got participation=7"),
    "probability 0": (dict(participation=0.0), "participation"),
    "probability > 1": (dict(participation=1.5), "participation"),
    "probabilities NaN": (dict(participation=[np.nan] * 6), "participation"),
    "too few probabilities": (dict(participation=[0.5] * 5), "shape"),
    "participation True": (dict(participation=True), "participation"),
    "no rounds": (dict(rounds=0), "expected rounds a whole number >= 1"),
    "half a round": (dict(rounds=2.5), "rounds"),
    "negative seed": (dict(seed=-1), "seed"),
    "no seeds": (dict(seeds=[]), "seeds is empty"),
    "bad start": (dict(start=np.zeros(4)), "expected start of shape"),
    "NaN start": (dict(start=[0, np.nan, 0]), "start has 1 NaN"),
    "unknown metric": (dict(record=("los",)), "did you mean 'loss'"),
    "metric needs data": (dict(record=("test_loss",)), "test="),
    "metric needs reference": (dict(record=("error",)), "reference="),
    "not an algorithm": (dict(algorithm="FedAvg"), "expected an algorithm"),
    "unknown mapping": (dict(mapping="together!"), "mapping"),
    "no problem": (dict(problem=None), "expected a problem, made with"),
    "rounds None": (dict(rounds=None), "expected rounds a number"),
    "seed word": (dict(seed="one"), "expected seed a whole number"),
    "huge seed": (dict(seed=2**70), "expected seed <= 9223372036854775807"),
    "half a seed": (dict(seeds=2.5), "expected seeds a whole number or a list"),
    "participation word": (dict(participation="all"), "got participation='all'"),
    "stop number": (dict(stop=1e-3), "stop takes one metric, for example"),
    "stop word": (dict(stop={"loss": "small"}), "stop takes a finite number"),
    "stop two": (dict(stop={"loss": 1, "error": 1}), "stop takes one metric"),
    "reference": (dict(reference=np.ones(4)), "expected reference of shape"),
    "reference word": (dict(reference="best"), "an array of numbers"),
    "start word": (dict(start="zero"), "expected start an array of numbers"),
    "record None": (dict(record=None), r"or \(\) for none, got record=None"),
    "two lambdas": (
        dict(record=(lambda s, a: 1.0, lambda s, a: 2.0)),
        "two metrics called '<lambda>'; .* with def",
    ),
    "checkpoint file": (dict(checkpoint=__file__), "is a file; name a folder"),
    "checkpoint under a file": (
        dict(checkpoint=f"{__file__}/inner"),
        "cannot make the folder",
    ),
    "checkpoint number": (dict(checkpoint=3), "the path of a folder, got 3"),
    "oracle word": (
        dict(algorithm=tacita.FedAvg(step_size=0.1, oracle="full")),  # pyright: ignore
        r"expected oracle such as tacita.Full\(\)",
    ),
}


@pytest.mark.parametrize("case", BAD, ids=BAD.keys())
def test_bad_input_is_refused_in_one_line(problem, case):
    changes, message = BAD[case]
    arguments = {"problem": problem, "algorithm": AVERAGE, "rounds": 3, **changes}
    with pytest.raises(tacita.TacitaError, match=message) as error:
        tacita.simulate(**arguments)
    assert "\n" not in str(error.value)


def test_debug_refuses_what_simulate_refuses(problem):
    for changes, message in (
        (dict(participation=2), "FedLin needs every agent in every round"),
        (dict(start=np.zeros(4)), "expected start of shape"),
        (dict(rounds=None), "expected rounds a number"),
    ):
        with pytest.raises(tacita.TacitaError, match=message):
            tacita.debug(problem, tacita.FedLin(), **{"rounds": 1, **changes})


def test_a_partial_metric_has_the_name_of_its_function(problem):
    def size(shared, agents, power):
        return abs(shared).sum() ** power

    record = (functools.partial(size, power=2),)
    run = tacita.simulate(problem, AVERAGE, 2, record=record)
    assert run.metrics["size"][-1] == pytest.approx(np.abs(run.params).sum() ** 2)


def test_a_metric_is_one_number(problem):
    def whole(shared, agents):
        return shared

    for runtime in (tacita.simulate, tacita.debug):
        with pytest.raises(tacita.TacitaError, match=r"'whole' has shape \(3,\)"):
            runtime(problem, AVERAGE, 1, record=whole)


def test_debug_names_the_agent_and_the_round(problem):
    with pytest.raises(RuntimeError, match=r"agent 0 in round \d+ wrote .* NaN"):
        tacita.debug(problem, tacita.ServerGD(step_size=1e200), 400, record=())


def test_diverged_runs_say_so(problem):
    run = tacita.simulate(problem, tacita.ServerGD(step_size=1e200), 10)
    assert run.info["diverged"]


def test_a_loss_far_above_the_start_is_called_diverged():
    """Of one lane and of many; not of a start that was good, nor of private rows."""
    linear = synthetic.linear(agents=3, features=2, samples=6)
    steps = 20 / linear.moduli.largest, 0.5 / linear.moduli.largest
    wild, calm = (tacita.FedAvg(step_size=step) for step in steps)
    run = tacita.simulate(linear, wild, 4)
    assert run.info["diverged"] and np.all(np.isfinite(run.params))
    assert run.metrics["loss"][-1] > 10 * linear.loss(linear.start)
    before = engine.advance.programs
    best = {"start": linear.solve()}
    assert not tacita.simulate(linear, calm, 4, **best).info["diverged"]
    assert tacita.simulate(linear, wild, 40, **best).info["diverged"]
    assert engine.advance.programs == before
    many = tacita.sweep(linear, [calm, wild], 4)
    assert many.info["diverged_lanes"] == [False, True] and many.info["diverged"]
    assert not tacita.simulate(linear, wild, 4, record=()).info["diverged"]
    secret = tacita.FedAvg(step_size=1e3, oracle=tacita.Clipped(norm=1.0))
    assert not tacita.simulate(linear, secret, 4).info["diverged"]
