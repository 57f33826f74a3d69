"""Privacy stays true: who lies, and what a rule leaves of others' noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tacita
from tacita import aggregation, robust
from tacita.privacy import account
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


CLIENTS = tacita.ClientDPFedAvg(step_size=0.1, clip=0.2, noise_std=0.1)
ONE_STEP = aggregation.CenteredClipping(radius=0.1, steps=1)


@pytest.mark.parametrize(
    ("rule", "longest"),
    [
        (None, 0.2),
        (aggregation.NormBound(radius=0.1), 0.1),
        (aggregation.NormBound(radius=0.9), 0.2),
        (ONE_STEP, 0.1),
    ],
)
def test_noise_of_a_coordinator_covers_bounded_letters(rule, longest):
    problem = case_of("FedAvg").problem()
    told = tacita.privacy.forecast(problem, CLIENTS, rounds=3, aggregation=rule)
    row = told.row("final_model", "client")
    # An emptied client goes on shrinking by its l2: it is a replaced one.
    exact = account(**SEEN, noise_std=0.1, sensitivity=2 * longest, rounds=3)
    assert row.epsilon == pytest.approx(exact.epsilon(told.rows[0].delta))


SEEN = {"observer": "final_model", "unit": "client", "relation": "replace_one"}


@pytest.mark.parametrize(
    "rule",
    [
        aggregation.Median(),
        aggregation.NormBound(),  # its radius is a median of letters
        aggregation.NormBound(radius=0.1, weights="samples"),
        aggregation.CenteredClipping(radius=0.1),
        aggregation.CenteredClipping(radius=0.1, steps=1, start="median"),
    ],
)
def test_noise_of_a_coordinator_covers_nothing_else(rule):
    problem = case_of("FedAvg").problem()
    with pytest.raises(tacita.TacitaError, match="no number bounds what one letter"):
        tacita.simulate(problem, CLIENTS, 1, aggregation=rule)


def test_a_bounded_letter_moves_the_model_no_further_than_that():
    """What the account takes for granted, with a liar who does not clip."""
    problem = case_of("FedAvg").problem()
    quiet = tacita.ClientDPFedAvg(step_size=0.1, clip=0.2, noise_std=1e-12)
    chosen = {"rounds": 1, "seed": 0, "aggregation": ONE_STEP, "record": ()}
    liar = robust.SignFlip(agents=(0,), strength=1e6)
    moved = [
        tacita.simulate(problem, quiet, attack=replace(liar, since=k), **chosen).params
        for k in (1.0, 99.0)
    ]
    reach = 2 * 0.1 / problem.n_agents
    assert 0 < np.linalg.norm(moved[0] - moved[1]) <= reach * (1 + 1e-6)


@pytest.mark.long
def test_a_round_without_anybody_has_its_noise():
    """Else a model that stands still would tell that nobody took part."""
    chosen = {"seed": 0, "participation": 1e-9, "record": (), "aggregation": ONE_STEP}
    given = (case_of("FedAvg").problem(), CLIENTS, 2)
    fast, slow = tacita.simulate(*given, **chosen), tacita.debug(*given, **chosen)
    assert np.all(fast.params != 0)
    np.testing.assert_allclose(fast.params, slow.params, rtol=1e-12)


def test_liars_who_answer_letters_leave_a_coordinators_noise_behind():
    """Who answers single letters counts as everybody: `test_liars_are_no_helpers`."""
    problem = case_of("FedAvg").problem()
    rows = [
        tacita.privacy.forecast(problem, CLIENTS, rounds=2, liars=k).row(
            "final_model", "client"
        )
        for k in (1, problem.n_agents)
    ]
    assert rows[0].epsilon is not None
    assert rows[1].epsilon is None and "answer single letters" in rows[1].theorem


STEPS, SUM = tacita.DPSGD(step_size=0.1), tacita.SecureSum(largest=2.0)


def test_liars_in_a_secure_sum_say_what_fits_its_grid():
    problem = case_of("FedAvg").problem()
    chosen = {"rounds": 3, "aggregation": SUM, "record": ()}
    attack = robust.SignFlip(agents=(1,), strength=1e9)
    later = replace(attack, since=99.0)
    plain = tacita.simulate(problem, STEPS, attack=later, **chosen)
    lied = tacita.simulate(problem, STEPS, attack=attack, **chosen)
    slow = tacita.debug(problem, STEPS, attack=attack, **chosen)
    np.testing.assert_allclose(lied.params, slow.params, rtol=1e-9)
    far = np.abs(lied.params - plain.params).max()
    # Three steps of 0.1 along means in which one entry of a few is off by 2 or so.
    assert 0.01 < far < 3 * 0.1 * 4
    for refused in (robust.InnerProduct(agents=(1,)), robust.Mimic(agents=(1,))):
        with pytest.raises(tacita.TacitaError, match="a secure sum hides from liars"):
            tacita.simulate(problem, STEPS, attack=refused, **chosen)
    with pytest.raises(tacita.TacitaError, match="which a secure sum hides"):
        tacita.simulate(problem, STEPS, watch=True, **chosen)


def test_liars_add_no_noise_to_a_secure_sum():
    problem = case_of("FedAvg").problem()
    budget = {"epsilon": 1.0, "delta": 1e-5, "observer": "coordinator", "rounds": 2}
    made = [
        tacita.private(problem, STEPS, **budget, aggregation=SUM, liars=k)
        for k in (0, 2)
    ]
    attack = robust.Noise(agents=(1, 2))
    lied, kept = (
        tacita.simulate(problem, one, 2, attack=attack, record=()).privacy
        for one in made
    )
    assert lied.row("coordinator").epsilon > 1.0 >= kept.row("coordinator").epsilon
    with pytest.raises(tacita.TacitaError, match="leave no noise"):
        tacita.private(
            problem, STEPS, **budget, aggregation=SUM, liars=problem.n_agents
        )


def test_an_exact_audit_takes_no_other_rule():
    algorithm = tacita.ServerGD(step_size=0.3, oracle=NOISY)
    chosen = {"rounds": 1, "aggregation": aggregation.Median()}
    with pytest.raises(tacita.TacitaError, match="Median is not linear in the noise"):
        tacita.audits.audit_exactly(between_far_ones(), algorithm, **chosen)


@pytest.mark.long
def test_members_are_found_in_runs_of_the_rule():
    """Under a median a final model is not credited with everybody's noise."""
    problem = case_of("FedAvg").problem()
    algorithm = tacita.FedAvg(step_size=0.1, oracle=NOISY)
    plan = {"rounds": 3, "delta": 1e-5}
    for rule in (None, aggregation.Median()):
        found = tacita.audits.find_members(
            problem, algorithm, runs=16, aggregation=rule, **plan
        )
        mixed = "noise of all its letters" in found.privacy.theorem
        assert mixed == (rule is None)
