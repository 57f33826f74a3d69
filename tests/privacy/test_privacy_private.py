"""`tacita.private`: budgets are kept, and not wasted; what cannot be is refused."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np
import pytest

import tacita
from tacita.algorithm import solvers
from tacita.audits.transcript import watch
from tacita.privacy import (
    AdaptiveClipping,
    Budgeted,
    Clipped,
    Noisy,
    Poisson,
    Question,
    Scope,
    guarantee,
    letters_of,
)
from tacita.runtime import engine

DELTA = 1e-5
BUDGET = {"epsilon": 1.5, "delta": DELTA, "rounds": 12}


def unequal(dtype=np.float64):
    draw = np.random.default_rng(0)
    agent = np.repeat([0, 1, 2, 3], [20, 40, 30, 20])
    x = draw.normal(size=(len(agent), 3))
    return tacita.from_arrays(x, x[:, 0] > 0, agent, l2=0.4, dtype=dtype)


@pytest.fixture(scope="module")
def problem():
    return unequal()


ALGORITHMS: dict[str, Any] = {
    "ServerGD": tacita.ServerGD(step_size=0.2),
    "FedAvg": tacita.FedAvg(local_steps=3),
    "shuffled": tacita.FedAvg(
        local_steps=3, oracle=tacita.Minibatch(size=5, sampling="permutation")
    ),
    "FedPLT": tacita.FedPLT(),
    "FedPLT, gradient descent": tacita.FedPLT(
        rho=0.9, solver=solvers.GradientDescent(local_steps=2)
    ),
    "DPSGD": tacita.DPSGD(step_size=0.2, momentum=0.5),
    "DPFedAvg": tacita.DPFedAvg(step_size=0.2, local_steps=3),
    "DPADMM": tacita.DPADMM(rho=0.5),
    "FedSPD": tacita.FedSPD(rho=0.5, gamma=5.0, local_steps=3),
    "FedLin": tacita.FedLin(local_steps=2),
    "FedProx": tacita.FedProx(eta=1.0, local_steps=2),
}


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("observer", ("coordinator", "final_model"))
def test_every_agent_is_within_the_budget_and_one_uses_it_up(problem, name, observer):
    safe = tacita.private(problem, ALGORITHMS[name], observer=observer, **BUDGET)
    assert type(safe) is type(ALGORITHMS[name])
    assert letters_of(safe).noise_std is not None and safe.oracle.norm == 1.0
    own = name in ("DPFedAvg", "FedSPD")  # their noise is in the letter
    assert isinstance(safe.oracle, Clipped if own else Noisy)
    spent = [
        guarantee(
            safe,
            problem,
            Question(scope=Scope(observer), agent=agent, rounds=12, active=4),
        ).epsilon(DELTA)
        for agent in range(4)
    ]
    assert max(spent) <= 1.5
    assert max(spent) == pytest.approx(1.5, rel=1e-4)
    # Everybody has the noise it needs, hardly more; drawn batches aside, which hide
    # the records of larger agents better.
    if observer == "coordinator" and name != "shuffled":
        assert min(spent) > 0.8


def test_observers_need_different_noise(problem):
    noise = {
        observer: np.max(
            tacita.private(
                problem, tacita.ServerGD(step_size=0.2), observer=observer, **BUDGET
            ).oracle.std
        )
        for observer in ("coordinator", "eavesdropper", "neighbour", "final_model")
    }
    assert noise["coordinator"] == noise["eavesdropper"]
    assert noise["final_model"] < noise["neighbour"] < noise["coordinator"]


def test_batches_participation_and_clients(problem):
    plain = tacita.FedAvg(step_size=0.1)
    ask: Any = {"observer": "coordinator", **BUDGET}
    full = tacita.private(problem, plain, **ask)
    partly = tacita.private(problem, plain, participation=0.3, **ask)
    cohort = tacita.private(problem, plain, participation=1, **ask)
    each = tacita.private(problem, plain, participation=[0.3, 0.5, 0.3, 1.0], **ask)
    assert np.all(np.asarray(partly.oracle.std) < np.asarray(full.oracle.std))
    assert np.all(np.asarray(cohort.oracle.std) < np.asarray(partly.oracle.std))
    assert np.all(np.asarray(each.oracle.std) <= np.asarray(full.oracle.std) * 1.0001)
    client = tacita.private(problem, plain, unit="client", **ask)
    assert isinstance(client.oracle.std, float)  # the same for agents of any size
    assert client.oracle.std == pytest.approx(20 * np.max(full.oracle.std), rel=1e-5)
    poisson = tacita.FedAvg(
        step_size=0.1, oracle=tacita.Minibatch(size=5, sampling="poisson")
    )
    safe = tacita.private(problem, poisson, **ask)
    assert safe.oracle.oracle.promise.scope.relation == "add_remove"
    report = tacita.privacy.forecast(problem, safe, rounds=12)
    assert 1.47 < report.row("coordinator").epsilon <= 1.5


def test_the_norm_scales_the_noise(problem):
    ask: Any = {"observer": "coordinator", **BUDGET}
    one = tacita.private(problem, tacita.FedAvg(step_size=0.1), **ask)
    two = tacita.private(problem, tacita.FedAvg(step_size=0.1), norm=3.0, **ask)
    np.testing.assert_allclose(two.oracle.std, 3 * np.asarray(one.oracle.std))
    own = tacita.FedAvg(step_size=0.1, oracle=Clipped(norm=3.0, microbatch=4))
    kept = tacita.private(problem, own, **ask)
    np.testing.assert_allclose(kept.oracle.std, two.oracle.std)
    assert kept.oracle.oracle.microbatch == 4


def test_float32_noise_is_never_rounded_down():
    problem = unequal(np.float32)
    safe = tacita.private(
        problem, tacita.FedAvg(step_size=0.1), observer="coordinator", **BUDGET
    )
    assert safe.oracle.std.dtype == np.float32
    exact = tacita.private(
        unequal(), tacita.FedAvg(step_size=0.1), observer="coordinator", **BUDGET
    )
    assert np.all(safe.oracle.std >= exact.oracle.std)
    run = tacita.simulate(problem, safe, 2)
    assert run.params.dtype == np.float32


def test_inverse_questions_agree(problem):
    ask: Any = {"observer": "coordinator"}
    safe = tacita.private(problem, tacita.FedAvg(local_steps=2), **ask, **BUDGET)
    lasts = tacita.privacy.rounds_within(
        problem, safe, epsilon=1.5001, delta=DELTA, **ask
    )
    assert lasts == 12
    planned = tacita.privacy.forecast(problem, safe, rounds=12)
    assert planned.planned and planned.promise is not None
    row = planned.row("coordinator")
    assert row.epsilon == pytest.approx(1.5, rel=1e-4) and row.delta == DELTA
    longer = tacita.privacy.forecast(problem, safe, rounds=48, delta=1e-6)
    assert longer.row("coordinator").mu == pytest.approx(2 * row.mu)
    assert longer.row("coordinator").delta == 1e-6
    none = tacita.privacy.rounds_within(problem, safe, epsilon=1e-3, delta=DELTA, **ask)
    assert none == 0


def test_too_much_noise_is_refused_with_what_would_fit(problem):
    ask: Any = {"observer": "coordinator", **BUDGET}
    plain = tacita.FedAvg(step_size=0.1)
    needed = float(np.max(tacita.private(problem, plain, **ask).oracle.std))
    same = tacita.private(problem, plain, largest_noise=needed * 1.01, **ask)
    assert np.max(same.oracle.std) == pytest.approx(needed)
    with pytest.raises(tacita.TacitaError) as error:
        tacita.private(problem, plain, largest_noise=needed / 2, **ask)
    words = str(error.value)
    # Half the noise: a quarter of the rounds.
    assert "lasts 3 rounds" in words and "\n" not in words
    offered = float(words.split("12 rounds cost epsilon=")[1].split(" ")[0])
    again = tacita.private(
        problem, plain, largest_noise=needed / 2, **{**ask, "epsilon": offered * 1.001}
    )
    assert np.max(again.oracle.std) == pytest.approx(needed / 2, rel=1e-2)


@pytest.mark.parametrize(
    ("algorithm", "change", "message"),
    (
        (tacita.ProxSkip(), {}, "ProxSkip say: its number of local steps"),
        (tacita.FedGD(alpha=0.1), {}, "needs a graph"),
        (
            tacita.FedPLT(solver=solvers.Newton()),
            {},
            "an exact gradient|gradient steps only|Full",
        ),
        (
            tacita.FedAvg(oracle=tacita.Minibatch(size=2, sampling="with_replacement")),
            {"relation": "add_remove"},
            "relation='replace_one' only",
        ),
        (
            tacita.FedAvg(oracle=tacita.Minibatch(size=2, sampling="poisson")),
            {"unit": "client"},
            "no largest size",
        ),
        (tacita.FedAvg(), {"observer": "server"}, "known: final_model, coordinator"),
        (tacita.FedAvg(), {"epsilon": 0.0}, "expected epsilon > 0"),
        (tacita.FedAvg(), {"delta": 1.0}, "expected delta in"),
        (tacita.FedAvg(), {"rounds": 0}, "rounds"),
        (tacita.FedAvg(), {"participation": 9}, "participation"),
        (tacita.FedAvg(), {"unit": "house"}, "unit"),
        (tacita.FedAvg(), {"norm": -1.0}, "norm"),
        (tacita.FedAvg(oracle=tacita.Minibatch(size=99)), {}, "batch=99 exceeds"),
        ("FedAvg", {}, "expected an algorithm"),
        (Budgeted(algorithm=tacita.FedAvg(), turns=2.0), {}, "give .* the FedAvg"),
    ),
)
def test_refusals(problem, algorithm, change, message):
    asked: Any = {"observer": "coordinator", **BUDGET, **change}
    with pytest.raises(tacita.TacitaError, match=message) as error:
        tacita.private(problem, algorithm, **asked)
    assert "\n" not in str(error.value)


def test_an_emptied_record_that_a_network_learns_from_is_a_replaced_one():
    """Half a change on either side of a batch without it, not a whole one on one."""
    x, y = np.zeros((40, 2)), np.arange(40) % 2
    network = tacita.problem.mlp(2, hidden=(2,), classes=2)
    batch = tacita.Minibatch(size=4, sampling="poisson")
    loud = tacita.Noisy(std=1 / 4, oracle=tacita.Clipped(norm=1.0, oracle=batch))
    spent = {}
    for model in (network, "hinge", "huber"):
        made = tacita.from_arrays(x, y, np.repeat([0, 1], 20), model=model)
        scope = Scope("coordinator", "record", "add_remove")
        question = Question(scope=scope, agent=0, rounds=10)
        found = guarantee(tacita.DPSGD(step_size=0.5, oracle=loud), made, question)
        assert found.scope == scope
        spent[str(model)] = found.epsilon(1e-5), "a replaced one" in found.theorem
    known = {"observer": "coordinator", "unit": "record", "noise_std": 1.0}
    emptied = tacita.privacy.account(
        **known,
        sensitivity=1.0,
        rounds=10,
        relation="add_remove",
        sampling=Poisson(0.2),
    )
    # The first line of the table in docs/proof-batches.md.
    assert spent[str(network)] == (pytest.approx(6.48, abs=0.01), True)
    # Without biases an empty row has no gradient, whatever the loss.
    for name in ("hinge", "huber"):
        assert spent[name] == (pytest.approx(emptied.epsilon(1e-5), rel=1e-4), False)


@pytest.mark.parametrize("relation", ("add_remove", "replace_one"))
def test_poisson_batches_have_a_budget_under_either_relation(problem, relation):
    batches = tacita.FedAvg(oracle=tacita.Minibatch(size=2, sampling="poisson"))
    asked: Any = {"observer": "coordinator", "relation": relation}
    safe = tacita.private(problem, batches, **asked, **BUDGET)
    scope = Scope("coordinator", "record", relation)
    found = guarantee(
        safe, problem, Question(scope=scope, agent=0, rounds=BUDGET["rounds"])
    )
    assert 0.99 * BUDGET["epsilon"] < found.epsilon(DELTA) <= BUDGET["epsilon"]


def test_observer_has_no_default(problem):
    with pytest.raises(TypeError, match="observer"):
        tacita.private(problem, tacita.FedAvg(), **BUDGET)  # pyright: ignore
    with pytest.raises(TypeError, match="observer"):
        tacita.audit(problem, tacita.FedAvg(), rounds=1)  # pyright: ignore


PRIVATE = {
    "FedAvg": {"participation": 2},
    "adaptive": {"quantile": 0.6},
}


def made(problem, name):
    asked = dict(PRIVATE[name])
    participation = asked.pop("participation", 1.0)
    # Any algorithm with noisy gradients and one exchange a round can be wrapped.
    prox = tacita.FedProx(eta=1.0, step_size=0.2, local_steps=2)
    algorithm = ALGORITHMS.get(name, prox)
    safe = tacita.private(
        problem, algorithm, observer="coordinator", **{**BUDGET, **asked}
    )
    return safe, participation


@pytest.mark.few(1)
@pytest.mark.parametrize("name", PRIVATE)
def test_private_algorithms_keep_the_contract(problem, name):
    """Mapped equals one at a time; same seed, same bits; a promise compiles nothing."""
    safe, participation = made(problem, name)
    ask: Any = {"seed": 1, "participation": participation, "record": ()}
    fast = tacita.simulate(problem, safe, 2, mapping="together", **ask)
    before = engine.advance.programs
    again = tacita.simulate(problem, _richer(safe), 2, mapping="together", **ask)
    np.testing.assert_array_equal(fast.params, again.params)
    assert engine.advance.programs == before
    slow = tacita.simulate(problem, safe, 2, mapping="one_by_one", **ask)
    np.testing.assert_allclose(fast.agents, slow.agents, rtol=0, atol=1e-12)
    np.testing.assert_allclose(fast.params, slow.params, rtol=0, atol=1e-12)
    assert not jax.config.read("jax_enable_x64")


def _richer(algorithm):
    """The same noise under another promise."""
    if isinstance(algorithm, AdaptiveClipping):
        inner = _richer(algorithm.algorithm)
        return dataclasses.replace(algorithm, algorithm=inner)
    clipped = algorithm.oracle.oracle
    promise = dataclasses.replace(clipped.promise, epsilon=9.0)
    clipped = dataclasses.replace(clipped, promise=promise)
    oracle = dataclasses.replace(algorithm.oracle, oracle=clipped)
    return dataclasses.replace(algorithm, oracle=oracle)


def test_noisy_steps_equal_one_agent_at_a_time(problem):
    safe, participation = made(problem, "FedAvg")
    fast = tacita.simulate(problem, safe, 1, 0, participation, record=())
    slow = tacita.debug(problem, safe, 1, 0, participation, record=())
    np.testing.assert_allclose(fast.agents, slow.agents, rtol=0, atol=1e-12)


def test_no_noise_means_no_change(problem):
    """Noise of size zero around an oracle gives the run without it."""
    runs = [
        tacita.simulate(
            problem, tacita.FedAvg(local_steps=3, oracle=oracle), 4, record=()
        )
        for oracle in (tacita.Full(), Noisy(std=0.0))
    ]
    np.testing.assert_allclose(runs[0].params, runs[1].params, atol=1e-14)


def test_privacy_costs_little_with_enough_records():
    problem = tacita.problem.synthetic.logistic(
        agents=10, features=4, samples=2000, l2=0.1
    )
    safe = tacita.private(
        problem,
        tacita.FedAvg(step_size=1.0),
        epsilon=2.0,
        delta=1e-6,
        observer="coordinator",
        rounds=40,
        norm=2.0,
    )
    run = tacita.simulate(problem, safe, 40, seed=0, record=("accuracy",))
    assert run.metrics["accuracy"][-1] > problem.accuracy(problem.solve()) - 0.01


@pytest.mark.long
def test_the_adaptive_norm_finds_its_quantile():
    """From a norm far too large and far too small, to the quantile asked for."""
    problem = tacita.problem.synthetic.logistic(agents=6, features=4, samples=200)
    for first in (0.01, 100.0):
        inner = tacita.ServerGD(
            step_size=1e-9, oracle=Noisy(std=1e-9, oracle=Clipped(norm=first))
        )
        adaptive = AdaptiveClipping(
            algorithm=inner, share_noise_std=0.05, quantile=0.7, rate=0.3
        )
        with jax.enable_x64(True):
            seen, _ = watch(problem, adaptive, 121, np.array([0]), agent=0)
        norms = seen.broadcast.norm[0]
        x, y, _ = problem.stacked()
        lengths = np.linalg.norm(x.reshape(-1, 4), axis=1) / 2  # at w = 0
        assert norms[0] == first and norms[1] != first
        assert np.mean(lengths <= norms[-1]) == pytest.approx(0.7, abs=0.05)


@pytest.mark.parametrize(
    ("make", "message"),
    (
        (
            lambda: AdaptiveClipping(algorithm=None, share_noise_std=0.0),
            "share_noise_std",
        ),
        (
            lambda: AdaptiveClipping(algorithm=None, share_noise_std=1.0, quantile=1.5),
            "quantile",
        ),
        (
            lambda: AdaptiveClipping(
                algorithm=tacita.FedLin(step_size=0.1), share_noise_std=1.0
            ),
            "one exchange a round, got FedLin",
        ),
        (
            lambda: AdaptiveClipping(
                algorithm=tacita.FedProx(step_size=0.1, eta=1.0), share_noise_std=1.0
            ),
            "by their curvature",
        ),
        (
            lambda: AdaptiveClipping(
                algorithm=tacita.FedAvg(step_size=0.1, oracle=Clipped(norm=1.0)),
                share_noise_std=1.0,
            ),
            "FedAvg has no noise",
        ),
        (
            lambda: AdaptiveClipping(
                algorithm=tacita.FedAvg(step_size=0.1, oracle=Noisy(std=1.0)),
                share_noise_std=1.0,
            ),
            "not clipped",
        ),
    ),
)
def test_adaptive_refusals(problem, make, message):
    with pytest.raises(tacita.TacitaError, match=message):
        tacita.simulate(problem, make(), 1)
