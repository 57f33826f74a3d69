"""Members and properties found by shadow runs, beside what epsilon allows."""

from __future__ import annotations

import numpy as np
import pytest

import tacita
from tacita.audits import find_members, find_property
from tacita.privacy import membership


@pytest.fixture(scope="module")
def problem() -> tacita.Problem:
    """More features than rows, so that a model remembers who was there."""
    random = np.random.default_rng(0)
    x = random.standard_normal((36, 16)) / 4
    y = random.choice([-1.0, 1.0], 36)
    return tacita.from_arrays(x, y, np.arange(36) % 2, model="logistic")


PLAN = {"rounds": 10, "runs": 48}


@pytest.mark.long
def test_members_are_found_without_noise_and_not_beyond_epsilon(problem):
    plain = tacita.FedAvg(step_size=8.0, local_steps=5)
    open_ = find_members(problem, plain, **PLAN)
    assert open_.privacy.epsilon is None and open_.most(0.001) == 1.0
    assert open_.auc > 0.9
    assert open_.caught(0.01) > 0.1  # ten times a blind guess
    safe = tacita.private(
        problem,
        plain,
        epsilon=1.0,
        delta=1e-5,
        observer="coordinator",
        rounds=10,
        norm=0.5,
    )
    # Half of the records are in a run: noise for all of them is half of what is needed.
    closed = find_members(problem, safe, **PLAN)
    assert closed.privacy.epsilon is not None
    for false, found, allowed in closed.rates((0.01, 0.1, 0.3)):
        spread = np.sqrt(allowed * (1 - allowed) / len(closed.inside))
        assert found <= allowed + 4 * spread, false
    assert closed.auc < 0.7


def test_scores_of_many_runs_are_liras():
    random = np.random.default_rng(1)
    sure = random.standard_normal((9, 3))
    member = random.random((9, 3)) < 0.5
    member[:3], member[3:6] = True, False
    found = membership.lira_scores(sure, member)
    others = np.arange(9) != 7
    chance = 1 / (1 + np.exp(-sure))
    inside = chance[others & member[:, 2], 2]
    outside = chance[others & ~member[:, 2], 2]
    alone = membership.lira(chance[7, 2], inside, outside)
    assert found[7, 2] == pytest.approx(float(alone), rel=1e-9)


def test_replacing_a_record_is_removing_and_adding_one():
    assert membership.most_caught_replaced(0.5, 0.0, 0.1) == pytest.approx(
        membership.most_caught(1.0, 0.0, 0.1)
    )


def test_a_property_shows_in_letters(problem):
    _, y, _ = problem.stacked()
    plain = tacita.FedAvg(step_size=1.0)
    how = {"rounds": 2, "runs": 32}
    assert find_property(problem, plain, y[0] > 0, **how) > 0.95
    # Steps that move nothing tell nothing.
    still = tacita.FedAvg(step_size=1e-300)
    assert find_property(problem, still, y[0] > 0, **how) == 0.5
    with pytest.raises(tacita.TacitaError, match="rows have the property"):
        find_property(problem, plain, np.zeros(18, bool), rounds=2)
