"""Audits of whole algorithms: the broken are refuted, the sound are not."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tacita
from tacita.algorithm.solvers import GradientDescent
from tacita.audits import Canary
from tacita.audits.transcript import watch
from tacita.privacy import (
    AdaptiveClipping,
    Clipped,
    Noisy,
    fed_plt,
    gaussian_guarantee,
    gradient_noise,
)
from tacita.trees import frozen

DELTA, ROUNDS, RUNS = 1e-2, 3, 12_000
NOISY = Noisy(std=0.3, oracle=Clipped(norm=1.0))
BUDGET: Any = {
    "epsilon": 1.0,
    "delta": DELTA,
    "observer": "coordinator",
    "rounds": ROUNDS,
}


def empty(model: str, agents: int = 2):
    """Two empty rows at each agent: room for a canary, and nothing else to see."""
    return tacita.from_arrays(
        np.zeros((2 * agents, 2)),
        np.ones(2 * agents),
        np.repeat(np.arange(agents), 2),
        model=model,
        l2=0.1,
    )


@pytest.fixture(scope="module")
def linear():
    return empty("linear")


@pytest.fixture(scope="module")
def logistic():
    return empty("logistic")


@frozen
class HalvedNoise(Noisy):
    """Adds half the noise that it says it adds."""

    def grad(self, local, draw, w):
        rows, noise = draw
        return super().grad(local, (rows, noise / 2), w)


class Memory(NamedTuple):
    """What the agent that saves on randomness keeps."""

    w: Any
    first: Any
    rounds: Any


@frozen
class ReusedNoise(tacita.ServerGD):
    """Draws its noise in its first round and adds it again in every other."""

    def init(self, w):
        nothing = jax.random.key_data(jax.random.key(0))
        return Memory(w, nothing, jnp.zeros((), jnp.int32)), 0 * w

    def local(self, key, oracle, state, inbox):
        fresh = jax.random.key_data(key)
        first = jnp.where(state.rounds == 0, fresh, state.first)
        letter = oracle.once(jax.random.wrap_key_data(first), inbox)
        return Memory(inbox, first, state.rounds + 1), letter


@frozen
class SharedKey(tacita.ServerGD):
    """Derives its noise from what everybody was told."""

    def local(self, key, oracle, state, inbox):
        return state._replace(w=inbox), oracle.once(jax.random.key(7), inbox)


@frozen
class NotClipped(Clipped):
    """Says that it clips."""

    def grad(self, local, draw, w):
        return self.oracle.grad(local, draw, w)


def broken(problem, name):
    honest = tacita.private(problem, tacita.ServerGD(step_size=2.0), **BUDGET)
    std, clipped = honest.oracle.std, honest.oracle.oracle
    oracles = {
        "clipping skipped": Noisy(
            std=std, oracle=NotClipped(norm=1.0, promise=clipped.promise)
        ),
        "noise halved": HalvedNoise(std=std, oracle=clipped),
    }
    kinds: Any = {"noise reused": ReusedNoise, "key shared": SharedKey}
    kind = kinds.get(name, tacita.ServerGD)
    return kind(step_size=2.0, oracle=oracles.get(name, honest.oracle))


@pytest.mark.parametrize(
    ("name", "attack"),
    (
        ("noise halved", "matched"),
        ("noise reused", "reused"),
        ("clipping skipped", "matched"),
        ("key shared", None),
    ),
)
def test_a_broken_mechanism_is_refuted_at_99_percent(logistic, linear, name, attack):
    problem = linear if name == "clipping skipped" else logistic
    result = tacita.audit(
        problem, broken(problem, name), observer="coordinator", rounds=ROUNDS, runs=RUNS
    )
    assert result.confidence == 0.99 and result.delta == DELTA
    assert result.refuted, str(result)
    assert result.claimed_epsilon == pytest.approx(1.0, rel=1e-4)
    assert attack in (None, result.attack)
    assert "REFUTED" in str(result)


SOUND = {
    "ServerGD": (tacita.ServerGD(step_size=0.3), "linear", {}),
    "FedAvg": (tacita.FedAvg(step_size=0.3, local_steps=2), "logistic", {}),
    "FedPLT": (
        tacita.FedPLT(rho=1.0, solver=GradientDescent(step_size=0.3, local_steps=2)),
        "logistic",
        {"participation": 1},  # one of two agents
    ),
    "Poisson": (
        tacita.FedAvg(
            step_size=0.3,
            oracle=Noisy(
                std=1.5,
                oracle=Clipped(
                    norm=1.0, oracle=tacita.Minibatch(size=1, sampling="poisson")
                ),
            ),
        ),
        "linear",
        {},
    ),
}


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_mechanism_is_not_refuted(name, request):
    """Twenty repetitions at 95 % each."""
    algorithm, model, more = SOUND[name]
    problem = request.getfixturevalue(model)
    safe = algorithm
    if name != "Poisson":  # has its noise already: batches take long to calibrate
        safe = tacita.private(problem, algorithm, **BUDGET, **more)
    bounds = []
    for seed in range(20):
        result = tacita.audit(
            problem,
            safe,
            observer="coordinator",
            rounds=ROUNDS,
            runs=2000,
            delta=DELTA,
            confidence=0.95,
            seed=seed,
            **more,
        )
        assert result.refuted is False, str(result)
        bounds.append(result.lower_bound)
    if name == "ServerGD":  # and the audit is worth having
        assert np.mean(bounds) > 0.3


def test_proposition_4_is_exceeded_by_what_the_coordinator_sees():
    """Ten quadratics of curvature 1: one record each, which moves a gradient by 1."""
    x, delta = np.sqrt(0.5), 0.03
    problem = tacita.from_arrays(
        np.full((10, 1), x), np.zeros(10), np.arange(10), model="linear"
    )
    numbers: Any = {"rho": 10.0, "step_size": 0.5, "local_steps": 10, "noise_std": 1.0}
    claim = fed_plt(
        observer="coordinator",
        strong_convexity=1.0,
        smoothness=1.0,
        lipschitz=1.0,
        samples=1,
        rounds=25,
        **numbers,
    )
    algorithm = tacita.FedPLT(
        rho=10.0,
        solver=GradientDescent(step_size=0.5, local_steps=10),
        oracle=Noisy(std=gradient_noise(1.0, 0.5)),
    )
    result = tacita.audit(
        problem,
        algorithm,
        observer="coordinator",
        rounds=25,
        runs=2000,
        delta=delta,
        claim=claim,
        canary=Canary(([x], 0.0), ([x], x)),
    )
    # gradient 2 x (x w - y): the labels 0 and x differ by 1 in it
    assert result.refuted is False
    assert result.paper_claim_refuted is True
    assert claim.paper_claim.claimed_epsilon(delta) < 0.9 * result.lower_bound
    assert result.lower_bound < claim.epsilon(delta)
    assert "Proposition 4 claims" in str(result)


def test_what_is_watched_is_what_was_run(linear):
    """Letters of a transcript give the models that `simulate` gives."""
    safe = tacita.private(linear, tacita.ServerGD(step_size=0.3), **BUDGET)
    seeds = np.arange(2000)
    with jax.enable_x64(True):
        views = [watch(linear, safe, ROUNDS, seeds, agent) for agent in (0, 1)]
    run = tacita.simulate(linear, safe, ROUNDS, seed=0, seeds=2, record=())
    for seen, shared in views:
        np.testing.assert_allclose(shared[:2], run.params, atol=1e-12)
        assert seen.letter.shape == (2000, ROUNDS, 2) and np.all(seen.active)
    # w <- w - eta mean of the letters
    mean = (views[0][0].letter + views[1][0].letter) / 2
    path = views[0][0].broadcast
    np.testing.assert_allclose(
        path[:, 1:], path[:, :-1] - 0.3 * mean[:, :-1], atol=1e-12
    )


def test_other_observers_see_less():
    """With three agents the final model of one round hides a record better."""
    problem = empty("linear", agents=3)
    noisy = tacita.ServerGD(step_size=0.3, oracle=NOISY)
    found = {
        observer: tacita.audit(
            problem, noisy, observer=observer, rounds=2, runs=4000, delta=DELTA
        )
        for observer in ("coordinator", "neighbour", "final_model")
    }
    assert not any(result.refuted for result in found.values())
    assert found["coordinator"].attack in ("matched", "reused")
    for observer in ("neighbour", "final_model"):
        assert found[observer].attack == "learned"
        assert 0.3 < found[observer].lower_bound < found["coordinator"].lower_bound
        assert found[observer].claimed_epsilon < found["coordinator"].claimed_epsilon


def test_graphs_and_wrapped_algorithms_are_audited_by_learning():
    ring = tacita.problem.graph.ring(3)
    problem = tacita.from_arrays(
        np.zeros((6, 2)), np.ones(6), np.repeat(range(3), 2), model="linear", graph=ring
    )
    bare = tacita.FedGD(alpha=0.1, step_size=0.1)
    result = tacita.audit(
        problem,
        bare,
        observer="neighbour",
        rounds=2,
        runs=60,
        delta=0.1,
        canary=Canary(([1.0, 0.0], 1.0), ([1.0, 0.0], -1.0)),
    )
    assert result.claim is None and result.refuted is None
    assert result.lower_bound > 1.0  # no noise: as much as 60 runs can show
    inner = tacita.ServerGD(
        step_size=0.1, oracle=Noisy(std=0.5, oracle=Clipped(norm=1.0))
    )
    adaptive = AdaptiveClipping(algorithm=inner, share_noise_std=1.0)
    result = tacita.audit(
        empty("linear"), adaptive, observer="coordinator", rounds=2, runs=500, delta=0.1
    )
    assert result.attack == "learned" and result.refuted is False


def test_a_result_goes_into_the_report(linear):
    safe = tacita.private(linear, tacita.ServerGD(step_size=0.3), **BUDGET)
    result = tacita.audit(
        linear, safe, observer="coordinator", rounds=ROUNDS, runs=2000
    )
    run = tacita.simulate(linear, safe, ROUNDS)
    told = run.privacy.with_audit("coordinator", "record", result.as_dict())
    audited = told.row("coordinator").audited
    assert audited["lower_bound"] == result.lower_bound
    assert audited["refuted"] is False and audited["attack"] == result.attack


CLAIM = gaussian_guarantee(
    observer="final_model",
    unit="record",
    relation="replace_one",
    noise_std=1.0,
    sensitivity=1.0,
)


@pytest.mark.parametrize(
    ("change", "message"),
    (
        ({"observer": "server"}, "observer"),
        ({"runs": 3}, "runs"),
        ({"rounds": 0}, "rounds"),
        ({"delta": 0.0}, "delta"),
        ({"confidence": 1.0}, "confidence"),
        ({"attacks": ["guess"]}, "attack"),
        ({"attacks": []}, "attacks is empty"),
        ({"observer": "final_model", "attacks": ["matched"]}, "needs an observer of"),
        ({"claim": CLAIM}, "the claim is about the final_model"),
        ({"canary": Canary(([1.0], 0.0), ([1.0], 1.0))}, "expected record of shape"),
        ({"canary": Canary(([1.0, 0], 0), ([1.0, 0], 1), agent=7)}, "no row 0 of"),
    ),
)
def test_refusals(linear, change, message):
    noisy = tacita.ServerGD(step_size=0.3, oracle=NOISY)
    asked: Any = {"observer": "coordinator", "rounds": 1, "runs": 20, **change}
    with pytest.raises(tacita.TacitaError, match=message):
        tacita.audit(linear, noisy, **asked)


def test_models_without_a_known_worst_record_need_a_canary():
    problem = tacita.from_arrays(
        np.zeros((4, 2)),
        [0, 1, 0, 1],
        [0, 0, 1, 1],
        model=tacita.problem.model.networks.mlp(2, (2,), 2),
    )
    noisy = tacita.ServerGD(step_size=0.3, oracle=NOISY)
    with pytest.raises(tacita.TacitaError, match="give canary="):
        tacita.audit(problem, noisy, observer="coordinator", rounds=1)
    lin = tacita.FedLin(step_size=0.1, oracle=Clipped(norm=1.0))
    with pytest.raises(tacita.TacitaError, match="several letters"):
        tacita.audit(empty("linear"), lin, observer="coordinator", rounds=1)
