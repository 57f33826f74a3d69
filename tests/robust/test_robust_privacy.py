"""Privacy stays true: who lies, and what a rule leaves of others' noise."""

from __future__ import annotations

import numpy as np
import pytest

import tacita
from tacita import aggregation, robust
from tests.cases import case_of

NOISY = tacita.Noisy(std=0.5, oracle=tacita.Clipped(norm=1.0))


def epsilons(**chosen) -> tuple[float, float]:
    """Against the coordinator, and against who sees the last model only."""
    problem = case_of("FedAvg").problem()
    algorithm = tacita.FedAvg(step_size=0.1, oracle=NOISY)
    run = tacita.simulate(problem, algorithm, 3, record=(), **chosen)
    assert run.privacy is not None
    return tuple(
        run.privacy.row(who).epsilon  # pyright: ignore
        for who in ("coordinator", "final_model")
    )


def test_liars_are_no_helpers():
    """Fewer noises hide a letter; who answers single letters leaves none."""
    plain = epsilons()
    some = epsilons(attack=robust.SignFlip(agents=(1, 2)))
    none = epsilons(attack=robust.InnerProduct(agents=(1,)))
    assert plain[0] == some[0] == none[0]
    assert plain[1] < some[1] < none[1] == none[0]


def test_liars_that_are_only_assumed():
    problem, algorithm = case_of("FedAvg").problem(), tacita.FedAvg(step_size=0.1)
    budget = {"epsilon": 1.0, "delta": 1e-5, "rounds": 5, "observer": "final_model"}
    stds = [
        float(np.max(tacita.private(problem, algorithm, **budget, liars=k).oracle.std))
        for k in (0, 2)
    ]
    assert stds[1] > stds[0]
    told = tacita.privacy.forecast(
        problem, tacita.FedAvg(step_size=0.1, oracle=NOISY), rounds=3, liars=2
    )
    assert told.row("final_model").epsilon == pytest.approx(
        epsilons(attack=robust.SignFlip(agents=(1, 2)))[1]
    )


def between_far_ones() -> tacita.Problem:
    """Agent 0 lies between two others: a median passes on its letter alone."""
    y = np.concatenate([np.zeros(8), np.full(8, 99.0), np.full(8, -99.0)])
    x = np.tile([1.0, 0.0], (24, 1))
    return tacita.from_arrays(x, y, np.repeat([0, 1, 2], 8), model="linear", l2=0.1)


@pytest.mark.parametrize("credited", [False, True])
def test_mixing_credited_under_a_median_is_refuted(credited, monkeypatch):
    oracle = tacita.Noisy(std=0.2, oracle=tacita.Clipped(norm=1.0))
    algorithm = tacita.ServerGD(step_size=0.3, oracle=oracle)
    if credited:  # the planted fault: a median taken for a mean
        monkeypatch.setattr(aggregation.Median, "additive", True)
    found = tacita.audit(
        between_far_ones(),
        algorithm,
        observer="final_model",
        rounds=1,
        runs=4000,
        aggregation=aggregation.Median(),
    )
    assert found.refuted == credited
