"""Audits of whole algorithms; planted faults are in tests/audits."""

from __future__ import annotations

from typing import Any

import jax
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

DELTA, ROUNDS = 1e-2, 3
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


@pytest.mark.long
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
    assert claim.paper_claim.claimed_epsilon(delta) < 0.9 * result.gaussian_epsilon
    assert result.lower_bound < result.gaussian_epsilon < claim.epsilon(delta)
    assert "Proposition 4 claims" in str(result)


@pytest.mark.long
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


@pytest.mark.long
@pytest.mark.few(1)
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
    assert found["coordinator"].attack == "matched, clipped records"
    most = found["coordinator"].gaussian_epsilon
    for observer in ("neighbour", "final_model"):
        assert found[observer].attack == "learned, clipped records"
        assert 0.3 < found[observer].gaussian_epsilon < most
        assert found[observer].claimed_epsilon < found["coordinator"].claimed_epsilon


@pytest.mark.long
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
        runs=200,
        delta=0.1,
        canary=Canary(([1.0, 0.0], 1.0), ([1.0, 0.0], -1.0)),
    )
    assert result.claim is None and result.refuted is None
    assert result.lower_bound > 1.0  # no noise: as much as so few runs can show
    inner = tacita.ServerGD(
        step_size=0.1, oracle=Noisy(std=0.5, oracle=Clipped(norm=1.0))
    )
    adaptive = AdaptiveClipping(algorithm=inner, share_noise_std=1.0)
    result = tacita.audit(
        empty("linear"), adaptive, observer="coordinator", rounds=2, runs=500, delta=0.1
    )
    assert result.attack == "learned, clipped records"
    assert result.refuted is False


@pytest.mark.long
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
